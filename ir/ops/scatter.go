package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Updates at positions given by data.
const (
	OpScatter    ir.Op = "scatter"
	OpScatterAdd ir.Op = "scatter_add"
	OpScatterMul ir.Op = "scatter_mul"
	OpScatterMin ir.Op = "scatter_min"
	OpScatterMax ir.Op = "scatter_max"
)

// ScatterAttrs are those of the scatters.
type ScatterAttrs struct{ IndexedAxes }

// scatterOp describes one of the scatters.
type scatterOp struct {
	op    ir.Op
	doc   string
	types domain
	mode  ir.ScatterMode
	eval  func(out *ir.Array, at int, updates *ir.Array, from int)
	jvp   jvpRule
	// transpose is nil for what is not linear.
	transpose transposeRule
}

func init() {
	defineScatter(scatterOp{
		op: OpScatter, types: plain, mode: ir.ScatterSet, eval: copyElement,
		doc: "Replaces elements of the operand at index tuples by updates: of several for one element the last stays.",
		jvp: jvpLinearScatter, transpose: transposeScatter,
	})
	defineScatter(scatterOp{
		op: OpScatterAdd, types: numbers, mode: ir.ScatterAdd, eval: addElement,
		doc: "Adds updates to the operand at index tuples. Integers wrap.",
		jvp: jvpLinearScatter, transpose: transposeScatterAdd,
	})
	defineScatter(scatterOp{
		op: OpScatterMul, types: numbers, mode: ir.ScatterMul, eval: mulElement,
		doc: "Multiplies the operand by updates at index tuples. Integers wrap. The derivative by an update divides by it " +
			"unless it is 0; where two updates of an element are 0, second derivatives by both are left out.",
		jvp: jvpScatterMul, transpose: transposeScatterMul,
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
			doc: "Replaces elements of the operand at index tuples by updates that are " + s.what + ", or NaN. " +
				"All that attain the result share the derivative equally.",
			jvp: jvpScatterExtremum,
		})
	}
}

func defineScatter(s scatterOp) {
	d := &ir.Def{
		Op:  s.op,
		Doc: s.doc + " The updates have the shape that gather would give for the operand and the indices; they are combined in an order that depends on the indices alone.",
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
			Mode:   s.mode,
			Unique: func(n *ir.Node) bool { return n.Attrs().(*ScatterAttrs).Unique },
			Space:  scatterSpace,
			Target: scatterTarget,
			Update: func(_ *ir.Node, p, w ir.Index) ir.Index { return slices.Concat(p, w) },
		},
		Samples: func() []ir.Sample { return scatterSamples(s.mode) },
	}
	if s.transpose == nil {
		d.NoTranspose = notLinear
	}
	define(d)
}

// Scatter returns x with elements replaced by updates at the index tuples in
// indices, the last one for each. An empty a.Outside means [OutsideDrop].
func Scatter(b *ir.Builder, x, indices, updates ir.Value, a ScatterAttrs) ir.Value {
	return scatter(b, OpScatter, x, indices, updates, a)
}

// ScatterAdd returns x with updates added at the index tuples in indices. An
// empty a.Outside means [OutsideDrop].
func ScatterAdd(b *ir.Builder, x, indices, updates ir.Value, a ScatterAttrs) ir.Value {
	return scatter(b, OpScatterAdd, x, indices, updates, a)
}

// ScatterMul returns x multiplied by updates at the index tuples in indices. An
// empty a.Outside means [OutsideDrop].
func ScatterMul(b *ir.Builder, x, indices, updates ir.Value, a ScatterAttrs) ir.Value {
	return scatter(b, OpScatterMul, x, indices, updates, a)
}

// ScatterMin returns the smaller of x and the updates at the index tuples in
// indices. An empty a.Outside means [OutsideDrop].
func ScatterMin(b *ir.Builder, x, indices, updates ir.Value, a ScatterAttrs) ir.Value {
	return scatter(b, OpScatterMin, x, indices, updates, a)
}

