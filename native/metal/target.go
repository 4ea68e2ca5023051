package metal

import (
	"math"

	"github.com/rlx-go/rlx/internal/codegen/msl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// Target is what plans are compiled for: any of Apple's GPUs from the M1 on (family
// Apple7 of the Metal Feature Set Tables). Workgroups keep to 256 threads, as they do for
// CUDA; none of its figures was measured.
func Target() plan.Target {
	l := loop.DefaultLimits()
	l.StorageBuffers = msl.StorageBuffers
	l.SharedBytes = 32 << 10
	// Positions in an array are 32-bit numbers, so that 4-byte elements bound an array;
	// the device's longest buffer does the rest.
	l.BindingBytes = int(min(4*int64(loop.MaxElements), math.MaxInt)) / plan.RowBytes * plan.RowBytes
	l.BufferBytes = l.BindingBytes
	t := plan.WebGPU() // whose indirect dispatches Metal has too
	t.Name, t.ScoreBytes = Name, scoreBytes
	t.Caps = loop.Caps{Dialect: dtype.MSL, Limits: l, F16: true, Subgroups: true, Subgroup: [2]int{32, 32}, Shuffles: true, Fragments: true, HalfFragments: true}
	return t
}

// scoreBytes is the most that the scores of an attention take before they are computed in
// blocks, by matrices of SIMD-groups, and not kept: about what the last cache of the smallest
// of these GPUs holds. It was not measured.
const scoreBytes = 8 << 20
