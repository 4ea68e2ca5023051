package autodiff_test

import (
	"fmt"
	"testing"
)

// faults are mistakes that systems of this kind are known to have made, with what shows
// that this one does not. Most of the first 27 are wrong derivatives.
var faults = []struct {
	what  string
	check func(t *testing.T)
}{
	{"the slope of relu is NaN at 0", kinksOf("relu at 0", "relu at infinity", "relu at minus infinity")},
	{"the slope of abs is NaN at 0", kinksOf("abs at 0", "abs below 0")},
	{"gelu has the slope of its approximation by tanh, or a wrong one", smoothOf("gelu")},
	{"gelu by tanh has the slope of silu", smoothOf("gelu with tanh", "silu")},
	{"round has one slope in the first order and another in the second", roundHasOneSlope},
	{"an infinite slope at 0 makes NaN of a gradient that is masked", kinksOf(
		"masked sqrt at 0", "masked rsqrt at 0", "masked log at 0", "masked norm at 0", "masked reciprocal at 0", "sqrt at 0", "log at 0")},
	{"all elements of a tie get the whole gradient of a maximum, and a NaN gets none", tiesShareAMaximum},
	{"the gradient of a product divides by its elements", kinksOf(
		"product of a vector with one zero", "product of a vector with two zeros", "product of a vector with three zeros")},
	{"the slope of a power is NaN at base 0, or by way of an exponent that is constant", powersAreRightAtZero},
	{"max and min give the gradient of a tie to one side, and compute it in f32", pairsShareATie},
	{"the gradient of attention forgets scale and softcap", attentionGradientsKnowScaleSoftcapAndBias},
	{"a bias of attention gets no gradient", theBiasOfAttentionHasAGradient},
	{"the kernels of attention forget scale, softcap or mask", attentionOnDevicesKnowsItsAttributes},
	{"packed weights stop the gradient, and their scale gets none", packedWeightsHaveGradients},
	{"the gradient of grouped products copies the weights for every row", groupedProductsCopyNoWeights},
	{"rounding to whole numbers and back scales the gradient", quantizationPassesTheGradientOn},
	{"second derivatives of a convolution lose their mixed terms", convolutionsHaveMixedSecondDerivatives},
	{"what cuts a gradient off says nothing", whatCutsAGradientIsNamed},
	{"tables of rope, filters of log-mel and statistics of batch norm get no gradient", everyOperandHasAGradient("rope", "log_mel", "batch_norm_inference")},
	{"constants in derivatives are f32, whatever the type", gradientsHaveTheTypeOfTheirPort},
	{"derivatives refuse symbolic sizes, and products with vectors", symbolicSizesHaveDerivatives},
	{"bad input panics, and the message shows a place that is not the caller's", badInputIsAnErrorWithItsPlace},
	{"results that were not asked for stand between the gradients", gradientsAreFoundByName},
	{"gradients of a value that is used often are added up one after the other", fanInIsSummedInABalancedTree},
	{"third derivatives are compared between devices, not with the truth, and not at kinks", fourOrdersAreThoseOfTheClosedForm},
	{"an op is said to be supported that is not, or another one is blamed", whatADeviceLacksIsNamed},
	{"an optimizer does nothing, silently, or has its weights fed anew with each step", optimizersKeepAndMoveTheirWeights},

	{"the gradient of rms norm has a factor too many, on all devices alike", rmsNormHasTheGradientOfItsFormula},
	{"the table of rope has a wrong stride, on all devices alike", ropeTurnsByItsFormula},
	{"a value that is used twice loses a term of its gradient", aValueUsedTwiceGetsBothGradients},
	{"a derivative in a direction of one in a direction is 0", forwardOverForwardOverReverseIsTheThirdDerivative},
	{"numbers of 16 bits are read as other bits, not converted", halvesAreConvertedOnDevices},
	{"tensors without elements hang a device", emptyTensorsRunOnDevices},
	{"the state of an LSTM is dropped between calls", lstmsGoOnWhereTheyStopped},
	{"NaN becomes a number in a fast exponential", exponentialsOfNaNAreNaN},
	{"loops of many steps are not differentiated", longLoopsHaveDerivatives},
	{"of a singular value decomposition only the values have a gradient", everyOperandHasAGradient("svd")},
	{"indices are floats, which lose whole numbers above 2²⁴", indicesAreWholeNumbers},
	{"a seed of 0 draws other numbers with every run", seedZeroIsASeed},
}

func TestKnownFaultsOfOtherSystems(t *testing.T) {
	for i, f := range faults {
		t.Run(fmt.Sprintf("%02d %s", i+1, f.what), f.check)
	}
}

// smoothOf and kinksOf check entries of the tables of functions with closed forms,
// forward, in reverse, as series and mixed.
func smoothOf(names ...string) func(t *testing.T) { return functionsOf(smooth, names) }

func kinksOf(names ...string) func(t *testing.T) { return functionsOf(kinks, names) }

func functionsOf(table []function, names []string) func(t *testing.T) {
	return func(t *testing.T) {
		for _, name := range names {
			found := false
			for _, f := range table {
				if f.name == name {
					found = true
					checkFunctions(t, []function{f})
				}
			}
			if !found {
				t.Errorf("there is no function %q", name)
			}
		}
	}
}
