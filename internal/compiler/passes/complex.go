package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// LowerComplex lowers complex values to pairs of real and imaginary parts, for devices with
// real arithmetic only. A complex port or
// output becomes a real one of the same name with a last axis of 2, which has the
// memory layout of the complex one. g must be free of composites. The error is of kind
// [ir.ErrUnsupported] and names the first node for which [HasComplexRule] is false.
func LowerComplex(g *ir.Graph) (*ir.Graph, error) {
	if err := g.NotNil(); err != nil {
		return nil, err
	}
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		p := newComplexCopier(b, g)
		if p.nodes(g); b.Err() != nil {
			return
		}
		for _, o := range g.Outputs() {
			b.CopyOutput(o, p.packed(o.Value))
		}
	})
}

// HasType reports whether a graph or one of its subgraphs has values of an element type.
func HasType(g *ir.Graph, d ir.DType) bool {
	has := func(t ir.Type) bool { return t.DType == d }
	inside := func(g *ir.Graph) bool { return HasType(g, d) }
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return slices.ContainsFunc(n.Types(), has) || slices.ContainsFunc(n.Subgraphs(), inside)
	})
}

func hasComplex(g *ir.Graph) bool { return HasType(g, ir.C64) || HasType(g, ir.C128) }

// HasComplexRule reports whether [LowerComplex] has a rule for a node, or for all nodes of its body
// and subgraphs.
func HasComplexRule(n *ir.Node) bool {
	unable := func(g *ir.Graph) bool {
		return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return !HasComplexRule(n) })
	}
	if slices.ContainsFunc(n.Subgraphs(), unable) {
		return false
	}
	if !isComplex(n) {
		return true
	}
	if n.Def().IsComposite() {
		body, err := ir.Inline(n)
		return err == nil && !unable(body)
	}
	return len(n.Subgraphs()) > 0 || rulesFor(n.Op()) != nil
}

// isComplex reports whether a node has complex operands or results.
func isComplex(n *ir.Node) bool {
	complex := func(t ir.Type) bool { return t.DType.IsComplex() }
	return slices.ContainsFunc(n.Types(), complex) || slices.ContainsFunc(n.InTypes(), complex)
}

// pair is a complex value as its real and imaginary part.
type pair struct{ re, im ir.Value }

// complexCopier copies a graph with complex values as pairs.
type complexCopier struct {
	b     *ir.Builder
	to    *ir.Mapping       // real values
	parts map[ir.Value]pair // complex ones, by those of the old graph
}

func newComplexCopier(b *ir.Builder, g *ir.Graph) *complexCopier {
	return &complexCopier{b: b, to: ir.NewMapping(g), parts: map[ir.Value]pair{}}
}

// nodes copies all nodes except ports that already have values.
func (p *complexCopier) nodes(g *ir.Graph) {
	for _, n := range g.Nodes() {
		if n.Op() == ir.OpPort && p.has(n.Result(0)) {
			continue
		}
		p.b.Label(n.Label())
		p.b.At(n.Pos())
		if p.node(n); p.b.Err() != nil {
			return
		}
	}
}

func (p *complexCopier) has(v ir.Value) bool {
	_, ok := p.parts[v]
	return ok || p.to.Get(v).Valid()
}

// packed returns a value of the old graph as one value, with the parts of a complex one
// along a last axis of 2.
func (p *complexCopier) packed(v ir.Value) ir.Value {
	if x, ok := p.parts[v]; ok {
		return ops.Stack(p.b, -1, x.re, x.im)
	}
	return p.to.Get(v)
}

// setPacked maps a value of the old graph to one in the form of packed.
func (p *complexCopier) setPacked(v, w ir.Value) {
	if !v.DType().IsComplex() || !w.Valid() {
		p.to.Set(v, w)
		return
	}
	shape := v.Shape()
	part := func(i int) ir.Value {
		return ops.Reshape(p.b, ops.SliceAxis(p.b, w, len(shape), ir.N(i), ir.N(1)), shape...)
	}
	p.parts[v] = pair{part(0), part(1)}
}

