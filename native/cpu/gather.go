package cpu

import (
	"math"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// gathered returns the address of a load as one whose elements kernels gather, where they do not access them in vectors or
// runs: those at any places, apart, in reverse, or in the order of other axes. Other addresses stay.
func (m *nestBuilder) gathered(a *address, offset scalar.Expr, buf *buffer) *address {
	in := instr{kind: opLoad, buf: buf, at: a, scalar: !a.wide}
	if !a.wide || a.mask != nil || !jit.Available() || !jit.HasGathers(buf.dtype) || buf.elems > math.MaxInt32 || in.isInKernels() {
		return a
	}
	sum := affineOf(offset).joined(buf.elems)
	if lanes, ok := m.alongLanes(sum); ok {
		return lanes
	}
	if a.general && a.index.class == classInt {
		a.span = buf.elems
	}
	return a
}

// alongLanes returns the address of a sum of multiples of coordinates, of which those along the lanes become the index of
// a lane, from 0 on, and the others terms; false for other sums.
func (m *nestBuilder) alongLanes(sum affine) (*address, bool) {
	a := &address{base: sum.constant, general: true, wide: true, span: 1, apart: true}
	index := loop.Int(0)
	for _, t := range sum.terms {
		v := m.named[t.of.Name]
		c := m.coords[t.of.Name]
		if t.of.Op != scalar.OpVar || t.of.Type != ir.I32 {
			return nil, false
		}
		if c == nil || !v.wide {
			at := m.expr(t.of)
			if at.wide {
				return nil, false
			}
			a.terms, a.level = append(a.terms, term{t.coef, at.reg}), max(a.level, at.level)
			continue
		}
		last := t.coef * (c.size - 1)
		if last > math.MaxInt32/2 || last < -math.MaxInt32/2 {
			return nil, false
		}
		a.apart = a.apart && max(t.coef, -t.coef) >= cacheLine/4
		index = scalar.Add(index, scalar.Mul(t.of, loop.Int(t.coef)))
		a.span += max(last, -last)
		if last < 0 { // the first element is that of the last point
			a.base, index = a.base+last, scalar.Sub(index, loop.Int(last))
		}
	}
	v := m.expr(scalar.Simplify(index))
	if !v.wide || a.span > math.MaxInt32 {
		return nil, false
	}
	a.index, a.level = v.reg, max(a.level, v.level)
	return a, true
}
