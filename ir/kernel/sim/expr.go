package sim

import (
	"encoding/binary"
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// temp returns a column that is free until the next statement.
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

// expr adds the steps that compute e and returns where its values will be. The
// column may be that of a variable: it is not to be written.
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
	col, m := c.scope[e.Name], c.m
	c.free(e.Name)
	if e.Lo <= e.Hi {
		c.add(func(active []int32) {
			for _, t := range active {
				if x := col.i[t]; x < e.Lo || x > e.Hi {
					m.fail(OutOfRange, t, e.Name, int(x), 0)
					return
				}
			}
		})
	}
	return col
}

// operator adds the step of an operation after those of its operands.
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
	var s step
	switch operand := e.Args[len(e.Args)-1].Type; {
	case operand.IsFloat():
		s = floatStep(e, args, out)
	case operand.IsInteger() && operand != dtype.U64:
		s = intStep(e, args, out)
	}
	if s == nil {
		s = applyStep(e, args, out)
	}
	c.add(s)
	return out
}

// check records the code of threads whose condition is false: the largest of
// all stays in the status word, whatever the order.
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

// divisor looks for zeros.
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

// applyStep does any operation, by the definition of package scalar.
func applyStep(e scalar.Expr, args [3]column, out column) step {
	n := len(e.Args)
	return func(active []int32) {
		for _, t := range active {
			var v [3]scalar.Value
			for i, a := range args[:n] {
				v[i] = a.value(t)
			}
			out.set(t, scalar.Apply(e, v))
		}
	}
}

// rounder returns the rounding to float type t.
func rounder(t dtype.DType) func(float64) float64 {
	switch t {
	case dtype.F32:
		return func(x float64) float64 { return float64(float32(x)) }
	case dtype.F64:
		return func(x float64) float64 { return x }
	}
	return t.Round
}

// floatStep is a faster way for the common operations on floats, nil for all
// others.
func floatStep(e scalar.Expr, args [3]column, out column) step {
	a, b, c, o := args[0].f, args[1].f, args[2].f, out.f
	round := rounder(e.Type)
	switch e.Op {
	case scalar.OpFma:
		return func(active []int32) {
			for _, t := range active {
				o[t] = round(math.FMA(a[t], b[t], c[t]))
			}
		}
	case scalar.OpSelect:
		cond := args[0].i
		return func(active []int32) {
			for _, t := range active {
				if o[t] = c[t]; cond[t] != 0 {
					o[t] = b[t]
				}
			}
		}
	}
	if f := floatBinary[e.Op]; f != nil {
		return func(active []int32) {
			for _, t := range active {
				o[t] = round(f(a[t], b[t]))
			}
		}
	}
	if f := floatCompare[e.Op]; f != nil {
		return func(active []int32) {
			for _, t := range active {
				if out.i[t] = 0; f(a[t], b[t]) {
					out.i[t] = 1
				}
			}
		}
	}
	return nil
}

var floatBinary = map[scalar.Op]func(a, b float64) float64{
	scalar.OpAdd: func(a, b float64) float64 { return a + b },
	scalar.OpSub: func(a, b float64) float64 { return a - b },
	scalar.OpMul: func(a, b float64) float64 { return a * b },
	scalar.OpDiv: func(a, b float64) float64 { return a / b },
	scalar.OpMin: func(a, b float64) float64 { return min(a, b) },
	scalar.OpMax: func(a, b float64) float64 { return max(a, b) },
}

var floatCompare = map[scalar.Op]func(a, b float64) bool{
	scalar.OpEq: func(a, b float64) bool { return a == b },
	scalar.OpNe: func(a, b float64) bool { return a != b },
	scalar.OpLt: func(a, b float64) bool { return a < b },
	scalar.OpLe: func(a, b float64) bool { return a <= b },
	scalar.OpGt: func(a, b float64) bool { return a > b },
	scalar.OpGe: func(a, b float64) bool { return a >= b },
}

// intStep is a faster way for the common operations on integers other than
// u64, nil for all others.
func intStep(e scalar.Expr, args [3]column, out column) step {
	a, b, c, o := args[0].i, args[1].i, args[2].i, out.i
	wrap := e.Type.Wrap
	switch e.Op {
	case scalar.OpSelect:
		return func(active []int32) {
			for _, t := range active {
				if o[t] = c[t]; a[t] != 0 {
					o[t] = b[t]
				}
			}
		}
	case scalar.OpConvert:
		if e.Type.IsInteger() {
			return func(active []int32) {
				for _, t := range active {
					o[t] = wrap(a[t])
				}
			}
		}
	}
	f := intBinary[e.Op]
	if f == nil {
		return nil
	}
	return func(active []int32) {
		for _, t := range active {
			o[t] = wrap(f(a[t], b[t]))
		}
	}
}

// intBinary holds operations on integers in 64 bits; wrapping the result to
// its type makes it right. A zero divisor counts as one.
var intBinary = map[scalar.Op]func(a, b int64) int64{
	scalar.OpAdd: func(a, b int64) int64 { return a + b },
	scalar.OpSub: func(a, b int64) int64 { return a - b },
	scalar.OpMul: func(a, b int64) int64 { return a * b },
	scalar.OpMin: func(a, b int64) int64 { return min(a, b) },
	scalar.OpMax: func(a, b int64) int64 { return max(a, b) },
	scalar.OpAnd: func(a, b int64) int64 { return a & b },
	scalar.OpOr:  func(a, b int64) int64 { return a | b },
	scalar.OpXor: func(a, b int64) int64 { return a ^ b },
	scalar.OpDiv: func(a, b int64) int64 {
		if b == 0 {
			return a
		}
		return a / b
	},
	scalar.OpRem: func(a, b int64) int64 {
		if b == 0 {
			return 0
		}
		return a % b
	},
	scalar.OpEq: func(a, b int64) int64 { return bit(a == b) },
	scalar.OpNe: func(a, b int64) int64 { return bit(a != b) },
	scalar.OpLt: func(a, b int64) int64 { return bit(a < b) },
	scalar.OpLe: func(a, b int64) int64 { return bit(a <= b) },
	scalar.OpGt: func(a, b int64) int64 { return bit(a > b) },
	scalar.OpGe: func(a, b int64) int64 { return bit(a >= b) },
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