// partsOf returns a value of the old graph as a pair; a real value is both parts, so
// that both halves of a rule use it.
func (p *complexCopier) partsOf(v ir.Value) pair {
	if x, ok := p.parts[v]; ok {
		return x
	}
	return pair{p.to.Get(v), p.to.Get(v)}
}

func (p *complexCopier) node(n *ir.Node) {
	switch rule := rulesFor(n.Op()); {
	case n.Op() == ops.OpAssociativeScan && isComplex(n):
		p.associativeScan(n)
	case slices.ContainsFunc(n.Subgraphs(), hasComplex):
		p.control(n)
	case !isComplex(n):
		if a, ok := n.Attrs().(*ir.PortAttrs); ok {
			p.to.Set(n.Result(0), p.b.CopyPort(ir.Port{Name: a.Name, Kind: a.Kind, Value: n.Result(0)}))
			return
		}
		p.b.CopyNode(n, p.to)
	case n.Op() == ir.OpPort:
		p.port(n)
	case n.Op() == ir.OpConstant:
		p.constant(n)
	case rule == nil:
		p.b.Fail(n.Fail(ir.Errorf(ir.ErrUnsupported, "%s has no rule for the parts of complex numbers", n.Op())))
	default:
		in := make([]pair, len(n.Inputs()))
		for i, v := range n.Inputs() {
			in[i] = p.partsOf(v)
		}
		for i, out := range rule(p.b, n, in) {
			if n.Types()[i].DType.IsComplex() {
				p.parts[n.Result(i)] = out
			} else {
				p.to.Set(n.Result(i), out.re)
			}
		}
	}
}

func (p *complexCopier) port(n *ir.Node) {
	a, t := n.Attrs().(*ir.PortAttrs), n.Types()[0]
	t = ir.Type{DType: t.DType.Real(), Shape: append(t.Shape.Clone(), ir.N(2))}
	p.setPacked(n.Result(0), p.b.Port(a.Kind, a.Name, t))
}

func (p *complexCopier) constant(n *ir.Node) {
	a, t := n.Attrs().(*ir.ConstantAttrs), n.Types()[0]
	half := t.DType.Real().Size()
	part := func(from int) ir.Value {
		var data []byte
		for at := from; at < len(a.Data); at += 2 * half {
			data = append(data, a.Data[at:at+half]...)
		}
		return p.b.Constant(ir.Type{DType: t.DType.Real(), Shape: t.Shape}, data)
	}
	p.parts[n.Result(0)] = pair{part(0), part(half)}
}

// pairRule computes an op from the parts of its operands. A real result is the first
// part.
type pairRule func(b *ir.Builder, n *ir.Node, in []pair) pair

// rulesFor returns the rule for all results of an op, or nil.
func rulesFor(op ir.Op) func(b *ir.Builder, n *ir.Node, in []pair) []pair {
	if op == ops.OpLinearRecurrence {
		return linearRecurrencePair
	}
	rule := ruleFor(op)
	if rule == nil {
		return nil
	}
	return func(b *ir.Builder, n *ir.Node, in []pair) []pair { return []pair{rule(b, n, in)} }
}