// ScatterMax returns the larger of x and the updates at the index tuples in
// indices. An empty a.Outside means [OutsideDrop].
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
		return nil, ir.DTypef("%s and %s are not of one element type", x, u)
	}
	shape, err := a.check(x, n.Input(1).Type(), OutsideDrop, OutsideClip)
	if err != nil {
		return nil, err
	}
	if !shape.Equal(u.Shape) {
		return nil, ir.Shapef("updates are %s, the indices stand for %s", u.Shape, shape)
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

// extremeElement replaces element i of dst by element j of src where that is
// better; the sign is that of better integers.
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

// jvpLinearScatter is the rule of scatters that are linear in operand and
// updates.
func jvpLinearScatter(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	switch {
	case !t[0].Valid() && !t[2].Valid():
		return []ir.Value{{}}
	case !t[2].Valid() && n.Op() == OpScatterAdd:
		return []ir.Value{t[0]}
	}
	return b.Add(n.Op(), n.Attrs(), orZeros(b, t[0], in[0]), in[1], orZeros(b, t[2], in[2]))
}

// gathered reads what a scatter's index tuples name, with a value for those
// outside.
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

// transposeScatter gives the cotangent of an element to the update that stayed,
// and to the operand where there was none. Which one stayed is had by scattering
// the updates' numbers alike.
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

// jvpScatterMul multiplies the tangent of each factor by all other factors of
// its element. Those of an update are the operand and the other updates: the
// product of those updates that are not zero, divided by its own, or zero where
// another one is.
func jvpScatterMul(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	x, indices, u := in[0], in[1], in[2]
	var byX, byU ir.Value
	if t[0].Valid() {
		byX = scattered(b, OpScatterMul, n, t[0], indices, u)
	}
	if t[2].Valid() {
		isZero := func(v ir.Value) ir.Value { return Eq(b, v, ZerosLike(b, v)) }
		count := func(v ir.Value) ir.Value { return Convert(b, isZero(v), ir.I32) }
		nonzero := func(v ir.Value) ir.Value { return Select(b, isZero(v), OnesLike(b, v), v) }
		product := gathered(b, n, scattered(b, OpScatterMul, n, OnesLike(b, x), indices, nonzero(u)), indices, 0)
		zeros := gathered(b, n, scattered(b, OpScatterAdd, n, Zeros(b, ir.I32, x.Shape()...), indices, count(u)), indices, 0)
		others := Select(b, Gt(b, zeros, count(u)), ZerosLike(b, u), Div(b, product, nonzero(u)))
		others = Mul(b, others, gathered(b, n, x, indices, 0))
		byU = scattered(b, OpScatterAdd, n, ZerosLike(b, x), indices, scale(b, t[2], others))
	}
	return []ir.Value{addTangents(b, byX, byU)}
}

func transposeScatterMul(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	out := make([]ir.Value, 3)
	if !ct[0].Valid() || !onlyLinear(b, n, linear, 0) {
		return out
	}
	out[0] = scattered(b, OpScatterMul, n, ct[0], in[1], in[2])
	return out
}

// jvpScatterExtremum gives all that attain the result an equal share of the
// derivative. A NaN is attained nowhere, and 0/0 makes the derivative NaN.
func jvpScatterExtremum(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	if !t[0].Valid() && !t[2].Valid() {
		return []ir.Value{{}}
	}
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

// batchScatter gives operand and updates the batch axis where only some have
// it. Indices that lack it need no copy: the axis is one of the window.
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

func scatterSpace(n *ir.Node) (positions, window []int) {
	a, x, indices := n.Attrs().(*ScatterAttrs), sizes(n.Input(0).Shape()), sizes(n.Input(1).Shape())
	return indices[:len(indices)-1], pick(x, a.window(len(x)))
}

func scatterTarget(n *ir.Node, p, w ir.Index, load ir.Load) (ir.Index, scalar.Expr) {
	at, inside := n.Attrs().(*ScatterAttrs).address(n, sizes(n.Input(0).Shape()), p, w, load)
	if inside == nil {
		inside = scalar.ConstBool(true)
	}
	return at, inside
}

func scatterSamples(mode ir.ScatterMode) []ir.Sample {
	if !withSamples {
		return nil
	}
	sample := func(name string, x []int, indices *ir.Array, u []int, a IndexedAxes) ir.Sample {
		if a.Outside == "" {
			a.Outside = OutsideDrop
		}
		operand, updates := distinct(-1, 1, x...), distinct(-1.3, 1.1, u...)
		if mode == ir.ScatterMul { // products of many stay near 1
			updates = draw(8, ir.F32, 0.8, 1.25, u...)
		}
		return ir.Sample{Name: name, Attrs: &ScatterAttrs{a}, In: []*ir.Array{operand, indices, updates}}
	}
	typed := func(s ir.Sample, d ir.DType, x, u *ir.Array) ir.Sample {
		s.Name, s.In = s.Name+" of "+d.String(), []*ir.Array{x, s.In[1], u}
		return s
	}
	rows := IndexedAxes{Axes: []int{0}}
	unique := IndexedAxes{Axes: []int{0}, Unique: true}
	repeated := ir.Ints(ir.I32, []int64{4, 0, 4, 2, 4}, 5, 1)
	outside := ir.Ints(ir.I32, []int64{-1, 0, 5, 2, 4}, 5, 1)
	many := ir.Ints(ir.I32, spread(70, 2), 70, 1)
	out := []ir.Sample{
		sample("repeated rows", []int{5, 3}, repeated, []int{5, 3}, rows),
		sample("drop outside", []int{5, 3}, outside, []int{5, 3}, rows),
		sample("unique", []int{5, 3}, outside, []int{5, 3}, unique),
		sample("clip outside", []int{2, 5, 3}, outside, []int{5, 2, 3}, IndexedAxes{Axes: []int{1}, Outside: OutsideClip}),
		sample("points", []int{3, 4}, ir.Ints(ir.I32, []int64{2, 3, 2, 3}, 2, 2), []int{2}, IndexedAxes{Axes: []int{0, 1}}),
		sample("along an axis", []int{3, 4}, ir.Ints(ir.I32, []int64{3, 0, 1, 1, 2, 9}, 3, 2, 1), []int{3, 2},
			IndexedAxes{Axes: []int{1}, OperandBatch: []int{0}, IndexBatch: []int{0}}),
		sample("more updates than rows", []int{2, 33}, many, []int{70, 33}, rows),
		sample("many along the last axis", []int{3, 7}, ir.Ints(ir.I32, spread(131, 8), 131, 1), []int{131, 3}, IndexedAxes{Axes: []int{1}}),
		sample("no updates", []int{5, 3}, ir.NewArray(ir.I32, 0, 1), []int{0, 3}, rows),
		sample("empty operand", []int{0, 3}, ir.Ints(ir.I32, []int64{0, 1}, 2, 1), []int{2, 3}, rows),
	}
	types := numbers
	if mode == ir.ScatterMin || mode == ir.ScatterMax {
		types = reals
	}
	for _, d := range typesIn(types)[1:] {
		out = append(out, typed(out[0], d, draw(3, d, -3, 3, 5, 3), draw(4, d, -3, 3, 5, 3)))
	}
	for _, d := range []ir.DType{ir.I32, ir.U32} {
		out = append(out, typed(out[6], d, draw(5, d, -9, 9, 2, 33), draw(6, d, -3, 3, 70, 33)))
	}
	if mode == ir.ScatterSet {
		yes := ir.Ints(ir.Bool, []int64{0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1}, 5, 3)
		no := ir.Ints(ir.Bool, []int64{1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0}, 5, 3)
		out = append(out, typed(out[0], ir.Bool, yes, no))
	}
	return out
}
