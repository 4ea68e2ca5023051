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
			Unordered: func(n *ir.Node) bool { return n.Attrs().(*ScatterAttrs).Unordered },
			Space:     scatterSpace,
			Target:    scatterTarget,
			Update:    func(_ *ir.Node, p, w ir.Index) ir.Index { return slices.Concat(p, w) },
		},
	}
	if s.transpose == nil {
		d.NoTranspose = notLinear
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
	at, inside := n.Attrs().(*ScatterAttrs).address(n, sizes(n.Input(0).Shape()), p, w, load)
	if inside == nil {
		inside = scalar.ConstBool(true)
	}
	return at, inside
}