// ruleFor returns the rule of an op with one result, or nil.
func ruleFor(op ir.Op) pairRule {
	switch op {
	case ir.OpPort, ir.OpConstant,
		ops.OpAdd, ops.OpSub, ops.OpNeg, ops.OpSelect, ops.OpStopGradient, ops.OpRematerialize, ops.OpReduceSum, ops.OpCumSum,
		ops.OpReshape, ops.OpTranspose, ops.OpBroadcastInDim, ops.OpSlice, ops.OpReverse, ops.OpPad, ops.OpConcatenate,
		ops.OpScatter, ops.OpScatterAdd:
		return eachPart
	case ops.OpComplex:
		return func(_ *ir.Builder, _ *ir.Node, in []pair) pair { return pair{in[0].re, in[1].re} }
	case ops.OpReal:
		return func(_ *ir.Builder, _ *ir.Node, in []pair) pair { return in[0] }
	case ops.OpImag:
		return func(_ *ir.Builder, _ *ir.Node, in []pair) pair { return pair{re: in[0].im} }
	case ops.OpConj:
		return func(b *ir.Builder, _ *ir.Node, in []pair) pair { return pair{in[0].re, ops.Neg(b, in[0].im)} }
	case ops.OpMul, ops.OpMulZero, ops.OpDotGeneral, ops.OpConvGeneral:
		return productPair
	case ops.OpDiv:
		return divPair
	case ops.OpGather:
		return gatherPair
	case ops.OpCumProd:
		return cumProdPair
	case ops.OpReduceProd:
		return reduceProdPair
	case ops.OpScatterMul:
		return scatterMulPair
	case ops.OpEq, ops.OpNe:
		return comparePair
	case ops.OpConvert:
		return convertPair
	case ops.OpDimSize:
		return func(b *ir.Builder, n *ir.Node, _ []pair) pair {
			size := ops.DimSize(b, n.Types()[0].DType.Real(), n.Attrs().(*ops.DimSizeAttrs).Sizes...)
			return pair{size, ops.ZerosLike(b, size)}
		}
	}
	return nil
}

// eachPart applies an op that is linear with real coefficients, or moves elements,
// to each part. Indices and conditions are real and shared.
func eachPart(b *ir.Builder, n *ir.Node, in []pair) pair {
	re, im := make([]ir.Value, len(in)), make([]ir.Value, len(in))
	for i, x := range in {
		re[i], im[i] = x.re, x.im
	}
	return pair{b.Copy(n, re)[0], b.Copy(n, im)[0]}
}

// gatherPair gathers both parts; the fill value is real.
func gatherPair(b *ir.Builder, n *ir.Node, in []pair) pair {
	a := *n.Attrs().(*ops.GatherAttrs)
	a.Fill = 0
	return pair{b.Copy(n, []ir.Value{in[0].re, in[1].re})[0], ops.Gather(b, in[0].im, in[1].re, a)}
}

func productPair(b *ir.Builder, n *ir.Node, in []pair) pair {
	x, y := in[0], in[1]
	by := func(p, q ir.Value) ir.Value { return b.Copy(n, []ir.Value{p, q})[0] }
	return pair{
		ops.Sub(b, by(x.re, y.re), by(x.im, y.im)),
		ops.Add(b, by(x.re, y.im), by(x.im, y.re)),
	}
}

// divPair divides by the larger part of the divisor first, so that squares
// do not overflow where the quotient does not (Smith, Algorithm 116: Complex
// Division): with |c| ≥ |d|, r = d/c and m = c + d·r, (a + b·i)/(c + d·i) is
// (a + b·r)/m + (b − a·r)/m·i. If |d| is larger, both numbers are multiplied by −i first.
func divPair(b *ir.Builder, _ *ir.Node, in []pair) pair {
	x, y := in[0], in[1]
	rotated := ops.Lt(b, ops.Abs(b, y.re), ops.Abs(b, y.im))
	rotate := func(p pair) pair {
		return pair{ops.Select(b, rotated, p.im, p.re), ops.Select(b, rotated, ops.Neg(b, p.re), p.im)}
	}
	x, y = rotate(x), rotate(y)
	r := ops.Div(b, y.im, y.re)
	m := ops.Add(b, y.re, ops.Mul(b, y.im, r))
	return pair{
		ops.Div(b, ops.Add(b, x.re, ops.Mul(b, x.im, r)), m),
		ops.Div(b, ops.Sub(b, x.im, ops.Mul(b, x.re, r)), m),
	}
}

// comparePair is equality, of both parts.
func comparePair(b *ir.Builder, n *ir.Node, in []pair) pair {
	parts := eachPart(b, n, in)
	if n.Op() == ops.OpNe {
		return pair{re: ops.Or(b, parts.re, parts.im)}
	}
	return pair{re: ops.And(b, parts.re, parts.im)}
}

