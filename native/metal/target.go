package metal

import (
	"math"

	"github.com/rlx-go/rlx/internal/codegen/msl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// Target returns the compilation target of Apple's GPUs from the M1 on (family Apple7 of
// the Metal Feature Set Tables). Workgroups have at most 256 threads, as for CUDA; none of
// the figures was measured.
func Target() plan.Target {
	l := loop.DefaultLimits()
	l.StorageBuffers = msl.StorageBuffers
	l.SharedBytes = 32 << 10
	// Indices are 32-bit, which bounds arrays of 4-byte elements; the device's buffer limit
	// also applies.
	l.BindingBytes = int(min(4*int64(loop.MaxElements), math.MaxInt)) / plan.RowBytes * plan.RowBytes
	l.BufferBytes = l.BindingBytes
	t := plan.WebGPU() // whose indirect dispatches Metal has too
	t.Name, t.ScoreBytes = Name, scoreBytes
	t.Caps = loop.Caps{Dialect: dtype.MSL, Limits: l, F16: true, Subgroups: true, Subgroup: [2]int{32, 32}, Shuffles: true, Fragments: true, HalfFragments: true}
	return t
}

// scoreBytes bounds the scores of an attention that are materialised; larger ones are
// computed in blocks with simdgroup_matrix. It is about the size of the last-level cache of
// the smallest of these GPUs, not measured.
const scoreBytes = 8 << 20
