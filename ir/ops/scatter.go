package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Updates at index tuples.
const (
	OpScatter    ir.Op = "scatter"
	OpScatterAdd ir.Op = "scatter_add"
	OpScatterMul ir.Op = "scatter_mul"
	OpScatterMin ir.Op = "scatter_min"
	OpScatterMax ir.Op = "scatter_max"
)

// ScatterAttrs describe a scatter.
type ScatterAttrs struct{ IndexedAxes }

// scatterOp describes one of the scatters.
type scatterOp struct {
	op    ir.Op
	doc   string
	types domain
	mode  ir.ScatterMode
	eval  func(out *ir.Array, at int, updates *ir.Array, from int)
	jvp   jvpRule
	// transpose is nil for a nonlinear scatter.
	transpose transposeRule
}

func init() {
	defineScatter(scatterOp{
		op: OpScatter, types: plain, mode: ir.ScatterSet, eval: copyElement,
		doc: "Replaces elements of the operand at index tuples by updates; the last update of an element wins.",
		jvp: jvpLinearScatter, transpose: transposeScatter,
	})
	defineScatter(scatterOp{
		op: OpScatterAdd, types: numbers, mode: ir.ScatterAdd, eval: addElement,
		doc: "Adds updates to the operand at index tuples. Integers wrap.",
		jvp: jvpLinearScatter, transpose: transposeScatterAdd,
	})
	defineScatter(scatterOp{
		op: OpScatterMul, types: numbers, mode: ir.ScatterMul, eval: mulElement,
		doc: "Multiplies the operand by updates at index tuples. Integers wrap.",
		jvp: jvpScatterMul, transpose: transposeOperand(0, transposeScatterMul),
	})
	for _, s := range []struct {
		op     ir.Op
		what   string
		mode   ir.ScatterMode
		better func(x, y float64) float64
		sign   int
	}{
		{OpScatterMin, "smaller", ir.ScatterMin, smaller, -1},
		{OpScatterMax, "larger", ir.ScatterMax, larger, 1},
	} {
		defineScatter(scatterOp{
			op: s.op, types: reals, mode: s.mode, eval: extremeElement(s.better, s.sign),
			doc: "Replaces elements of the operand at index tuples by updates that are " + s.what + " or NaN. " +
				"Tied values share the derivative equally.",
			jvp: jvpScatterExtremum,
		})
	}
}

func defineScatter(s scatterOp) {
	d := &ir.Def{
		Op: s.op,
		Doc: s.doc + " The updates have the shape of the gather at the same indices (XLA's Scatter). The order of combination depends on the indices alone, " +
			"but with unordered f32 may accumulate in any order: faster, but not deterministic.",
		Constraints: numbered(append(slices.Clone(indexConstraints),
			`outside is "drop" or "clip"`, "operand and updates have one element type, which is "+s.types.String())...),
		Operands: []string{"operand", "indices", "updates"},
		NewAttrs: func() ir.Attrs { return &ScatterAttrs{} },
		Infer:    func(n *ir.Node) ([]ir.Type, error) { return inferScatter(n, s.types) },
		Eval: func(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
			a, out := n.Attrs().(*ScatterAttrs), in[0].Clone()
			a.targets(in[0].Dims, unsignedIndices(in[1]), func(i, target int) {
				if target >= 0 {
					s.eval(out, target, in[2], i)
				}
			})
			return []*ir.Array{c.Round(out)}, nil
		},
		JVP:       s.jvp,
		Transpose: s.transpose,
		Batch:     batchScatter,
		Lower: &ir.ScatterLowering{
			Mode:      s.mode,
			Unique:    func(n *ir.Node) bool { return n.Attrs().(*ScatterAttrs).Unique },
			Sorted:    func(n *ir.Node) bool { return n.Attrs().(*ScatterAttrs).Sorted },
			Unordered: func(n *ir.Node) bool { return n.Attrs().(*ScatterAttrs).Unordered },
			Space:     scatterSpace,
			Target:    scatterTarget,
			Update:    func(_ *ir.Node, p, w ir.Index) ir.Index { return slices.Concat(p, w) },
		},
	}
	define(d)
}

