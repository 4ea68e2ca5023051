package onnx

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// foldDims computes an op on sizes, which may be symbolic. It reports whether it has set the
// results; the graph computes ops that it does not know.
func (c *call) foldDims() bool {
	if c.n.domain != "" {
		return false
	}
	switch c.n.op {
	case "Shape":
		return c.foldShape()
	case "Size":
		if len(c.in) == 1 && c.in[0] != nil {
			c.out = []*value{newDims(Int64, []ir.Dim{c.in[0].typ.Shape.Size()}, 0)}
		}
		return len(c.out) > 0
	case "Equal":
		return foldEqual(c)
	case "Where":
		return foldWhere(c)
	}
	symbolic := slices.ContainsFunc(c.in, func(v *value) bool { return v != nil && v.dims != nil })
	fold, ok := dimFolds[c.n.op]
	if !symbolic || !ok || c.in[0] == nil {
		return false
	}
	x, ok := c.in[0].sizes(c.im)
	if !ok {
		return false
	}
	out, rank, ok := fold(c, x)
	if ok {
		elem := c.in[0].elem
		if c.n.op == "Cast" {
			elem = Element(c.int("to", 0))
		}
		v := newDims(elem, out, rank)
		v.from = c.sources()
		v.axes = dimMoves[c.n.op] && !slices.ContainsFunc(c.in, func(v *value) bool { return v != nil && v.dims != nil && !v.axes })
		c.out = []*value{v}
	}
	return ok
}

func (c *call) foldShape() bool {
	if len(c.in) != 1 || c.in[0] == nil || c.in[0].isList() {
		return false
	}
	shape := c.in[0].typ.Shape
	n := shape.Rank()
	within := func(x int) int {
		if x < 0 {
			x += n
		}
		return min(max(x, 0), n)
	}
	from, to := within(c.int("start", 0)), within(c.int("end", n))
	v := newDims(Int64, shape[from:max(from, to)], 1)
	v.axes = true
	c.out = []*value{v}
	return true
}

// foldEqual compares sizes with numbers, as PyTorch does to find those of an Expand that are -1.
func foldEqual(c *call) bool {
	if len(c.in) != 2 || c.in[0] == nil || c.in[1] == nil || c.in[0].dims == nil && c.in[1].dims == nil {
		return false
	}
	x, okX := c.in[0].sizes(c.im)
	y, okY := c.in[1].sizes(c.im)
	if !okX || !okY || min(len(x), len(y)) == 0 || len(x) != len(y) && len(x) != 1 && len(y) != 1 {
		return false
	}
	var equal []int64
	for i := range max(len(x), len(y)) {
		a, b := x[min(i, len(x)-1)], y[min(i, len(y)-1)]
		n, numberA := constant(a)
		m, numberB := constant(b)
		switch {
		case a == b:
			equal = append(equal, 1)
		case numberA && numberB || numberA && n < 0 && c.in[1].axes || numberB && m < 0 && c.in[0].axes:
			equal = append(equal, 0)
		default:
			return false
		}
	}
	known := ir.Ints(ir.Bool, equal)
	if max(c.in[0].typ.Shape.Rank(), c.in[1].typ.Shape.Rank()) == 1 {
		known = ir.Ints(ir.Bool, equal, len(equal))
	}
	c.out = []*value{{elem: Bool, typ: known.Type(), known: known, from: c.sources()}}
	return true
}

// foldWhere chooses sizes by a condition that is known.
func foldWhere(c *call) bool {
	if len(c.in) != 3 || c.in[0] == nil || c.in[1] == nil || c.in[2] == nil || c.in[1].dims == nil && c.in[2].dims == nil {
		return false
	}
	cond := c.in[0].array(c.im)
	x, okX := c.in[1].sizes(c.im)
	y, okY := c.in[2].sizes(c.im)
	if cond == nil || len(cond.Dims) > 1 || !okX || !okY {
		return false
	}
	n := max(len(cond.I), len(x), len(y))
	for _, k := range []int{len(cond.I), len(x), len(y)} {
		if k != n && k != 1 {
			return false
		}
	}
	out := make([]ir.Dim, n)
	for i := range out {
		if out[i] = y[min(i, len(y)-1)]; cond.I[min(i, len(cond.I)-1)] != 0 {
			out[i] = x[min(i, len(x)-1)]
		}
	}
	v := newDims(c.in[1].elem, out, max(len(cond.Dims), c.in[1].typ.Shape.Rank(), c.in[2].typ.Shape.Rank()))
	v.axes, v.from = (c.in[1].axes || c.in[1].dims == nil) && (c.in[2].axes || c.in[2].dims == nil), c.sources()
	c.out = []*value{v}
	return true
}

// dimMoves are the ops of dimFolds whose results are elements of their operands.
var dimMoves = map[string]bool{
	"Identity": true, "Cast": true, "Gather": true, "Slice": true, "Concat": true, "Squeeze": true, "Unsqueeze": true, "Reshape": true,
}

