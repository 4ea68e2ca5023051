package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

// counting64 is a target whose kernels count all positions in 64 bits, as those of CUDA
// and the CPU do in arrays that need it.
func counting64() plan.Target {
	target := inBytes()
	target.F16, target.Shuffles, target.Long = true, true, 1
	return target
}

// TestSamplesCountedIn64BitsEqualReference is TestSamplesOfAllOpsEqualReference with
// positions of 64 bits, whose kernels mix them with numbers of 32.
func TestSamplesCountedIn64BitsEqualReference(t *testing.T) {
	eachSample(t, func(t *testing.T, op ir.Op, s ir.Sample) { checkSampleOn(t, counting64(), op, s) })
}
