package jit

import "github.com/rlx-go/rlx/ir/dtype"

// Runs describes elements that lie in runs: lane i accesses element i/Length·Jump + i%Length·Stride.
// The elements of a run are contiguous, with Stride 1, or the same one, with Stride 0.
type Runs struct{ Length, Jump, Stride int }

// Extent returns the distance from the element of lane 0 to that after the last of n > 0 lanes.
// The jump must not be negative.
func (r Runs) Extent(n int) int {
	whole, rest := (n-1)/r.Length, (n-1)%r.Length
	if whole > 0 && r.Jump < r.Length*r.Stride {
		rest = r.Length - 1 // runs overlap, so that an earlier lane may lie behind the last one
	}
	return whole*r.Jump + rest*r.Stride + 1
}

// HasRuns reports whether kernels access elements of type t in runs; store asks for stores, which
// have Stride 1.
func HasRuns(r Runs, t dtype.DType, store bool) bool {
	const maxJump = 1 << 24 // elements, so that the distances within a vector fit 32 bits
	switch t {
	case dtype.F32, dtype.I32, dtype.U32:
	default:
		return false
	}
	if r.Length < 4 || r.Length&(r.Length-1) != 0 || r.Jump < 0 || r.Jump > maxJump || r.Length*r.Stride > maxJump {
		return false
	}
	return hasRuns() && (r.Stride == 1 || r.Stride == 0 && !store)
}

// LoadRuns loads elements of type t that lie in runs from an array, in kernels that are not long;
// [HasRuns] must be true. The number of lanes is a multiple of [Kernel.Width].
func (k *Kernel) LoadRuns(array int, t dtype.DType, r Runs) Value {
	return k.step(step{kind: loadRuns, typ: t, array: array, skip: k.offset, runs: r, dst: k.value(inLanes(t))})
}

// StoreRuns stores a value as elements of type t that lie in runs, as [Kernel.LoadRuns] loads
// them.
func (k *Kernel) StoreRuns(array int, t dtype.DType, r Runs, v Value) {
	k.step(step{kind: storeRuns, typ: t, array: array, skip: k.offset, runs: r, args: []argument{{value: v}}, dst: noValue})
}