// convertPair converts to another complex type.
func convertPair(b *ir.Builder, n *ir.Node, in []pair) pair {
	to := n.Types()[0].DType.Real()
	return pair{ops.Convert(b, in[0].re, to), ops.Convert(b, in[0].im, to)}
}

func mulPair(b *ir.Builder, x, y pair) pair {
	return pair{
		ops.Sub(b, ops.Mul(b, x.re, y.re), ops.Mul(b, x.im, y.im)),
		ops.Add(b, ops.Mul(b, x.re, y.im), ops.Mul(b, x.im, y.re)),
	}
}

func addPair(b *ir.Builder, x, y pair) pair {
	return pair{ops.Add(b, x.re, y.re), ops.Add(b, x.im, y.im)}
}

// mulEach is mulPair as the combiner of a scan.
func mulEach(b *ir.Builder, x, y []pair) []pair { return []pair{mulPair(b, x[0], y[0])} }

// cumProdPair is cumprod, an associative scan of both parts.
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

// shiftByOne turns an inclusive scan into an exclusive one: it shifts x by one element
// along the scan axis and puts first at the start.
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

// linearRecurrencePair is linear_recurrence: the composition of h → x·h + x' and
// h → y·h + y' is h → (y·x)·h + (y·x' + y').
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

// reduceProdPair is reduce_prod: axis by axis, the last element of the cumulative product.
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

// scatterMulPair is scatter_mul: updates are sorted by their target, a segmented scan
// multiplies those of one target, and the last product of each segment is stored.
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

// control copies an op with subgraphs (scan, cond, while). Operands and results of the
// subgraphs are packed with a last axis of 2, so that the axis of steps stays first.
func (p *complexCopier) control(n *ir.Node) {
	subs := make([]*ir.Graph, len(n.Subgraphs()))
	for i, g := range n.Subgraphs() {
		var err error
		if subs[i], err = LowerComplex(g); err != nil {
			p.b.Fail(err)
			return
		}
	}
	in := make([]ir.Value, len(n.Inputs()))
	for i, v := range n.Inputs() {
		in[i] = p.packed(v)
	}
	for i, v := range p.b.CopyWith(n, n.Attrs(), subs, in) {
		if p.b.Err() == nil {
			p.setPacked(n.Result(i), v)
		}
	}
}

// associativeScan copies an associative scan. Its combiner is a graph of scalars, so the
// parts are separate operands.
func (p *complexCopier) associativeScan(n *ir.Node) {
	a, g := n.Attrs().(*ops.AssociativeAttrs), n.Subgraphs()[0]
	var in []ir.Value
	for _, v := range n.Inputs() {
		in = append(in, p.components(v)...)
	}
	out := ops.AssociativeScan(p.b, *a, in, func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		inner := newComplexCopier(b, g)
		scalars := slices.Concat(x, y)
		for _, port := range g.Ports() {
			scalars = inner.setComponents(port.Value, scalars)
		}
		inner.nodes(g)
		var out []ir.Value
		for _, o := range g.Outputs() {
			out = append(out, inner.components(o.Value)...)
		}
		return out
	})
	for i := range n.NumResults() {
		out = p.setComponents(n.Result(i), out)
	}
}

// components returns a value of the old graph as one value or, if it is complex, two.
func (p *complexCopier) components(v ir.Value) []ir.Value {
	if x, ok := p.parts[v]; ok {
		return []ir.Value{x.re, x.im}
	}
	return []ir.Value{p.to.Get(v)}
}

// setComponents maps a value of the old graph to the first components of a list, in the
// form of components, and returns the rest.
func (p *complexCopier) setComponents(v ir.Value, list []ir.Value) []ir.Value {
	if v.DType().IsComplex() {
		p.parts[v] = pair{list[0], list[1]}
		return list[2:]
	}
	p.to.Set(v, list[0])
	return list[1:]
}
