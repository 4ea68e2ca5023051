package cpu

import (
	"math"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// gathered returns the address of a load as one whose elements kernels gather, where they do not access them in vectors or
// runs: those at any places, apart, in reverse, or in the order of other axes. Other addresses stay.
func (m *nestBuilder) gathered(a *address, offset scalar.Expr, buf *buffer) *address {
	in := instr{kind: opLoad, buf: buf, at: a, scalar: !a.wide}
	if !a.wide || a.mask != nil || !jit.Available() || !jit.HasGathers(buf.dtype) || buf.elems < 2 || in.isInKernels() {
		return a
	}
	lane := ir.I32
	if kindOf(buf.dtype) == kind64 {
		lane = ir.I64
	}
	if lanes, ok := m.alongLanes(affineOf(offset).joined(buf.elems), lane); ok {
		return lanes
	}
	switch {
	case !a.general:
	case classOf(lane) == a.index.class && (lane == ir.I64 || buf.elems <= math.MaxInt32):
		a.span = buf.elems
	case lane == ir.I64:
		v := m.expr(scalar.Convert(offset, lane))
		a.index, a.level, a.span = v.reg, v.level, buf.elems
	}
	return a
}

// alongLanes returns the address of a sum of multiples of coordinates, of which those along the lanes become the index of
// a lane, from 0 on, of the given type, and the others terms; false for other sums.
func (m *nestBuilder) alongLanes(sum affine, lane ir.DType) (*address, bool) {
	a := &address{base: sum.constant, general: true, wide: true, span: 1, apart: true}
	number := func(x int) scalar.Expr { return scalar.ConstI(lane, int64(x)) }
	index := number(0)
	for _, t := range sum.terms {
		c := m.coords[t.of.Name]
		if t.of.Op != scalar.OpVar || t.of.Type != ir.I32 {
			return nil, false
		}
		if c == nil || !m.named[t.of.Name].wide {
			v := m.expr(t.of)
			if v.wide {
				return nil, false
			}
			a.terms, a.level = append(a.terms, term{t.coef, v.reg}), max(a.level, v.level)
			continue
		}
		last := t.coef * (c.size - 1)
		if last > math.MaxInt32/2 || last < -math.MaxInt32/2 {
			return nil, false
		}
		a.apart = a.apart && max(t.coef, -t.coef) >= cacheLine/4
		index = scalar.Add(index, scalar.Mul(scalar.Convert(t.of, lane), number(t.coef)))
		a.span += max(last, -last)
		if last < 0 { // the first element is that of the last point
			a.base, index = a.base+last, scalar.Sub(index, number(last))
		}
	}
	v := m.expr(scalar.Simplify(index))
	if !v.wide || a.span < 2 || a.span > math.MaxInt32 {
		return nil, false
	}
	a.index, a.level = v.reg, max(a.level, v.level)
	return a, true
}
