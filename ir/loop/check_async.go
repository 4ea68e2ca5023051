package loop

import (
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
)

// async checks an asynchronous statement.
func (c *checker) async(s Stmt, uniform bool) error {
	switch s := s.(type) {
	case *CopyAsync:
		return c.copyAsync(s)
	case *CopyWait:
		return c.pending(s.Pending)
	case *CopyCommit, *ProxyFence:
		return nil
	case *Mma:
		return c.mma(s, uniform)
	case *Pack:
		return c.pack(s)
	case *MmaWait:
		return c.mmaWait(s, uniform)
	case *CopyTMA:
		return c.copyTMA(s, uniform)
	case *Arrive:
		return c.mbarrier(s.Mbarrier, uniform, s.At)
	case *Await:
		return c.mbarrier(s.Mbarrier, uniform, s.At, s.Phase)
	case *Roles:
		return c.roles(s)
	}
	return c.fail("unknown statement")
}

func (c *checker) copyAsync(s *CopyAsync) error {
	if _, err := c.positions("the index", s.ToAt, s.FromAt); err != nil {
		return err
	}
	width := 1
	if s.To >= 0 && s.To < len(c.k.Arrays) {
		width = c.k.Arrays[s.To].Width // any width is allowed
	}
	to, err := c.access(s.To, width, stores, s.ToAt)
	if err != nil {
		return err
	}
	from, err := c.access(s.From, 1, loads, s.FromAt)
	if err != nil {
		return err
	}
	bytes := s.Count * DeviceSize(from.DType)
	switch {
	case to.Space != Shared || from.Space != Storage || from.Access == Atomic:
		return c.fail("copy from %s to %s; it must be from storage to shared memory", from.Name, to.Name)
	case to.DType != from.DType:
		return c.fail("copy from %s of %s to %s of %s; types must be equal", from.Name, from.DType, to.Name, to.DType)
	case bytes != 4 && bytes != 8 && bytes != 16:
		return c.fail("copy of %d bytes; it must be 4, 8 or 16", bytes)
	case s.Valid == nil:
		return nil
	}
	_, err = c.exprs(dtype.Bool, "the condition", s.Valid)
	return err
}

func (c *checker) pending(n int) error {
	if n < 0 {
		return c.fail("wait for %d groups; it must be 0 or greater", n)
	}
	return nil
}

// mma checks the shapes of multiply-adds and that control flow is uniform.
func (c *checker) mma(s *Mma, uniform bool) error {
	if err := c.requireUniform(uniform); err != nil {
		return err
	}
	a := s.Shape
	switch a.Operand {
	case dtype.F16, dtype.BF16, dtype.F32:
	default:
		return c.fail("unknown multiply-add of %s", a.Operand)
	}
	switch {
	case a.N < 8 || a.N > 256 || a.N%8 != 0:
		return c.fail("a multiply-add has the invalid column count %d", a.N)
	case c.threads%WarpGroup != 0:
		return c.fail("%d threads; a multiply-add needs a multiple of %d", c.threads, WarpGroup)
	case c.first%WarpGroup != 0:
		return c.fail("warp group at thread %d; it must be a multiple of %d", c.first, WarpGroup)
	}
	for i := range s.Terms {
		if err := c.term(a, &s.Terms[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) term(a MmaShape, t *MmaTerm) error {
	if err := c.registers("sums", t.Sums, a.Sums(), dtype.F32); err != nil {
		return err
	}
	if t.LeftRegisters == nil {
		if err := c.tile(a, "A", &t.A); err != nil {
			return err
		}
	} else if err := c.registers("registers of A", t.LeftRegisters, leftRegisters, a.LeftType()); err != nil {
		return err
	}
	return c.tile(a, "B", &t.B)
}

func (c *checker) mmaWait(s *MmaWait, uniform bool) error {
	if err := c.requireUniform(uniform); err != nil {
		return err
	}
	if err := c.pending(s.Pending); err != nil {
		return err
	}
	return c.registers("variables", s.Names, len(s.Names), dtype.F32, dtype.U32)
}

// registers checks the variables that hold a fragment.
func (c *checker) registers(what string, names []string, want int, types ...dtype.DType) error {
	if len(names) != want {
		return c.fail("%d %s given; it needs %d", len(names), what, want)
	}
	for i, name := range names {
		l, ok := c.scope[name]
		switch {
		case !ok || !l.mutable || !slices.Contains(types, l.typ):
			return c.fail("%s is not a Var of %s", name, types[0])
		case slices.Contains(names[:i], name):
			return c.fail("register %s is given twice", name)
		}
		c.vary(l.binding)
	}
	return nil
}

// pack checks a pair of values and their destination register.
func (c *checker) pack(s *Pack) error {
	if s.Type != dtype.F16 && s.Type != dtype.BF16 {
		return c.fail("pack of %s; it must be f16 or bf16", s.Type)
	}
	if _, err := c.exprs(dtype.F32, "the value", s.Low, s.High); err != nil {
		return err
	}
	return c.registers("variables", []string{s.Name}, 1, dtype.U32)
}

func (c *checker) shuffle(s *Shuffle, uniform bool) ([]string, error) {
	if err := c.requireUniform(uniform); err != nil {
		return nil, err
	}
	if _, err := c.exprs(dtype.Invalid, "the value", s.Value); err != nil {
		return nil, err
	}
	switch warp := c.k.Warp(); {
	case s.Xor < 1 || s.Xor >= warp:
		return nil, c.fail("shuffle by %d; it must be below %d", s.Xor, warp)
	case c.k.Threads()%warp != 0:
		return nil, c.fail("%d threads; a shuffle needs a multiple of %d", c.k.Threads(), warp)
	case DeviceSize(s.Value.Type) != 4:
		return nil, c.fail("shuffle of %s; it must be 32 bits wide", s.Value.Type)
	}
	return []string{s.Name}, c.define(s, s.Name, s.Value.Type, false, false)
}

func (c *checker) tile(a MmaShape, what string, t *Tile) error {
	if _, err := c.exprs(dtype.I32, "the index", t.At); err != nil {
		return err
	}
	array, err := c.access(t.Array, 1, loads, t.At)
	if err != nil {
		return err
	}
	depth := t.Depth
	if depth == 0 {
		depth = RowElements(a.Operand)
	}
	switch {
	case array.Space != Shared || array.DType != a.Operand:
		return c.fail("operand %s is %s of %s; it must be shared memory of %s", what, array.Name, array.DType, a.Operand)
	case t.Depth != 0 && (a.Operand == dtype.F32 || t.Depth < 0 || t.Depth%8 != 0):
		return c.fail("operand %s of %s has the unsupported panel depth %d", what, a.Operand, t.Depth)
	case t.K < 0 || t.K%a.K() != 0 || t.K+a.K() > depth:
		return c.fail("operand %s starts at %d of %d on axis k", what, t.K, depth)
	}
	return nil
}

// TileAlign is the alignment of a [Tile] in shared memory.
const TileAlign = 1024
