package ir

import (
	"slices"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
)

// KernelsLowering is an op with its own kernels, for algorithms that the schedules do not cover. It
// may come with a Body, which is used on targets that the kernels do not support. Without a Body
// such a target rejects the op, except the native CPU, which runs [Def.Eval].
type KernelsLowering struct {
	// Kernels returns the kernels that compute a node of constant shapes on a target, or nil if
	// there are none. It must be a pure function.
	Kernels func(n *Node, caps loop.Caps) *Algorithm
}

func (*KernelsLowering) lowering() {}

// Algorithm is a sequence of kernel launches and the memory shared between them.
type Algorithm struct {
	// Scratch holds the types of the scratch memory. Its initial contents are undefined.
	Scratch  []Type
	Launches []KernelLaunch
}

// KernelLaunch is a kernel and the memory that its storage arrays are bound to, in order. The
// kernel must not use scalars, counters or status words. Arrays that it only reads have access
// [loop.Read]; operands must only be read. The widths of storage arrays are 1 or 4.
type KernelLaunch struct {
	Kernel *loop.Kernel
	// Routine, if set, is a library routine that runs instead of a kernel, on arrays in its own
	// order. [loop.Caps.Runs] reports whether a target has the library. Without it, or for a
	// conditional launch, there are no kernels for the node.
	Routine routine.Routine
	Arrays  []Memory
}

// Memory is an operand, a result or scratch memory, dense and row-major.
type Memory struct {
	Space MemorySpace
	// Number is the index of the operand or result, or in [Algorithm.Scratch].
	Number int
}

// MemorySpace is the kind of a [Memory].
type MemorySpace uint8

// The memory spaces.
const (
	// OperandMemory holds an operand.
	OperandMemory MemorySpace = iota
	// ResultMemory holds a result.
	ResultMemory
	// ScratchMemory is temporary memory of one node.
	ScratchMemory
)

// For returns the kernels of a node for a target, or nil if there are none or the target does not
// support them. The error, of kind [ErrDef], says why the kernels are invalid for the node.
func (l *KernelsLowering) For(n *Node, caps loop.Caps) (*Algorithm, error) {
	if l.Kernels == nil {
		return nil, Errorf(ErrDef, "its lowering has no kernels")
	}
	return l.Kernels(n, caps).on(n, caps)
}

// For returns the calls of a node for a target, or nil if there are none or the target does not
// support them. The error, of kind [ErrDef], says why the calls are invalid for the node.
func (l *RoutineLowering) For(n *Node, caps loop.Caps) (*Algorithm, error) {
	if l.Calls == nil {
		return nil, nil
	}
	return l.Calls(n, caps).on(n, caps)
}

// on checks an algorithm, which may be nil, for a node and a target. It is nil if the target does not
// support it.
func (a *Algorithm) on(n *Node, caps loop.Caps) (*Algorithm, error) {
	if a == nil {
		return nil, nil
	}
	for i, x := range a.Launches {
		if x.Routine != nil {
			if err := a.checkCall(n, x); err != nil {
				return nil, Errorf(ErrDef, "routine %q: %v", x.Routine.Name(), err)
			}
			if !caps.Runs(x.Routine) {
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

// check returns the fault of a launch, or nil.
func (a *Algorithm) check(n *Node, x KernelLaunch) error {
	k := x.Kernel
	if len(k.Scalars) > 0 || k.Counters > 0 {
		return format.Errorf("it reads scalars or counters; a kernel of an op must not")
	}
	storage := 0
	for _, array := range k.Arrays {
		if array.Space != loop.Storage {
			continue
		}
		if storage++; storage > len(x.Arrays) {
			return format.Errorf("it has more storage arrays than the launch lists, %d", len(x.Arrays))
		}
		m := x.Arrays[storage-1]
		t, err := a.typeOf(n, m)
		if err != nil {
			return err
		}
		size, _ := t.Shape.Size().Const()
		switch width := array.Width; {
		case array.DType != t.DType || width != 1 && width != 4 || array.Len*width != max(size, 1):
			return format.Errorf("array %q is %d × %d of %s; it must be %s", array.Name, array.Len, width, array.DType, t)
		case m.Space == OperandMemory && array.Access != loop.Read:
			return format.Errorf("it writes operand %d; operands are read only", m.Number)
		case slices.Index(x.Arrays, m) < storage-1:
			return format.Errorf("array %q shares its memory with another array", array.Name)
		}
	}
	if storage < len(x.Arrays) {
		return format.Errorf("it has %d storage arrays; the launch lists %d", storage, len(x.Arrays))
	}
	return nil
}

// checkCall returns the fault of a routine call, or nil.
func (a *Algorithm) checkCall(n *Node, x KernelLaunch) error {
	arrays := x.Routine.Arrays()
	if len(arrays) != len(x.Arrays) {
		return format.Errorf("it has %d arrays; the launch lists %d", len(arrays), len(x.Arrays))
	}
	for i, m := range x.Arrays {
		t, err := a.typeOf(n, m)
		if err != nil {
			return err
		}
		size, _ := t.Shape.Size().Const()
		switch bytes := size * loop.DeviceSize(t.DType); {
		case bytes < arrays[i].Bytes:
			return format.Errorf("array %d is %s of %d bytes; it must have %d", i, t, bytes, arrays[i].Bytes)
		case m.Space == OperandMemory && arrays[i].Written:
			return format.Errorf("it writes operand %d; operands are read only", m.Number)
		}
	}
	return nil
}

// typeOf returns the type of memory.
func (a *Algorithm) typeOf(n *Node, m Memory) (Type, error) {
	types := [...][]Type{n.InTypes(), n.Types(), a.Scratch}
	if int(m.Space) >= len(types) || m.Number < 0 || m.Number >= len(types[m.Space]) {
		return Type{}, format.Errorf("unknown memory %d of space %d", m.Number, m.Space)
	}
	return types[m.Space][m.Number], nil
}
