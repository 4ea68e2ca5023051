package passes

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func mulPair(b *ir.Builder, x, y pair) pair {
	return pair{
		ops.Sub(b, ops.Mul(b, x.re, y.re), ops.Mul(b, x.im, y.im)),
		ops.Add(b, ops.Mul(b, x.re, y.im), ops.Mul(b, x.im, y.re)),
	}
}

func addPair(b *ir.Builder, x, y pair) pair {
	return pair{ops.Add(b, x.re, y.re), ops.Add(b, x.im, y.im)}
}

// mulEach is [mulPair] as the combination of a running product.
func mulEach(b *ir.Builder, x, y []pair) []pair { return []pair{mulPair(b, x[0], y[0])} }

// cumProdPair is cumprod, as a running combination of both parts.
func cumProdPair(b *ir.Builder, n *ir.Node, in []pair) pair {
	a := *n.Attrs().(*ops.CumSumAttrs)
	out := scanPairs(b, a, in, mulEach)[0]
	if a.Exclusive {
		out = pair{shiftByOne(b, out.re, a, 1), shiftByOne(b, out.im, a, 0)}
	}
	return out
}

// scanPairs is an associative scan of complex values.
func scanPairs(b *ir.Builder, a ops.CumSumAttrs, in []pair, combine func(b *ir.Builder, x, y []pair) []pair) []pair {
	out := ops.AssociativeScan(b, ops.AssociativeAttrs{Axis: a.Axis, Reverse: a.Reverse}, flat(in),
		func(b *ir.Builder, x, y []ir.Value) []ir.Value { return flat(combine(b, paired(x), paired(y))) })
	return paired(out)
}

func flat(in []pair) []ir.Value {
	var out []ir.Value
	for _, x := range in {
		out = append(out, x.re, x.im)
	}
	return out
}

func paired(in []ir.Value) []pair {
	out := make([]pair, len(in)/2)
	for i := range out {
		out[i] = pair{in[2*i], in[2*i+1]}
	}
	return out
}

// shiftByOne moves a running combination on by one element, so that each has that of the
// elements before it; the first has a number.
func shiftByOne(b *ir.Builder, x ir.Value, a ops.CumSumAttrs, first float64) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	low, high := make([]int, x.Rank()), make([]int, x.Rank())
	low[a.Axis], high[a.Axis] = 1, -1
	if a.Reverse {
		low, high = high, low
	}
	return ops.Pad(b, x, ops.Const(b, x.DType(), first), low, high, nil)
}

// linearRecurrencePair is linear_recurrence: h → y·h + y' after h → x·h + x' is
// h → (y·x)·h + (y·x' + y').
func linearRecurrencePair(b *ir.Builder, n *ir.Node, in []pair) []pair {
	a, k := *n.Attrs().(*ops.CumSumAttrs), n.NumResults()
	out := scanPairs(b, a, in, func(b *ir.Builder, x, y []pair) []pair {
		// product is a row of y times a column that begins at an element of x.
		product := func(row, first, step int) pair {
			sum := mulPair(b, y[row*k], x[first])
			for j := 1; j < k; j++ {
				sum = addPair(b, sum, mulPair(b, y[row*k+j], x[first+j*step]))
			}
			return sum
		}
		next := make([]pair, k*k+k)
		for i := range k {
			for j := range k {
				next[i*k+j] = product(i, j, k)
			}
			next[k*k+i] = addPair(b, product(i, k*k, 1), y[k*k+i])
		}
		return next
	})[k*k:]
	for i, x := range out {
		if a.Exclusive {
			out[i] = pair{shiftByOne(b, x.re, a, 0), shiftByOne(b, x.im, a, 0)}
		}
	}
	return out
}

// reduceProdPair is reduce_prod: axis by axis, the last of the running products.
func reduceProdPair(b *ir.Builder, n *ir.Node, in []pair) pair {
	x, shape := in[0], n.Types()[0].Shape
	for _, axis := range n.Def().Reduces(n) {
		size := n.Input(0).Dim(axis)
		if size.Is(0) {
			return pair{ops.Ones(b, x.re.DType(), shape...), ops.Zeros(b, x.re.DType(), shape...)}
		}
		x = scanPairs(b, ops.CumSumAttrs{Axis: axis}, []pair{x}, mulEach)[0]
		last := func(v ir.Value) ir.Value { return ops.SliceAxis(b, v, axis, size.Sub(ir.N(1)), ir.N(1)) }
		x = pair{last(x.re), last(x.im)}
	}
	return pair{ops.Reshape(b, x.re, shape...), ops.Reshape(b, x.im, shape...)}
}

// scatterMulPair is scatter_mul: updates are sorted by the element that they are
// for, so that those of one lie side by side, and the last of their running products
// goes there.
func scatterMulPair(b *ir.Builder, n *ir.Node, in []pair) pair {
	x, indices, updates := in[0], in[1].re, in[2]
	attrs := n.Attrs().(*ops.ScatterAttrs).IndexedAxes
	if attrs.Outside == ops.OutsideDrop {
		attrs.Outside = ops.OutsideFill
	}
	shape := n.Types()[0].Shape
	number := ops.Reshape(b, ops.Iota(b, ir.I32, 0, shape.Size()), shape...)
	target := ops.Gather(b, number, indices, ops.GatherAttrs{IndexedAxes: attrs, Fill: -1})
	line := func(v ir.Value) ir.Value { return ops.Reshape(b, v, n.Input(2).Shape().Size()) }
	sorted := ops.Sort(b, ops.SortAttrs{}, line(target), line(updates.re), line(updates.im))
	run := ops.AssociativeScan(b, ops.AssociativeAttrs{}, sorted, func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		both := mulPair(b, pair{x[1], x[2]}, pair{y[1], y[2]})
		same := ops.Eq(b, x[0], y[0])
		return []ir.Value{y[0], ops.Select(b, same, both.re, y[1]), ops.Select(b, same, both.im, y[2])}
	})
	if b.Err() != nil {
		return pair{}
	}
	target = run[0]
	next := ops.Pad(b, target, ops.Const(b, ir.I32, -1), []int{-1}, []int{1}, nil)
	at := ops.ExpandDims(b, ops.Select(b, ops.Ne(b, target, next), target, ops.ConstLike(b, target, -1)), 1)
	axis := ops.IndexedAxes{Axes: []int{0}}
	old := func(v ir.Value) ir.Value {
		return ops.Gather(b, ops.Reshape(b, v, shape.Size()), at, ops.GatherAttrs{IndexedAxes: axis})
	}
	product := mulPair(b, pair{old(x.re), old(x.im)}, pair{run[1], run[2]})
	axis.Unique = true
	put := func(v, update ir.Value) ir.Value {
		y := ops.Scatter(b, ops.Reshape(b, v, shape.Size()), at, update, ops.ScatterAttrs{IndexedAxes: axis})
		return ops.Reshape(b, y, shape...)
	}
	return pair{put(x.re, product.re), put(x.im, product.im)}
}
