package ir

import (
	"slices"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
)

// KernelsLowering is an op that brings kernels of its own, where a schedule
// cannot know as much as who wrote the op. It may stand beside a body, which is
// what a target computes that the kernels do not fit; without one such a target
// refuses the op, but for the native CPU, which then runs [Def.Eval].
type KernelsLowering struct {
	// Kernels returns the kernels that compute a node, whose shapes are all
	// constant, on a target, or nil where there are none for it. It is a pure
	// function.
	Kernels func(n *Node, caps loop.Caps) *Algorithm
}

func (*KernelsLowering) lowering() {}

// Algorithm is some kernels that are launched one after the other, and the
// memory that goes from one to the next.
type Algorithm struct {
	// Scratch are the types of that memory. What is in it before a kernel writes
	// it means nothing.
	Scratch  []Type
	Launches []KernelLaunch
}

// KernelLaunch is a kernel with what its storage arrays are, in order. The kernel
// reads neither scalars nor counters and has no status words. Arrays that it
// only reads have access [loop.Read], and operands are only read; the widths of
// storage arrays are 1 or 4.
type KernelLaunch struct {
	Kernel *loop.Kernel
	// Routine, where it is set, is what a library computes in place of a kernel, on arrays
	// in its own order. [loop.Caps.Products] tells whether a target has the library; where
	// it has not, or under a condition, there are no kernels for the node.
	Routine routine.Routine
	Arrays  []Memory
}

// Memory is the elements of an operand, of a result or of scratch memory, dense
// and row-major.
type Memory struct {
	Space MemorySpace
	// Number counts operands, results, or [Algorithm.Scratch].
	Number int
}

// MemorySpace says what memory holds.
type MemorySpace uint8

// The spaces of memory.
const (
	// OperandMemory holds an operand.
	OperandMemory MemorySpace = iota
	// ResultMemory takes a result.
	ResultMemory
	// ScratchMemory is for the kernels of one node alone.
	ScratchMemory
)

// For returns the kernels of a node for a target, nil where there are none or where
// the target lacks what they ask for. The error, of kind [ErrDef], says in which way
// they are no kernels for the node.
func (l *KernelsLowering) For(n *Node, caps loop.Caps) (*Algorithm, error) {
	if l.Kernels == nil {
		return nil, Errorf(ErrDef, "its lowering has no kernels")
	}
	a := l.Kernels(n, caps)
	if a == nil {
		return nil, nil
	}
	for i, x := range a.Launches {
		if x.Routine != nil {
			if err := a.checkCall(n, x); err != nil {
				return nil, Errorf(ErrDef, "routine %q: %v", x.Routine.Name(), err)
			}
			if caps.Products == loop.NoProducts {
				return nil, nil
			}
			continue
		}
		if x.Kernel == nil {
			return nil, Errorf(ErrDef, "launch %d has no kernel", i)
		}
		if err := a.check(n, x); err != nil {
			return nil, Errorf(ErrDef, "kernel %q: %v", x.Kernel.Name, err)
		}
		if caps.Check(x.Kernel) != nil || len(x.Arrays) > caps.Tensors() {
			return nil, nil
		}
	}
	return a, nil
}

// check returns what is wrong with a launch.
func (a *Algorithm) check(n *Node, x KernelLaunch) error {
	k := x.Kernel
	if len(k.Scalars) > 0 || k.Counters > 0 {
		return format.Errorf("it reads scalars or counters, which are those of other programs")
	}
	storage := 0
	for _, array := range k.Arrays {
		if array.Space != loop.Storage {
			continue
		}
		if storage++; storage > len(x.Arrays) {
			return format.Errorf("it has more storage arrays than the %d given", len(x.Arrays))
		}
		m := x.Arrays[storage-1]
		t, err := a.typeOf(n, m)
		if err != nil {
			return err
		}
		size, _ := t.Shape.Size().Const()
		switch width := array.Width; {
		case array.DType != t.DType || width != 1 && width != 4 || array.Len*width != max(size, 1):
			return format.Errorf("array %q, %d × %d of %s, is not as %s", array.Name, array.Len, width, array.DType, t)
		case m.Space == OperandMemory && array.Access != loop.Read:
			return format.Errorf("it writes operand %d", m.Number)
		case slices.Index(x.Arrays, m) < storage-1:
			return format.Errorf("array %q is another one's memory", array.Name)
		}
	}
	if storage < len(x.Arrays) {
		return format.Errorf("it has %d storage arrays of the %d given", storage, len(x.Arrays))
	}
	return nil
}

// checkCall returns what is wrong with the call of a routine.
func (a *Algorithm) checkCall(n *Node, x KernelLaunch) error {
	arrays := x.Routine.Arrays()
	if len(arrays) != len(x.Arrays) {
		return format.Errorf("it has %d arrays, not the %d given", len(arrays), len(x.Arrays))
	}
	for i, m := range x.Arrays {
		t, err := a.typeOf(n, m)
		if err != nil {
			return err
		}
		size, _ := t.Shape.Size().Const()
		switch bytes := size * loop.DeviceSize(t.DType); {
		case bytes < arrays[i].Bytes:
			return format.Errorf("array %d takes %d bytes, and %s has %d", i, arrays[i].Bytes, t, bytes)
		case m.Space == OperandMemory && arrays[i].Written:
			return format.Errorf("it writes operand %d", m.Number)
		}
	}
	return nil
}

// typeOf returns the type of memory.
func (a *Algorithm) typeOf(n *Node, m Memory) (Type, error) {
	types := [...][]Type{n.InTypes(), n.Types(), a.Scratch}
	if int(m.Space) >= len(types) || m.Number < 0 || m.Number >= len(types[m.Space]) {
		return Type{}, format.Errorf("there is no memory %d of space %d", m.Number, m.Space)
	}
	return types[m.Space][m.Number], nil
}
