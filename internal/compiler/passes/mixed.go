package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Mixed returns a graph that computes the products of g in mixed precision: f16
// or bf16. Matrix products, convolutions and attention that are f32 in g have
// operands and results rounded to half precision and accumulate in f32. Everything else
// stays f32: parameters, states, sums, norms, softmax, losses and updates, and also the
// names and types of ports and outputs. Composites that contain products are inlined, but
// for those with kernels of their own, such as factorisations, which stay f32. A
// value that several products use is rounded once, before it is moved (transposed,
// reshaped, broadcast, sliced, gathered from several devices). A value that only products and sums use is rounded for
// the sums too: a bias gradient then sums the rounded cotangent that the weight gradient
// uses, and no f32 copy is kept. In bf16 a concatenation of results of products, as in a DenseNet, has rounded
// operands, unless one is a port or a sum of several arrays, as a residual stream is.
//
// Differentiate first, so that products of the backward pass are in half precision too.
// In f16 small gradients underflow and large ones overflow, so scale the loss
// (optim.LossScale).
//
// The error is of kind [ir.ErrDType] for a type that is neither f16 nor bf16.
func Mixed(g *ir.Graph, half ir.DType) (*ir.Graph, error) {
	if half != ir.F16 && half != ir.BF16 {
		return nil, ir.DTypef("the type of products is %s; it must be f16 or bf16", half)
	}
	if err := g.NotNil(); err != nil {
		return nil, err
	}
	if hasScan(g) {
		var err error
		if g, err = Run(g, Options{Claim: func(n *ir.Node) bool { return isProduct(n) || productsIn(n) == nil }}); err != nil {
			return nil, err
		}
	}
	return ir.Transform(g.Name(), func(b *ir.Builder) { newMixedCopier(b, half).graph(g) })
}

// hasScan reports whether a graph has a loop with products. Sums of products are moved out of it before they are
// rounded in each step: the weight gradients of a recurrent network are products over all steps.
func hasScan(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		if n.Op() == ops.OpScan {
			return slices.ContainsFunc(n.Subgraphs()[0].Nodes(), func(n *ir.Node) bool { return isProduct(n) || productsIn(n) != nil })
		}
		body := productsIn(n)
		return body != nil && hasScan(body)
	})
}

// mixedCopier copies a graph and its subgraphs.
type mixedCopier struct {
	b        *ir.Builder
	half     ir.DType
	halfOf   map[ir.Value]ir.Value // values of the new graph in half precision
	uses     [][]*ir.Node          // of the graph whose nodes are copied, by node ID
	isOutput map[*ir.Node]bool     // by node of the graph being copied
}

func newMixedCopier(b *ir.Builder, half ir.DType) *mixedCopier {
	return &mixedCopier{b: b, half: half, halfOf: map[ir.Value]ir.Value{}}
}

// graph adds the ports, nodes and outputs of g.
func (m *mixedCopier) graph(g *ir.Graph) {
	to := ir.NewMapping(g)
	for _, n := range g.Nodes() {
		if p, ok := n.Attrs().(*ir.PortAttrs); ok {
			m.b.At(n.Pos())
			to.Set(n.Result(0), m.b.Port(p.Kind, p.Name, n.Types()[0]))
		}
	}
	m.nodes(g, to)
	m.b.CopyOutputs(g, to)
}

// nodes copies the nodes of g, whose ports are mapped.
func (m *mixedCopier) nodes(g *ir.Graph, to *ir.Mapping) {
	uses, kept := m.uses, m.isOutput // of the graph around a body
	defer func() { m.uses, m.isOutput = uses, kept }()
	m.uses, m.isOutput = g.Uses(), map[*ir.Node]bool{}
	for _, o := range g.Outputs() {
		m.isOutput[o.Value.Node()] = true
	}
	for _, n := range g.Nodes() {
		if m.b.Err() != nil {
			return
		}
		if n.Op() == ir.OpPort {
			continue
		}
		m.b.Label(n.Label())
		m.b.At(n.Pos())
		to.SetAll(n, m.node(n, to.Inputs(n)))
	}
}

