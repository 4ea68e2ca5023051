package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OpAssociativeScan is a scan with a user-defined associative operator.
const OpAssociativeScan ir.Op = "associative_scan"

// AssociativeAttrs hold the axis and direction of a scan.
type AssociativeAttrs struct {
	Axis    int
	Reverse bool
}

// Visit shows the attributes.
func (a *AssociativeAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis", &a.Axis)
	v.Bool("reverse", &a.Reverse)
}

func init() {
	attrs := func(n *ir.Node) *AssociativeAttrs { return n.Attrs().(*AssociativeAttrs) }
	define(&ir.Def{
		Op: OpAssociativeScan,
		Doc: "The inclusive scan of the operands along an axis, from the end with reverse, by an " +
			"associative operator (JAX's associative_scan): a graph that takes the values of a run of elements and those of the run after it, and returns " +
			"those of the combined run. The order of association is unspecified.",
		Constraints: numbered(
			"the operands have one shape, and axis is an axis of them",
			"the graph takes the scalars of two runs, one for each operand, and returns those of one",
			"all nodes of the graph are elementwise",
			"where derivatives are taken, there are at most four operands of float or complex elements, all of one type",
		),
		Operands:  []string{"operands..."},
		NewAttrs:  func() ir.Attrs { return &AssociativeAttrs{} },
		Subgraphs: 1,
		Infer:     inferAssociativeScan,
		Eval:      evalAssociativeScan,
		JVP:       jvpAssociativeScan,
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
			in, at := alignBatch(b, in, axes, size)
			a := *attrs(n)
			a.Axis = shifted([]int{a.Axis}, at)[0]
			return b.AddNode(n.Op(), &a, n.Subgraphs(), in...), slices.Repeat([]int{at}, len(in))
		},
		Lower: &ir.PrefixLowering{
			Axis:         func(n *ir.Node) int { return attrs(n).Axis },
			Reverse:      func(n *ir.Node) bool { return attrs(n).Reverse },
			Exclusive:    func(*ir.Node) bool { return false },
			Accumulators: associativeAccumulators,
			Element: func(n *ir.Node, at ir.Index, load ir.Load) []scalar.Expr {
				out := []scalar.Expr{loop.Int(1)}
				for i := range n.Inputs() {
					out = append(out, load(i, at))
				}
				return out
			},
			Combine: combineAssociative,
			Decompose: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
				return doublingScan(b, CumSumAttrs{Axis: attrs(n).Axis, Reverse: attrs(n).Reverse}, in, func(b *ir.Builder, x, y []ir.Value) []ir.Value {
					return everywhere(b, n.Subgraphs()[0], slices.Concat(x, y))
				})
			},
			Finish: func(_ *ir.Node, acc []scalar.Expr) []scalar.Expr { return acc[1:] },
		},
	})
}

// AssociativeScan returns the inclusive scan of the elements of in along an axis by the
// associative operator combine (JAX's associative_scan): it takes the scalars of two
// adjacent runs, one for each operand, and returns those of the combined run. The order of
// association is unspecified. A negative axis counts from the last.
func AssociativeScan(b *ir.Builder, a AssociativeAttrs, in []ir.Value, combine func(b *ir.Builder, x, y []ir.Value) []ir.Value) []ir.Value {
	if !b.Require(OpAssociativeScan, "function that combines", combine != nil) {
		return make([]ir.Value, len(in))
	}
	var types []ir.Type
	for _, v := range slices.Concat(in, in) {
		types = append(types, ir.TypeOf(v.DType()))
	}
	if len(in) > 0 {
		a.Axis = fromFront([]int{a.Axis}, in[0].Rank())[0]
	}
	g := closed(b, "combine", types, func(b *ir.Builder, v []ir.Value) []ir.Value { return combine(b, v[:len(in)], v[len(in):]) })
	if b.Err() != nil {
		return make([]ir.Value, len(in))
	}
	return several(len(in), b.AddNode(OpAssociativeScan, &a, []*ir.Graph{g}, in...))
}