// Scatter returns x with elements replaced by updates at the index tuples in indices; the
// last update of an element wins. updates has the shape of the [Gather] of x at indices
// and the type of x. An empty a.Outside means [OutsideDrop].
func Scatter(b *ir.Builder, x, indices, updates ir.Value, a ScatterAttrs) ir.Value {
	return scatter(b, OpScatter, x, indices, updates, a)
}

// ScatterAdd returns x with updates added at the index tuples in indices: see [Scatter]
// for the operands. An empty a.Outside means [OutsideDrop].
func ScatterAdd(b *ir.Builder, x, indices, updates ir.Value, a ScatterAttrs) ir.Value {
	return scatter(b, OpScatterAdd, x, indices, updates, a)
}

// ScatterMul returns x multiplied by updates at the index tuples in indices: see [Scatter]
// for the operands. An empty a.Outside means [OutsideDrop].
func ScatterMul(b *ir.Builder, x, indices, updates ir.Value, a ScatterAttrs) ir.Value {
	return scatter(b, OpScatterMul, x, indices, updates, a)
}

// ScatterMin returns the minimum of x and the updates at the index tuples in indices: see
// [Scatter] for the operands. An empty a.Outside means [OutsideDrop].
func ScatterMin(b *ir.Builder, x, indices, updates ir.Value, a ScatterAttrs) ir.Value {
	return scatter(b, OpScatterMin, x, indices, updates, a)
}

// ScatterMax returns the maximum of x and the updates at the index tuples in indices: see
// [Scatter] for the operands. An empty a.Outside means [OutsideDrop].
func ScatterMax(b *ir.Builder, x, indices, updates ir.Value, a ScatterAttrs) ir.Value {
	return scatter(b, OpScatterMax, x, indices, updates, a)
}

func scatter(b *ir.Builder, op ir.Op, x, indices, updates ir.Value, a ScatterAttrs) ir.Value {
	a.IndexedAxes = a.IndexedAxes.normal(x, indices, OutsideDrop)
	return b.Add1(op, &a, x, indices, updates)
}

func inferScatter(n *ir.Node, types domain) ([]ir.Type, error) {
	a, x, u := n.Attrs().(*ScatterAttrs), n.Input(0).Type(), n.Input(2).Type()
	if err := types.check(x.DType); err != nil {
		return nil, err
	}
	if x.DType != u.DType {
		return nil, ir.DTypef("the updates are %s, not of the element type of x, %s", u, x)
	}
	shape, err := a.check(x, n.Input(1).Type(), OutsideDrop, OutsideClip)
	if err != nil {
		return nil, err
	}
	if !shape.Equal(u.Shape) {
		return nil, ir.Shapef("updates are %s, not %s as the indices require", u.Shape, shape)
	}
	return []ir.Type{x}, nil
}

// addElement adds element j of src to element i of dst, of the same type.
func addElement(dst *ir.Array, i int, src *ir.Array, j int) {
	switch {
	case dst.F != nil:
		dst.F[i] += src.F[j]
	case dst.C != nil:
		dst.C[i] += src.C[j]
	default:
		dst.I[i] += src.I[j]
	}
}

// mulElement multiplies element i of dst by element j of src, of the same type.
func mulElement(dst *ir.Array, i int, src *ir.Array, j int) {
	switch {
	case dst.F != nil:
		dst.F[i] *= src.F[j]
	case dst.C != nil:
		dst.C[i] *= src.C[j]
	default:
		dst.I[i] *= src.I[j]
	}
}

// extremeElement returns a function that replaces element i of dst by element j of src if
// better prefers the latter; for integers sign selects the order.
func extremeElement(better func(x, y float64) float64, sign int) func(dst *ir.Array, i int, src *ir.Array, j int) {
	return func(dst *ir.Array, i int, src *ir.Array, j int) {
		switch {
		case dst.F != nil:
			dst.F[i] = better(dst.F[i], src.F[j])
		case compareInts(dst.DType, src.I[j], dst.I[i])*sign > 0:
			dst.I[i] = src.I[j]
		}
	}
}