// node adds the replacement of a node.
func (m *mixedCopier) node(n *ir.Node, in []ir.Value) []ir.Value {
	if isProduct(n) {
		return m.product(n, in)
	}
	if m.gathersForProducts(n) || m.joinsResults(n, in) {
		parts := make([]ir.Value, len(in))
		for i, v := range in {
			parts[i] = m.rounded(v)
		}
		whole := m.b.CopyWith(n, n.Attrs(), nil, parts)[0]
		out := ops.Convert(m.b, whole, ir.F32)
		m.halfOf[out] = whole
		return []ir.Value{out}
	}
	if n.Op() == ops.OpReduceSum && m.sharesRounding(n.Input(0)) {
		in = []ir.Value{ops.Convert(m.b, m.rounded(in[0]), ir.F32)}
	}
	if body := productsIn(n); body != nil {
		to := ir.NewMapping(body)
		to.SetPorts(body, in)
		m.nodes(body, to)
		return to.Outputs(body)
	}
	subs := slices.Clone(n.Subgraphs())
	for i, g := range subs {
		subs[i] = m.b.Subgraph(g.Name(), func(b *ir.Builder) { newMixedCopier(b, m.half).graph(g) })
	}
	return m.b.CopyWith(n, n.Attrs(), subs, in)
}

// sharesRounding reports whether v is computed in the graph and used by products, as it
// is or moved, and otherwise by sums only.
func (m *mixedCopier) sharesRounding(v ir.Value) bool {
	if n := v.Node(); v.DType() != ir.F32 || n.Op() == ir.OpPort || m.isOutput[n] {
		return false
	}
	multiplied := false
	for _, u := range m.uses[v.Node().ID()] {
		switch {
		case u.Op() == ops.OpReduceSum:
		case m.onlyFeedsProducts(u, v):
			multiplied = true
		default:
			return false
		}
	}
	return multiplied
}

// joinsResults reports whether a node concatenates results of products, or what follows elementwise from one each,
// and other values that follow from a single array. Those are not ports and no residual streams, whose sums lose
// digits, and in bf16 they don't overflow.
func (m *mixedCopier) joinsResults(n *ir.Node, in []ir.Value) bool {
	if n.Op() != ops.OpConcatenate || in[0].DType() != ir.F32 || m.half != ir.BF16 || m.isOutput[n] {
		return false
	}
	joins := false
	for _, v := range in {
		from := arraysOf(v, map[ir.Value]bool{})
		if len(from) != 1 || v.Node().Op() == ir.OpPort {
			return false
		}
		joins = joins || isContraction(from[0])
	}
	return joins
}

// arraysOf returns the nodes whose results of v's shape v is computed from elementwise, two at least where there are more. seen
// are values that were looked at before.
func arraysOf(v ir.Value, seen map[ir.Value]bool) (arrays []*ir.Node) {
	seen[v] = true
	n := v.Node()
	if n.Def().Scalar == nil {
		return []*ir.Node{n}
	}
	for _, in := range n.Inputs() {
		if len(arrays) < 2 && !seen[in] && in.Shape().Equal(v.Shape()) && in.Node().Op() != ops.OpBroadcastInDim {
			arrays = append(arrays, arraysOf(in, seen)...)
		}
	}
	return arrays
}

// gathersForProducts reports whether a node gathers parts of an array for products alone: rounded parts are half
// the bytes on the wire, and the result is the same.
func (m *mixedCopier) gathersForProducts(n *ir.Node) bool {
	if n.Op() != ops.OpAllGather || n.Input(0).DType() != ir.F32 || m.isOutput[n] {
		return false
	}
	users := m.uses[n.ID()]
	return len(users) > 0 && !slices.ContainsFunc(users, func(u *ir.Node) bool { return !m.onlyFeedsProducts(u, n.Result(0)) })
}

