package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

// counting64 is a target whose kernels use 64-bit positions everywhere, as those of CUDA and the
// CPU do for long arrays.
func counting64() plan.Target {
	target := inBytes()
	target.F16, target.Shuffles, target.Long = true, true, 1
	return target
}

// TestSamplesCountedIn64BitsEqualReference is TestSamplesOfAllOpsEqualReference with 64-bit
// positions, which kernels mix with 32-bit numbers.
func TestSamplesCountedIn64BitsEqualReference(t *testing.T) {
	eachSample(t, func(t *testing.T, op ir.Op, s ir.Sample) { checkSampleOn(t, counting64(), op, s) })
}
