package loop

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

func (c *checker) value(s Stmt, name string, e scalar.Expr, mutable bool) ([]string, error) {
	same, err := c.exprs(dtype.Invalid, "the value", e)
	if err != nil {
		return nil, err
	}
	return []string{name}, c.define(s, name, e.Type, same, mutable)
}

func (c *checker) assign(s *Assign, uniform bool) error {
	l, ok := c.scope[s.Name]
	if !ok || !l.mutable {
		return c.fail("%s is not defined by a Var", s.Name)
	}
	same, err := c.exprs(l.typ, "the value", s.Value)
	if err != nil {
		return err
	}
	if !same || !uniform {
		c.vary(l.binding)
	}
	return nil
}

// vary notes that what is assigned to a variable differs between threads.
func (c *checker) vary(b binding) {
	if !c.varying[b] {
		c.varying[b], c.late = true, true
	}
}

// The ways to access an array.
const (
	loads  = false
	stores = true
)

// positions checks expressions that are I32 or I64, as exprs does.
func (c *checker) positions(what string, list ...scalar.Expr) (same bool, err error) {
	if same, err = c.exprs(dtype.Invalid, what, list...); err != nil {
		return false, err
	}
	for _, e := range list {
		if e.Type != dtype.I32 && e.Type != dtype.I64 {
			return false, c.fail("%s is %s, not i32", what, e.Type)
		}
	}
	return same, nil
}

// access checks that array i exists and is accessed as it allows.
func (c *checker) access(i, width int, write bool, at scalar.Expr) (Array, error) {
	if i < 0 || i >= len(c.k.Arrays) {
		return Array{}, c.fail("there is no array %d", i)
	}
	a := c.k.Arrays[i]
	switch {
	case write && a.Access == Atomic:
		return a, c.fail("array %s is atomic and changed by atomic operations alone", a.Name)
	case a.Width != width:
		return a, c.fail("array %s has width %d, the access %d", a.Name, a.Width, width)
	case write && a.Space == Storage && a.Access == Read:
		return a, c.fail("array %s is only read", a.Name)
	}
	switch {
	case at.Type == dtype.I64 && a.Space == Storage:
	case at.Type != dtype.I32:
		return a, c.fail("the index of %s is %s, not i32", a.Name, at.Type)
	case a.Len > MaxIndex:
		return a, c.fail("the index of %s is i32, which does not count its %d elements", a.Name, a.Len)
	}
	return a, nil
}

func (c *checker) store(i int, at scalar.Expr, width int, values ...scalar.Expr) error {
	if _, err := c.positions("the index", at); err != nil {
		return err
	}
	a, err := c.access(i, width, stores, at)
	if err != nil {
		return err
	}
	_, err = c.exprs(a.DType, "the value", values...)
	return err
}

func (c *checker) loadVec(s *LoadVec) ([]string, error) {
	same, err := c.positions("the index", s.At)
	if err != nil {
		return nil, err
	}
	if len(s.Names) == 1 {
		return nil, c.fail("one name is no vector")
	}
	a, err := c.access(s.Array, len(s.Names), loads, s.At)
	if err != nil {
		return nil, err
	}
	for _, name := range s.Names {
		if err := c.define(s, name, a.DType, same && a.isConstant(), false); err != nil {
			return nil, err
		}
	}
	return s.Names, nil
}

func (c *checker) loop(s *For, uniform bool) error {
	same, err := c.positions("a bound", s.Start, s.End, s.Step)
	if err != nil {
		return err
	}
	if step, ok := s.Step.IntConst(); !ok || step < 1 {
		return c.fail("the step is no positive constant")
	}
	if s.Unroll {
		_, start := s.Start.IntConst()
		if _, end := s.End.IntConst(); !start || !end {
			return c.fail("the bounds of an unrolled loop are not constant")
		}
	}
	if err := c.define(s, s.Var, s.Type(), same, false); err != nil {
		return err
	}
	err = c.block(s.Body, uniform && same)
	delete(c.scope, s.Var)
	return err
}

func (c *checker) together(uniform bool) error {
	if !uniform {
		return c.fail("not all threads of a workgroup come here together")
	}
	return nil
}

func (c *checker) atomic(s *AtomicOp) ([]string, error) {
	if s.Array < 0 || s.Array >= len(c.k.Arrays) || c.k.Arrays[s.Array].Access != Atomic {
		return nil, c.fail("%s is not atomic", c.k.ArrayName(s.Array))
	}
	switch s.Op {
	case scalar.OpAdd, scalar.OpMax, scalar.OpMin, scalar.OpOr:
	default:
		return nil, c.fail("%s is no atomic operation", s.Op)
	}
	t := c.k.Arrays[s.Array].DType
	if t.IsFloat() && s.Op != scalar.OpAdd {
		return nil, c.fail("%s is no atomic operation on %s", s.Op, t)
	}
	if _, err := c.positions("the index", s.At); err != nil {
		return nil, err
	}
	if _, err := c.exprs(t, "the value", s.Value); err != nil || s.Old == "" {
		return nil, err
	}
	return []string{s.Old}, c.define(s, s.Old, t, false, false)
}

func (c *checker) subgroup(s *Subgroup, uniform bool) ([]string, error) {
	if c.k.Subgroup == [2]int{} {
		return nil, c.fail("the kernel states no subgroup sizes")
	}
	switch s.Op {
	case scalar.OpAdd, scalar.OpMax, scalar.OpMin:
	default:
		return nil, c.fail("%s is no subgroup operation", s.Op)
	}
	if err := c.together(uniform); err != nil {
		return nil, err
	}
	if _, err := c.exprs(dtype.Invalid, "the value", s.Value); err != nil {
		return nil, err
	}
	if !s.Value.Type.IsFloat() && !s.Value.Type.IsInteger() {
		return nil, c.fail("a value of type %s cannot be combined", s.Value.Type)
	}
	return []string{s.Name}, c.define(s, s.Name, s.Value.Type, false, false)
}