func inferAssociativeScan(n *ir.Node) ([]ir.Type, error) {
	in := n.InTypes()
	if len(in) == 0 {
		return nil, ir.Shapef("there is no operand")
	}
	var scalars []ir.Type
	for _, t := range in {
		if !t.Shape.Equal(in[0].Shape) {
			return nil, ir.Shapef("%s and %s have not one shape", in[0], t)
		}
		if err := plain.check(t.DType); err != nil {
			return nil, err
		}
		scalars = append(scalars, ir.TypeOf(t.DType))
	}
	g := n.Subgraphs()[0]
	if err := checkClosed(g, slices.Concat(scalars, scalars)); err != nil {
		return nil, err
	}
	if err := checkReturns(g, scalars); err != nil {
		return nil, err
	}
	for _, x := range g.Nodes() {
		if d := x.Def(); d.Scalar == nil && !d.IsComposite() && x.Op() != ir.OpPort && x.Op() != ir.OpConstant {
			return nil, ir.Errorf(ir.ErrGraph, "%s in graph %q is not elementwise", x.Op(), g.Name())
		}
	}
	return in, checkAxes([]int{n.Attrs().(*AssociativeAttrs).Axis}, len(in[0].Shape))
}

func evalAssociativeScan(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a, k := n.Attrs().(*AssociativeAttrs), len(in)
	out := make([]*ir.Array, k)
	for i, x := range in {
		out[i] = x.Clone()
	}
	dims := in[0].Dims
	step, length := strides(dims)[a.Axis], dims[a.Axis]
	for _, base := range offsets(dims, permute.Others(len(dims), []int{a.Axis})) {
		for i := 1; i < length; i++ {
			at, last := base+i*step, base+(i-1)*step
			if a.Reverse {
				at, last = base+(length-1-i)*step, base+(length-i)*step
			}
			args := make([]*ir.Array, 2*k)
			for j := range k {
				args[j], args[k+j] = ir.NewArray(in[j].DType), ir.NewArray(in[j].DType)
				copyElement(args[j], 0, out[j], last)
				copyElement(args[k+j], 0, in[j], at)
			}
			next, err := c.Call(n.Subgraphs()[0], args)
			if err != nil {
				return nil, err
			}
			for j := range k {
				copyElement(out[j], at, next[j], 0)
			}
		}
	}
	for i := range out {
		out[i] = c.Round(out[i])
	}
	return out, nil
}

// associativeAccumulators are the values and a flag that is false before the first
// element, since the operator need not have an identity.
func associativeAccumulators(n *ir.Node) []ir.Accumulator {
	out := []ir.Accumulator{{DType: ir.I32, Init: loop.Int(0)}}
	for _, t := range n.InTypes() {
		init := scalar.ConstBool(false)
		if !t.DType.IsBool() {
			init = scalar.Const(t.DType, 0)
		}
		out = append(out, ir.Accumulator{DType: t.DType, Init: init})
	}
	return out
}

func combineAssociative(n *ir.Node, x, y []scalar.Expr) []scalar.Expr {
	none := func(v []scalar.Expr) scalar.Expr { return scalar.Eq(v[0], loop.Int(0)) }
	out := []scalar.Expr{scalar.Max(x[0], y[0])}
	for i, v := range elementOf(n.Subgraphs()[0], slices.Concat(x[1:], y[1:])) {
		out = append(out, scalar.Select(none(x), y[1+i], scalar.Select(none(y), x[1+i], v)))
	}
	return out
}

// elementOf returns the outputs of a graph of elementwise nodes for one element of each
// port.
func elementOf(g *ir.Graph, in []scalar.Expr) []scalar.Expr {
	known := map[ir.Value]scalar.Expr{}
	for i, p := range g.Ports() {
		known[p.Value] = in[i]
	}
	for _, n := range g.Nodes() {
		switch a := n.Attrs().(type) {
		case *ir.PortAttrs:
		case *ir.ConstantAttrs:
			x, err := ir.ArrayOf(a.Type, a.Data)
			if err != nil {
				panic(err)
			}
			known[n.Result(0)] = literalElement(x)
		default:
			x := make([]scalar.Expr, len(n.Inputs()))
			for i, v := range n.Inputs() {
				x[i] = known[v]
			}
			known[n.Result(0)] = n.Def().Scalar(n, x)
		}
	}
	var out []scalar.Expr
	for _, o := range g.Outputs() {
		out = append(out, known[o.Value])
	}
	return out
}