// onlyFeedsProducts reports whether a node is a product that uses v rounded, or moves v
// for such products only.
func (m *mixedCopier) onlyFeedsProducts(n *ir.Node, v ir.Value) bool {
	if isProduct(n) {
		at := slices.Index(n.Inputs(), v)
		return !slices.Contains(wideOperands[n.Op()], at)
	}
	users := m.uses[n.ID()]
	return movesElements[n.Op()] && len(users) > 0 && !m.isOutput[n] &&
		!slices.ContainsFunc(users, func(u *ir.Node) bool { return !m.onlyFeedsProducts(u, n.Result(0)) })
}

// wideOperands maps the ops that are computed in half precision to their operands that
// stay f32.
var wideOperands = map[ir.Op][]int{
	ops.OpDotGeneral:        nil,
	ops.OpConvGeneral:       nil,
	ops.OpAttention:         nil,
	ops.OpAttentionForward:  nil,
	ops.OpAttentionBackward: {3, 4}, // log-sum-exp and delta
}

// isProduct reports whether a node is computed in half precision.
func isProduct(n *ir.Node) bool {
	_, ok := wideOperands[n.Op()]
	return ok && n.Input(0).DType() == ir.F32
}

// productsIn returns the body of a composite that contains products at any depth, or
// nil. An op with kernels of its own is kept: elimination loses the digits that half precision
// has, and its body is only for targets that the kernels do not fit.
func productsIn(n *ir.Node) *ir.Graph {
	if !n.Def().IsComposite() || n.Def().Lower != nil && !unpacks(n) {
		return nil
	}
	body, err := ir.Inline(n)
	if err != nil {
		return nil // inlining reports the error
	}
	if hasProducts(body) {
		return body
	}
	return nil
}

// unpackedRows is the minimum number of rows of x for which weights are unpacked for a product in half
// precision: for fewer rows the memory traffic of the unpacked numbers costs more than it saves.
const unpackedRows = 64

// unpacks reports whether a node is a product with packed weights that is computed with the unpacked ones.
func unpacks(n *ir.Node) bool {
	if _, packed := n.Attrs().(*ops.PackedProductAttrs); !packed || n.Input(0).DType() != ir.F32 {
		return false
	}
	x := n.Input(0).Shape()
	rows, known := x[:len(x)-1].Size().Const()
	if n.Op() == ops.OpQuantizedGroupedMatMul { // half the mean of a group
		matrices, _ := n.Input(1).Dim(0).Const()
		rows /= max(2*matrices, 1)
	}
	return !known || rows >= unpackedRows
}

// hasProducts reports whether a graph contains products at any depth, of composites and of loops.
func hasProducts(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return isProduct(n) || productsIn(n) != nil || slices.ContainsFunc(n.Subgraphs(), hasProducts)
	})
}

// product adds a product in half precision and converts the results back.
func (m *mixedCopier) product(n *ir.Node, in []ir.Value) []ir.Value {
	narrow := slices.Clone(in)
	for i, v := range in {
		if v.DType() == ir.F32 && !slices.Contains(wideOperands[n.Op()], i) {
			narrow[i] = m.rounded(v)
		}
	}
	out := m.b.CopyWith(n, n.Attrs(), nil, narrow)
	for i, v := range out {
		if m.b.Err() == nil && v.DType() != n.Types()[i].DType {
			out[i] = ops.Convert(m.b, v, n.Types()[i].DType)
			m.halfOf[out[i]] = v
		}
	}
	return out
}

// movesElements has the ops of one operand that only move elements.
var movesElements = map[ir.Op]bool{
	ops.OpReshape: true, ops.OpTranspose: true, ops.OpBroadcastInDim: true, ops.OpSlice: true, ops.OpReverse: true,
}

// rounded returns a value in half precision. It rounds a moved value before the move, so
// that a weight used forward, and transposed backward, is rounded once.
func (m *mixedCopier) rounded(v ir.Value) ir.Value {
	if twin, ok := m.halfOf[v]; ok || m.b.Err() != nil {
		return twin
	}
	n, twin := v.Node(), ir.Value{}
	if movesElements[n.Op()] {
		twin = m.b.CopyWith(n, n.Attrs(), nil, []ir.Value{m.rounded(n.Input(0))})[0]
	} else {
		twin = ops.Convert(m.b, v, m.half)
	}
	m.halfOf[v] = twin
	return twin
}
