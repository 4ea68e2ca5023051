package loop

import (
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// What a thread asks for here is done beside what it does next. Until it has
// waited, memory and registers that take part are out of bounds: for the
// simulator, touching them is a fault.

// CopyAsync begins a copy of Count neighbouring elements, 4, 8 or 16 bytes
// aligned to as many, from a storage array of width 1 to a shared one of the same
// type. ToAt counts elements in a shared array of vectors too. Where Valid is given and
// false, zeros come instead and nothing is read.
type CopyAsync struct {
	To     int
	ToAt   scalar.Expr
	From   int
	FromAt scalar.Expr
	Count  int
	Valid  scalar.Expr
}

// CopyCommit makes a group of the copies that a thread has begun since the last.
type CopyCommit struct{}

// CopyWait waits until at most Pending groups of the thread's copies are under
// way. What has arrived is there for the thread itself; the others need a
// [Barrier] too.
type CopyWait struct{ Pending int }

// ProxyFence makes what the thread has stored to shared memory, by copies that
// have arrived too, visible to multiply-adds, which read it by another way. The
// barrier between threads comes after it.
type ProxyFence struct{}

// Mma begins multiply-adds of all warp groups of the workgroup, one after
// another. All threads come to it together.
type Mma struct {
	Atom  Atom
	Terms []MmaTerm
}

// MmaTerm is one multiply-add, D += A·B. Sums names the variables that hold a
// thread's part of D, and A is a tile in shared memory or, named by Left, in
// registers, of f32 or, by twos, of 16 bits in words of u32 that [Pack] fills:
// see [Atom] for which elements they are.
type MmaTerm struct {
	Sums []string
	// First says that it is D = A·B: what the variables held does not count.
	First bool
	Left  []string
	A, B  Tile
}

// MmaWait waits until at most Pending of the [Mma] statements before it are
// under way. Memory that those before these read can be written then, by other
// threads after a [Barrier]. Names are the variables of theirs, sums and parts of
// A, that are used from here on: a compiler must not move a use of them to
// before the wait.
type MmaWait struct {
	Pending int
	Names   []string
}

// Pack puts two values, rounded to the 16-bit float Type, into the variable Name of
// u32: Low into its lower half, High into the upper one. It is how a part of A
// comes to registers.
type Pack struct {
	Name      string
	Type      dtype.DType
	Low, High scalar.Expr
}

// Shuffle names the value that the thread has whose number within the workgroup
// differs from the thread's own in the bits of Xor, from 1 on and below
// [Kernel.Warp]. All threads come to it together.
type Shuffle struct {
	Name  string
	Value scalar.Expr
	Xor   int
}

// Warp is how many neighbouring threads are a warp on NVIDIA's GPUs.
const Warp = 32

// Warp returns how many neighbouring threads a [Shuffle] of the kernel is among: those of
// a subgroup where it states their one size, else [Warp].
func (k *Kernel) Warp() int {
	if k.Subgroups() > 0 {
		return k.Subgroup[0]
	}
	return Warp
}

func (*CopyAsync) stmt()  {}
func (*CopyCommit) stmt() {}
func (*CopyWait) stmt()   {}
func (*ProxyFence) stmt() {}
func (*Mma) stmt()        {}
func (*MmaWait) stmt()    {}
func (*Pack) stmt()       {}
func (*Shuffle) stmt()    {}

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

// mbarrierBytes is the shared memory that the kernel's barriers take.
func (k *Kernel) mbarrierBytes() int {
	n := 0
	for _, m := range k.Mbarriers {
		n += mbarrierBytes * m.Len
	}
	return n
}

// exprs returns the expressions of the tiles in shared memory.
func (s *Mma) exprs() []scalar.Expr {
	var out []scalar.Expr
	for _, t := range s.Terms {
		if t.Left == nil {
			out = append(out, t.A.At)
		}
		out = append(out, t.B.At)
	}
	return out
}

// arrays shows the array of each tile.
func (s *Mma) arrays(f func(array *int)) {
	for i := range s.Terms {
		t := &s.Terms[i]
		if t.Left == nil {
			f(&t.A.Array)
		}
		f(&t.B.Array)
	}
}

// mapped returns a copy with expressions, names and arrays taken through f.
func (s *Mma) mapped(expr func(scalar.Expr) scalar.Expr, name func(string) string) *Mma {
	out := &Mma{Atom: s.Atom, Terms: make([]MmaTerm, len(s.Terms))}
	for i, t := range s.Terms {
		t.Sums, t.Left = mapNames(t.Sums, name), mapNames(t.Left, name)
		if t.Left == nil {
			t.A.At = expr(t.A.At)
		}
		t.B.At = expr(t.B.At)
		out.Terms[i] = t
	}
	return out
}

func mapNames(list []string, f func(string) string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = f(n)
	}
	return out
}