// literalElement returns the first element of an array as a constant.
func literalElement(x *ir.Array) scalar.Expr {
	switch {
	case x.C != nil:
		return scalar.ConstC(x.DType, x.C[0])
	case x.F != nil:
		return scalar.ConstF(x.DType, x.F[0])
	case x.DType.IsBool():
		return scalar.ConstBool(x.I[0] != 0)
	}
	return scalar.ConstI(x.DType, x.I[0])
}

// jvpAssociativeScan differentiates y[i] = combine(y[i−1], x[i]): the tangent is a linear
// recurrence with the derivatives of the operator, from the tangent of the first element.
func jvpAssociativeScan(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	var real []int // the operands that have a tangent
	for i, v := range in {
		if derive.Differentiable(v.DType()) {
			real = append(real, i)
		}
	}
	tangents := make([]ir.Value, len(in))
	if b.Err() != nil {
		return tangents
	}
	if odd := slices.IndexFunc(real, func(i int) bool { return in[i].DType() != in[real[0]].DType() }); odd >= 0 || len(real) > maxRecurrence {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "there is a derivative of at most %d operands of float or complex elements, all of one type", maxRecurrence)))
		return tangents
	}
	a := n.Attrs().(*AssociativeAttrs)
	run := CumSumAttrs{Axis: a.Axis, Reverse: a.Reverse}
	back := run
	back.Reverse = !back.Reverse
	runs := make([]ir.Value, 0, 2*len(in))
	for _, y := range out {
		runs = append(runs, previousInScan(b, y, back))
	}
	runs = append(runs, in...)
	place := Iota(b, ir.I32, a.Axis, in[0].Shape()...)
	if a.Reverse {
		place = Reverse(b, place, a.Axis)
	}
	isFirst := Eq(b, place, ConstLike(b, place, 0))
	x, y := make([]ir.Value, len(real)*len(real)), make([]ir.Value, len(real))
	for j, from := range real {
		onward := slopesOfCombine(b, n.Subgraphs()[0], runs, from)
		own := slopesOfCombine(b, n.Subgraphs()[0], runs, len(in)+from)
		for i, to := range real {
			x[i*len(real)+j] = Select(b, isFirst, ZerosLike(b, onward[to]), onward[to])
			if !t[from].Valid() {
				continue
			}
			same := ConstLike(b, own[to], 0)
			if i == j {
				same = OnesLike(b, own[to])
			}
			y[i] = addTangents(b, y[i], scale(b, t[from], Select(b, isFirst, same, own[to])))
		}
	}
	for i := range y {
		y[i] = orZeros(b, y[i], in[real[i]])
	}
	for i, v := range LinearRecurrences(b, x, y, run) {
		tangents[real[i]] = v
	}
	return tangents
}

// previousInScan returns for each element the previous one in scan order, for any element type.
func previousInScan(b *ir.Builder, x ir.Value, a CumSumAttrs) ir.Value {
	if x.DType().IsBool() {
		return Convert(b, nextInScan(b, Convert(b, x, ir.I32), a), ir.Bool)
	}
	return nextInScan(b, x, a)
}

// slopesOfCombine returns the derivatives of the outputs of a graph of scalars by one
// port, at all elements of the given values.
func slopesOfCombine(b *ir.Builder, g *ir.Graph, at []ir.Value, by int) []ir.Value {
	types := portTypes(g)
	slopes := closed(b, "slopes", types, func(b *ir.Builder, v []ir.Value) []ir.Value {
		t := make([]ir.Value, len(v))
		t[by] = OnesLike(b, v[by])
		out, tangents := derive.JVP(b, g, v, t)
		for i := range out {
			tangents[i] = orZeros(b, tangents[i], out[i])
		}
		return tangents
	})
	if b.Err() != nil {
		return make([]ir.Value, len(types)/2)
	}
	return everywhere(b, slopes, at)
}

// everywhere maps a graph of scalars over all elements of values of one shape.
func everywhere(b *ir.Builder, g *ir.Graph, at []ir.Value) []ir.Value {
	shape := at[0].Shape()
	flat := make([]ir.Value, len(at))
	for i, v := range at {
		flat[i] = Reshape(b, v, shape.Size())
	}
	values, axes := derive.Batch(b, g, flat, slices.Repeat([]int{0}, len(flat)), shape.Size())
	for i, v := range values {
		if axes[i] < 0 {
			values[i] = BroadcastTo(b, v, shape)
		} else {
			values[i] = Reshape(b, v, shape...)
		}
	}
	return values
}
