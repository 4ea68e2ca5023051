package plan_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/codegen/msl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/irtest/families"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native/cuda"
	"github.com/rlx-go/rlx/native/metal"
)

// furtherTargets are smaller devices. Their plans are compared with the memory floor for [families.All] alone.
var furtherTargets = []familyTarget{
	{"T4", 0, turing, cudacpp.Printer{}, false},
	{"M3", 0, m3, msl.Printer{}, false},
}

// turing is a Tesla T4, whose multiply-adds no kernel uses, with its library.
func turing() plan.Target {
	t := cuda.Target()
	t.Device, t.Multiprocessors = hardware.Named("Tesla T4"), 40
	t.Products, t.ProductBytes = loop.FasterProducts, 32<<20
	return t
}

// m3 is an Apple M3 with ten cores.
func m3() plan.Target {
	t := metal.Target()
	t.Device = hardware.Named("Apple M3")
	return t
}

// TestFamiliesReachTheMemoryFloorOfSmallDevices is [TestFamiliesReachTheMemoryFloor] for smaller devices. It omits those
// with most launches: gp, whose kernels read the diagonals of matrices, and a thousand tiny parameters.
func TestFamiliesReachTheMemoryFloorOfSmallDevices(t *testing.T) {
	for _, target := range furtherTargets {
		for _, f := range families.All {
			if f.Name != "gp" && f.Name != "tiny parameters" {
				checkFloor(t, family{f.Name, lossOfFamily(f)}, target)
			}
		}
	}
}