func scatterSpace(n *ir.Node) (positions, window []int) {
	a, x, indices := n.Attrs().(*ScatterAttrs), sizes(n.Input(0).Shape()), sizes(n.Input(1).Shape())
	return indices[:len(indices)-1], pick(x, a.window(len(x)))
}

func scatterTarget(n *ir.Node, p, w ir.Index, load ir.Load) (ir.Index, scalar.Expr) {
	at, inside := n.Attrs().(*ScatterAttrs).address(sizes(n.Input(0).Shape()), p, w, load)
	if inside == nil {
		inside = scalar.ConstBool(true)
	}
	return at, inside
}

// jvpLinearScatter is the JVP rule of scatters that are linear in operand and updates.
func jvpLinearScatter(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	if !t[2].Valid() && n.Op() == OpScatterAdd {
		return []ir.Value{t[0]}
	}
	return b.Add(n.Op(), n.Attrs(), orZeros(b, t[0], in[0]), in[1], orZeros(b, t[2], in[2]))
}

// gathered returns x at the index tuples of a scatter, and a constant for tuples that are
// out of bounds.
func gathered(b *ir.Builder, n *ir.Node, x, indices ir.Value, outside float64) ir.Value {
	a := GatherAttrs{IndexedAxes: n.Attrs().(*ScatterAttrs).IndexedAxes, Fill: outside}
	if a.Outside == OutsideDrop {
		a.Outside = OutsideFill
	}
	return Gather(b, x, indices, a)
}

// scattered adds another scatter at the index tuples of n.
func scattered(b *ir.Builder, op ir.Op, n *ir.Node, x, indices, updates ir.Value) ir.Value {
	return b.Add1(op, n.Attrs(), x, indices, updates)
}

func transposeScatterAdd(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	out := make([]ir.Value, 3)
	if !ct[0].Valid() {
		return out
	}
	if linear[0] {
		out[0] = ct[0]
	}
	if linear[2] {
		out[2] = gathered(b, n, ct[0], in[1], 0)
	}
	return out
}

// transposeScatter passes the cotangent of an element to the winning update, or to the
// operand if there is none. Scattering the numbers of the updates finds the winner.
func transposeScatter(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	out := make([]ir.Value, 3)
	if !ct[0].Valid() {
		return out
	}
	u := n.Input(2)
	zeros := Zeros(b, ct[0].DType(), u.Shape()...)
	if linear[0] {
		out[0] = scattered(b, OpScatter, n, ct[0], in[1], zeros)
	}
	if linear[2] {
		out[2] = gathered(b, n, ct[0], in[1], 0)
		if !n.Attrs().(*ScatterAttrs).Unique {
			number := Reshape(b, Iota(b, ir.I32, 0, u.Shape().Size()), u.Shape()...)
			stayed := scattered(b, OpScatter, n, Zeros(b, ir.I32, n.Input(0).Shape()...), in[1], number)
			out[2] = Select(b, Eq(b, gathered(b, n, stayed, in[1], 0), number), out[2], zeros)
		}
	}
	return out
}

// jvpScatterMul multiplies the tangent of each factor by the other factors of its element:
// for an update, the operand and the other updates.
func jvpScatterMul(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	x, indices, u := in[0], in[1], in[2]
	var byX, byU ir.Value
	if t[0].Valid() {
		byX = scattered(b, OpScatterMul, n, t[0], indices, u)
	}
	if t[2].Valid() {
		others := gathered(b, n, x, indices, 0)
		if !n.Attrs().(*ScatterAttrs).Unique {
			others = Mul(b, others, otherUpdates(b, n, indices, u))
		}
		byU = scattered(b, OpScatterAdd, n, ZerosLike(b, x), indices, scale(b, t[2], others))
	}
	return []ir.Value{addTangents(b, byX, byU)}
}

