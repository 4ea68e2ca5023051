package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// padCost is the nanoseconds per element of a padded copy.
const padCost = 0.1

// padStep copies a box of a tensor row by row and fills the rest with a constant.
type padStep struct {
	from, to     *buffer
	fromAt       int   // element of the point 0, which may be out of bounds
	fromBy, dims []int // strides and sizes of all axes
	lo, hi       []int // the box [lo, hi)
	value        uint32
	rows, chunk  int
}

// newPad returns a step for code that is nothing but a padded copy of 32-bit floats in
// row-major order; nil for any other.
func newPad(code *fusion.Code, dims []int, buffers map[int]*buffer) *padStep {
	if len(code.Stages) > 0 || len(code.Points) > 0 || len(code.Rows) != 1 || code.Rows[0].Guarded || len(dims) == 0 {
		return nil
	}
	store := code.Rows[0]
	e := store.Value
	if e.Op != scalar.OpSelect || e.Args[1].Op != scalar.OpLoad || e.Args[2].Op != scalar.OpConst || e.Type.Size() != 4 || !e.Type.IsFloat() {
		return nil
	}
	p := &padStep{from: buffers[e.Args[1].Ref], to: buffers[store.Tensor.ID], dims: dims}
	if p.from == nil || p.to == nil || p.from.dtype != e.Type || p.to.dtype != e.Type || !scalar.Equal(scalar.Simplify(linear(dims, code.Outer)), scalar.Simplify(store.Offset)) {
		return nil
	}
	constant, _ := e.Args[2].Value()
	p.value = uint32(e.Type.FloatBits(constant.F))
	axes := map[string]int{}
	for i, v := range code.Outer {
		axes[v.Name] = i
		p.lo, p.hi, p.fromBy = append(p.lo, 0), append(p.hi, dims[i]), append(p.fromBy, 0)
	}
	if !p.bound(e.Args[0], axes) || !p.offset(e.Args[1].Args[0], 1, axes) || p.fromBy[len(dims)-1] != 1 {
		return nil
	}
	p.mergeAxes()
	last := len(p.dims) - 1
	p.rows = product(p.dims[:last])
	p.chunk = max(1, 16384/p.dims[last])
	return p
}

// mergeAxes makes the last axis part of the one before while all of it is inside the box and the elements
// are contiguous, as the channels of an image: rows are then longer.
func (p *padStep) mergeAxes() {
	for {
		last := len(p.dims) - 1
		n := p.dims[last]
		if last == 0 || p.lo[last] > 0 || p.hi[last] < n || p.fromBy[last-1] != n {
			return
		}
		p.dims = append(slices.Clone(p.dims[:last-1]), p.dims[last-1]*n)
		p.lo, p.hi, p.fromBy = p.lo[:last], p.hi[:last], p.fromBy[:last]
		p.lo[last-1], p.hi[last-1], p.fromBy[last-1] = p.lo[last-1]*n, p.hi[last-1]*n, 1
	}
}

// bound intersects the box with the points where a condition holds; false where it is no box.
func (p *padStep) bound(cond scalar.Expr, axes map[string]int) bool {
	if cond.Op == scalar.OpAnd {
		return p.bound(cond.Args[0], axes) && p.bound(cond.Args[1], axes)
	}
	if cond.Op < scalar.OpEq || cond.Op > scalar.OpGe || cond.Args[0].Type != ir.I32 {
		return false
	}
	a, b, strict, ok := atMost(cond)
	if !ok {
		return false
	}
	difference := affineOf(scalar.Sub(b, a))
	if len(difference.terms) != 1 {
		return false
	}
	t := difference.terms[0]
	i, known := axes[t.of.Name]
	if t.of.Op != scalar.OpVar || !known {
		return false
	}
	switch rest := difference.constant - strict; t.coef { // coef·x + rest ≥ 0
	case 1:
		p.lo[i] = max(p.lo[i], -rest)
	case -1:
		p.hi[i] = min(p.hi[i], rest+1)
	default:
		return false
	}
	return true
}

// offset decomposes the offset of the load inside the box, where the conditions that keep it
// in bounds hold.
func (p *padStep) offset(e scalar.Expr, by int, axes map[string]int) bool {
	sum := affineOf(e)
	p.fromAt += by * sum.constant
	for _, t := range sum.terms {
		i, known := axes[t.of.Name]
		switch {
		case t.of.Op == scalar.OpVar && known:
			p.fromBy[i] += by * t.coef
		case t.of.Op == scalar.OpSelect:
			inside := &padStep{lo: make([]int, len(p.lo)), hi: append([]int(nil), p.dims...)}
			if !inside.bound(t.of.Args[0], axes) || !inside.holds(p) || !p.offset(t.of.Args[1], by*t.coef, axes) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// holds reports whether the box of q is inside that of p.
func (p *padStep) holds(q *padStep) bool {
	for i := range p.lo {
		if q.lo[i] < p.lo[i] || q.hi[i] > p.hi[i] {
			return false
		}
	}
	return true
}

func (p *padStep) run(r *runner) { r.job.run(p, (p.rows+p.chunk-1)/p.chunk) }

func (p *padStep) do(_, chunk int) {
	first := chunk * p.chunk
	p.write(first, min(p.rows, first+p.chunk), view[uint32](p.to)[first*p.dims[len(p.dims)-1]:])
}

// write writes the rows in [first, end), in runs along the last axis of rows.
func (p *padStep) write(first, end int, to []uint32) {
	last := len(p.dims) - 1
	n, lo, hi := p.dims[last], p.lo[last], max(p.lo[last], p.hi[last])
	from, along := view[uint32](p.from), len(p.dims)-2
	for row := first; row < end; {
		at, inside, rest := p.fromAt+lo, lo < hi, row
		place, rows, step := 0, 1, 0 // of the first row of the run, along its axis
		for i := along; i >= 0; i-- {
			k := rest % p.dims[i]
			rest /= p.dims[i]
			if i == along {
				place, rows, step = k, min(p.dims[i]-k, end-row), p.fromBy[i]
				continue
			}
			inside = inside && k >= p.lo[i] && k < p.hi[i]
			at += k * p.fromBy[i]
		}
		out := to[(row-first)*n:][:rows*n]
		row += rows
		begin, stop := 0, rows // of the rows in the box
		if along >= 0 {
			begin, stop = min(max(p.lo[along]-place, 0), rows), min(max(p.hi[along]-place, 0), rows)
		}
		if !inside || begin >= stop {
			fill(out, p.value)
			continue
		}
		fill(out[:begin*n], p.value)
		p.copyRows(out[begin*n:stop*n], from, at+(place+begin)*step, step, n, lo, hi)
		fill(out[stop*n:], p.value)
	}
}

// copyRows writes rows in the box: elements of from, and the constant before lo and from hi on.
func (p *padStep) copyRows(out, from []uint32, at, step, n, lo, hi int) {
	value := p.value
	for i := range out[:lo] {
		out[i] = value
	}
	for begin := lo; begin < len(out); begin += n {
		copy(out[begin:begin+hi-lo], from[at:])
		at += step
		after := out[begin+hi-lo : min(begin+n, len(out))] // to the next row's first element in the box
		for i := range after {
			after[i] = value
		}
	}
}