// dimFolds are the ops on sizes: from the elements of the first operand to those of the result and
// its number of axes.
var dimFolds = map[string]func(c *call, x []ir.Dim) (out []ir.Dim, rank int, ok bool){
	"Identity": func(c *call, x []ir.Dim) ([]ir.Dim, int, bool) { return x, c.in[0].typ.Shape.Rank(), true },
	"Cast": func(c *call, x []ir.Dim) ([]ir.Dim, int, bool) {
		to := Element(c.int("to", 0))
		return x, c.in[0].typ.Shape.Rank(), to == Int64 || to == Int32
	},
	"Gather":     foldGather,
	"Slice":      foldSlice,
	"Concat":     foldConcat,
	"Squeeze":    func(c *call, x []ir.Dim) ([]ir.Dim, int, bool) { return x, 0, len(x) == 1 },
	"Unsqueeze":  func(c *call, x []ir.Dim) ([]ir.Dim, int, bool) { return x, 1, c.in[0].typ.Shape.Rank() == 0 },
	"Reshape":    foldReshape,
	"ReduceProd": foldProduct,
	"Add":        foldPairs(func(x, y ir.Dim) (ir.Dim, bool) { return x.Add(y), true }),
	"Sub":        foldPairs(func(x, y ir.Dim) (ir.Dim, bool) { return x.Sub(y), true }),
	"Mul":        foldPairs(func(x, y ir.Dim) (ir.Dim, bool) { return x.Mul(y), true }),
	"Div": foldPairs(func(x, y ir.Dim) (ir.Dim, bool) {
		q, err := x.Div(y)
		return q, err == nil
	}),
	"Max": foldPairs(func(x, y ir.Dim) (ir.Dim, bool) { return x, x == y }),
	"Min": foldPairs(func(x, y ir.Dim) (ir.Dim, bool) { return x, x == y }),
}

func foldGather(c *call, x []ir.Dim) (out []ir.Dim, rank int, ok bool) {
	if !c.has(1) || c.in[0].typ.Shape.Rank() != 1 {
		return nil, 0, false
	}
	a := c.in[1].array(c.im)
	if a == nil || len(a.Dims) > 1 {
		return nil, 0, false
	}
	for _, i := range a.I {
		if i < 0 {
			i += int64(len(x))
		}
		if i < 0 || int(i) >= len(x) {
			return nil, 0, false
		}
		out = append(out, x[i])
	}
	return out, len(a.Dims), true
}

func foldSlice(c *call, x []ir.Dim) (out []ir.Dim, rank int, ok bool) {
	one := func(i, otherwise int) (int64, bool) {
		if c.opset < 10 {
			list := c.ints(map[int]string{1: "starts", 2: "ends"}[i])
			if i > 2 {
				return int64(otherwise), true
			}
			return int64(slices.Concat(list, []int{0})[0]), len(list) == 1
		}
		if !c.has(i) {
			return int64(otherwise), true
		}
		a := c.in[i].array(c.im)
		if a == nil || len(a.I) != 1 {
			return 0, false
		}
		return a.I[0], true
	}
	start, ok1 := one(1, 0)
	end, ok2 := one(2, 0)
	step, ok3 := one(4, 1)
	if !ok1 || !ok2 || !ok3 || step == 0 {
		return nil, 0, false
	}
	from, n := slicedNumbers(int64(len(x)), start, end, step)
	for i := range n {
		out = append(out, x[from+i*max(step, -step)])
	}
	if step < 0 {
		slices.Reverse(out)
	}
	return out, 1, true
}

func foldConcat(c *call, _ []ir.Dim) (out []ir.Dim, rank int, ok bool) {
	for _, v := range c.in {
		if v == nil {
			return nil, 0, false
		}
		x, ok := v.sizes(c.im)
		if !ok {
			return nil, 0, false
		}
		out = append(out, x...)
	}
	return out, 1, len(out) <= foldElements
}

func foldReshape(c *call, x []ir.Dim) (out []ir.Dim, rank int, ok bool) {
	if !c.has(1) {
		return nil, 0, false
	}
	a := c.in[1].array(c.im)
	if a == nil || len(a.I) > 1 {
		return nil, 0, false
	}
	return x, len(a.I), true
}

func foldProduct(c *call, x []ir.Dim) (out []ir.Dim, rank int, ok bool) {
	product := ir.N(1)
	for _, d := range x {
		product = product.Mul(d)
	}
	return []ir.Dim{product}, c.int("keepdims", 1), true
}

// foldPairs applies f to pairs of elements. An operand with one element is broadcast.
func foldPairs(f func(x, y ir.Dim) (ir.Dim, bool)) func(c *call, x []ir.Dim) ([]ir.Dim, int, bool) {
	return func(c *call, x []ir.Dim) (out []ir.Dim, rank int, ok bool) {
		if len(c.in) != 2 || c.in[1] == nil {
			return nil, 0, false
		}
		y, ok := c.in[1].sizes(c.im)
		if !ok || len(x) != len(y) && len(x) != 1 && len(y) != 1 {
			return nil, 0, false
		}
		for i := range max(len(x), len(y)) {
			d, ok := f(x[min(i, len(x)-1)], y[min(i, len(y)-1)])
			if !ok {
				return nil, 0, false
			}
			out = append(out, d)
		}
		return out, max(c.in[0].typ.Shape.Rank(), c.in[1].typ.Shape.Rank()), true
	}
}