// otherUpdates returns for each update the product of the other updates of its element. It
// sorts the updates by element and multiplies prefix and suffix products, without
// division, so zeros are harmless at any order.
func otherUpdates(b *ir.Builder, n *ir.Node, indices, u ir.Value) ir.Value {
	elements, size := n.Input(0).Shape(), u.Shape().Size()
	number := Reshape(b, Iota(b, ir.I32, 0, elements.Size()), elements...)
	places := Reshape(b, gathered(b, n, number, indices, -1), size)
	sorted := several(2, Sort(b, SortAttrs{}, places, Iota(b, ir.I32, 0, size)))
	order := IndexedAxes{Axes: []int{0}, Unique: true}
	from := ExpandDims(b, sorted[1], -1)
	x := Gather(b, Reshape(b, u, size), from, GatherAttrs{IndexedAxes: order})
	others := Mul(b, segmentProduct(b, sorted[0], x, false), segmentProduct(b, sorted[0], x, true))
	back := Scatter(b, ZerosLike(b, x), from, others, ScatterAttrs{order})
	return Reshape(b, back, u.Shape()...)
}

// segmentProduct returns the exclusive prefix product of x, or suffix product if reverse is set,
// within each segment of equal keys.
func segmentProduct(b *ir.Builder, key, x ir.Value, reverse bool) ir.Value {
	neighbour := func(v, end ir.Value) ir.Value {
		in, start := []ir.Value{end, v}, 0
		if reverse {
			in, start = []ir.Value{v, end}, 1
		}
		return SliceAxis(b, Concatenate(b, 0, in...), 0, ir.N(start), key.Dim(0))
	}
	same := Eq(b, key, neighbour(key, Const(b, key.DType(), -2, ir.N(1)))) // no place is −2
	zero, one := ZerosLike(b, x), OnesLike(b, x)
	factor := Select(b, same, neighbour(x, Ones(b, x.DType(), ir.N(1))), zero)
	return LinearRecurrence(b, factor, Select(b, same, zero, one), CumSumAttrs{Reverse: reverse})
}

func transposeScatterMul(b *ir.Builder, n *ir.Node, in []ir.Value, ct ir.Value) ir.Value {
	return scattered(b, OpScatterMul, n, ct, in[1], in[2])
}

// jvpScatterExtremum shares the tangent equally among the values that attain the result.
// No value equals NaN, so a NaN result has the tangent 0/0, NaN.
func jvpScatterExtremum(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	x, indices, u, d := in[0], in[1], in[2], sumType(in[0].DType())
	kept := Convert(b, Eq(b, x, out[0]), d)
	hits := Convert(b, Eq(b, u, gathered(b, n, out[0], indices, 0)), d)
	count := scattered(b, OpScatterAdd, n, kept, indices, hits)
	var byX, byU ir.Value
	if t[0].Valid() {
		byX = scale(b, t[0], Convert(b, Div(b, kept, count), x.DType()))
	}
	if t[2].Valid() {
		share := Convert(b, Div(b, hits, gathered(b, n, count, indices, 1)), x.DType())
		byU = scattered(b, OpScatterAdd, n, ZerosLike(b, x), indices, scale(b, t[2], share))
	}
	return []ir.Value{addTangents(b, byX, byU)}
}

// batchScatter broadcasts operand and updates to the batch axis. Indices without the axis
// need no copy: it is a window axis.
func batchScatter(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	a := *n.Attrs().(*ScatterAttrs)
	x, indices, u := BatchAt(b, in[0], axes[0], 0, size), in[1], in[2]
	at := axes[1]
	if at >= 0 {
		indices, at = MoveAxis(b, indices, at, 0), 0
	}
	a.IndexedAxes = a.batched(0, at)
	if at < 0 {
		at = indices.Rank() - 1 // the first axis of the window
	}
	u = BatchAt(b, u, axes[2], at, size)
	return []ir.Value{scatter(b, n.Op(), x, indices, u, a)}, []int{0}
}
