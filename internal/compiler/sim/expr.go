package sim

import (
	"encoding/binary"
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// temp returns a column that is reused after the statement.
func (c *compiler) temp(t dtype.DType) column {
	pool := 1
	if t.IsFloat() {
		pool = 0
	}
	if c.used[pool] == len(c.temps[pool]) {
		c.temps[pool] = append(c.temps[pool], newColumn(t, c.m.threads))
	}
	c.used[pool]++
	return c.temps[pool][c.used[pool]-1]
}

// expr adds the steps that compute e and returns the column of its values. The column may be
// that of a variable and must not be written.
func (c *compiler) expr(e scalar.Expr) column {
	if col, ok := c.done[e]; ok {
		return col
	}
	if e.Type.IsComplex() && c.err == nil {
		c.err = c.m.launchError("complex numbers are not simulated")
	}
	var col column
	switch e.Op {
	case scalar.OpConst:
		col = c.constant(e)
	case scalar.OpVar:
		col = c.variable(e)
	default:
		col = c.operator(e)
	}
	c.done[e] = col
	return col
}

func (c *compiler) constant(e scalar.Expr) column {
	key := constant{e.Type, e.Bits}
	col, ok := c.fixed[key]
	if !ok {
		v, _ := e.Value()
		col = newColumn(e.Type, c.m.threads)
		col.fill(v)
		c.fixed[key] = col
	}
	return col
}

func (c *compiler) variable(e scalar.Expr) column {
	if kind, _ := loop.BuiltinOf(e.Name); kind != loop.NoBuiltin {
		col, ok := c.m.builtin[e.Name]
		if !ok {
			col = newColumn(e.Type, c.m.threads)
			c.m.builtin[e.Name] = col
		}
		return col
	}
	col := c.scope[e.Name]
	c.free(e.Name)
	checkRange(c, e, col)
	return col
}

// checkRange adds a check of a variable's range. A constant that was checked for the range in this
// block, or in one around it, is not checked again: each thread that runs here ran there.
func checkRange(c *compiler, e scalar.Expr, col column) {
	if e.Lo > e.Hi {
		return
	}
	if !c.variables[e.Name] {
		r := ranged{e.Name, e.Lo, e.Hi}
		if slices.Contains(c.checked, r) {
			return
		}
		c.checked = append(c.checked, r)
	}
	m, lo, hi := c.m, e.Lo, e.Hi
	c.add(func(active []int32) {
		for _, t := range active {
			if x := col.i[t]; x < lo || x > hi {
				m.fail(OutOfRange, t, e.Name, int(x), 0)
				return
			}
		}
	})
}

// operator adds the executor of an operation after those of its operands.
func (c *compiler) operator(e scalar.Expr) column {
	var args [3]column
	for i, a := range e.Args {
		args[i] = c.expr(a)
	}
	if c.err != nil {
		return newColumn(e.Type, c.m.threads)
	}
	out := c.temp(e.Type)
	switch e.Op {
	case scalar.OpLoad:
		c.load(c.m.arrays[e.Ref], args[0], out)
		return out
	case scalar.OpCheck:
		c.check(e, args[1])
		return args[0]
	case scalar.OpDiv, scalar.OpRem, scalar.OpFloorDiv, scalar.OpMod:
		if e.Type.IsInteger() {
			c.divisor(args[1])
		}
	}
	var s executor
	switch operand := e.Args[len(e.Args)-1].Type; {
	case operand.IsFloat():
		s = floatStep(e, args, out)
	case operand.IsInteger() && operand != dtype.U64:
		s = intStep(e, args, out)
	case operand == dtype.Bool:
		s = boolStep(e, args, out)
	}
	if s == nil {
		s = applyStep(e, args, out)
	}
	c.add(s)
	return out
}

// check records the code of threads whose condition is false; the status word keeps the
// maximum, independent of order.
func (c *compiler) check(e scalar.Expr, cond column) {
	m, code := c.m, uint32(e.Ref)
	c.add(func(active []int32) {
		for _, t := range active {
			if cond.i[t] == 0 {
				old := binary.LittleEndian.Uint32(m.status.data)
				binary.LittleEndian.PutUint32(m.status.data, max(old, code))
			}
		}
	})
}

// divisor fails for zeros.
func (c *compiler) divisor(d column) {
	m := c.m
	c.add(func(active []int32) {
		if m.opts.ZeroDivisors {
			return
		}
		for _, t := range active {
			if d.i[t] == 0 {
				m.fail(ZeroDivisor, t, "", 0, 0)
				return
			}
		}
	})
}
