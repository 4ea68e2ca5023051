package loop

import (
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The statements here are asynchronous: the thread continues while they run. Until it has
// waited for them, the memory and registers they use are off limits; the simulator reports
// any access as a fault.

// CopyAsync starts a copy of Count contiguous elements, 4, 8 or 16 bytes with the same
// alignment, from a storage array of width 1 to a shared array of the same type. ToAt counts
// elements even in a shared array of vectors. If Valid is given and false, zeros are written
// and nothing is read. It is PTX's cp.async.
type CopyAsync struct {
	To     int
	ToAt   scalar.Expr
	From   int
	FromAt scalar.Expr
	Count  int
	Valid  scalar.Expr
}

// CopyCommit commits the copies the thread has started since the last commit as a group.
type CopyCommit struct{}

// CopyWait waits until at most Pending of the thread's copy groups are in flight. The
// copied elements are then visible to the thread itself; other threads need a [Barrier]
// as well.
type CopyWait struct{ Pending int }

// ProxyFence makes the thread's stores to shared memory, including completed copies, visible
// to multiply-adds, which read it through the asynchronous proxy. The barrier between threads
// comes after it.
type ProxyFence struct{}

// Mma starts multiply-adds, in order, in all warp groups of the workgroup. Control flow must
// be uniform.
type Mma struct {
	Shape MmaShape
	Terms []MmaTerm
}

// MmaTerm is a multiply-add D += A·B. Sums names the variables that hold a thread's fragment
// of D, the accumulator. A is a tile in shared memory or, if Left is set, a fragment in
// registers: f32, or words of u32 with two 16-bit elements each, made by [Pack]. [MmaShape] defines
// the layout.
type MmaTerm struct {
	Sums []string
	// First makes it D = A·B: the previous values of the accumulator are ignored.
	First         bool
	LeftRegisters []string
	A, B          Tile
}

// MmaWait waits until at most Pending of the preceding [Mma] statements are in flight. The
// memory that completed ones read may then be overwritten, by other threads after a
// [Barrier]. Names are the variables of completed ones, accumulators and fragments of A,
// that are used afterwards: a compiler must not move such a use before the wait.
type MmaWait struct {
	Pending int
	Names   []string
}

// Pack stores two values, rounded to the 16-bit float Type, in the u32 variable Name: Low in
// the lower half, High in the upper half. It makes the registers of a fragment of A.
type Pack struct {
	Name      string
	Type      dtype.DType
	Low, High scalar.Expr
}

// Shuffle defines Name as the Value of the thread whose index in the workgroup is this
// thread's xor Xor, from 1 to below [Kernel.Warp] (a butterfly shuffle). Control flow must be
// uniform.
type Shuffle struct {
	Name  string
	Value scalar.Expr
	Xor   int
}

// Warp is the number of threads of a warp on NVIDIA's GPUs.
const Warp = 32

// Warp returns the number of threads a [Shuffle] of the kernel exchanges values among: the
// kernel's subgroup size if it has a single one, else [Warp].
func (k *Kernel) Warp() int {
	if k.Subgroups() > 0 {
		return k.Subgroup[0]
	}
	return Warp
}

// HasMma reports whether a statement of the kernel is an [Mma].
func (k *Kernel) HasMma() bool {
	found := false
	Walk(k.Body, func(s Stmt) {
		_, is := s.(*Mma)
		found = found || is
	})
	return found
}

// HasRoles reports whether a statement of the kernel is a [Roles].
func (k *Kernel) HasRoles() bool {
	return slices.ContainsFunc(k.Body, func(s Stmt) bool { _, is := s.(*Roles); return is })
}

// mbarrierBytes returns the shared memory of the kernel's mbarriers.
func (k *Kernel) mbarrierBytes() int {
	n := 0
	for _, m := range k.Mbarriers {
		n += mbarrierBytes * m.Len
	}
	return n
}
