package padding

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/padding/padded"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Analysis says which elements of a graph are padding, for any sizes of its symbols.
type Analysis struct {
	graph   *ir.Graph
	open    func(d ir.Dim) bool
	nodes   []decision
	extents [][][]ir.Extent // by node and result
	zero    map[ir.Value]bool
	sizes   map[ir.Dim]bool // sizes of arrays, which the bound sizes must not make smaller
	least   map[ir.Dim]bool // sizes that the true sizes must make valid
	forms   *ir.Forms       // of composites
	checked map[int]bool    // by form, composites whose bodies do not depend on sizes
	fit     *padded.Fit     // of the whole graph
}

// decision is how a node is added to the padded graph.
type decision struct {
	fills []ir.PadFill
	emit  func(e ir.PadEmitter, in []ir.Value) []ir.Value
	body  *Analysis   // of a composite that is replaced by its body
	subs  []*Analysis // of subgraphs that need true sizes
}

// plain reports whether the node is copied unchanged.
func (d *decision) plain() bool {
	return len(d.fills) == 0 && d.emit == nil && d.body == nil && d.subs == nil
}

// Analyze returns the analysis of a graph in which the symbols that open names may be bound to sizes
// larger than the true ones. The error is of kind [ir.ErrUnsupported] for a node whose results would
// depend on padding, and for a parameter or a state with an open size.
func Analyze(g *ir.Graph, open func(symbol string) bool) (*Analysis, error) {
	isOpen := func(d ir.Dim) bool { return slices.ContainsFunc(d.Symbols(), open) }
	a := newAnalysis(g, memoized(isOpen))
	in := make([][]ir.Extent, len(g.Ports()))
	for i, p := range g.Ports() {
		in[i] = plainExtents(p.Value.Shape())
		if p.Kind != ir.InputPort && slices.ContainsFunc(p.Value.Shape(), a.open) {
			return nil, p.Value.Node().Fail(ir.Errorf(ir.ErrUnsupported, "its size is open: bind it, a %s has one size", p.Kind))
		}
		a.zero[p.Value] = p.Kind == ir.InputPort
	}
	return a, a.whole(in)
}

// whole is run for a graph that is not a part of another, and describes it.
func (a *Analysis) whole(in [][]ir.Extent) error {
	if err := a.run(in); err != nil {
		return err
	}
	a.fit = &padded.Fit{Sizes: slices.SortedFunc(keys(a.sizes), compareDims), Least: slices.SortedFunc(keys(a.least), compareDims)}
	for i, o := range a.graph.Outputs() {
		if !o.State {
			a.fit.Outputs = append(a.fit.Outputs, padded.Output{Name: o.Name, DType: o.Value.DType(), Axes: a.Output(i)})
		}
	}
	return nil
}

// Fit returns the description of the padded graph.
func (a *Analysis) Fit() *padded.Fit { return a.fit }

func memoized(f func(d ir.Dim) bool) func(d ir.Dim) bool {
	known := map[ir.Dim]bool{}
	return func(d ir.Dim) bool {
		if _, constant := d.Const(); constant {
			return false
		}
		is, ok := known[d]
		if !ok {
			is = f(d)
			known[d] = is
		}
		return is
	}
}

func newAnalysis(g *ir.Graph, open func(ir.Dim) bool) *Analysis {
	return &Analysis{
		graph: g, open: open, zero: map[ir.Value]bool{}, sizes: map[ir.Dim]bool{}, least: map[ir.Dim]bool{},
		nodes: make([]decision, len(g.Nodes())), extents: make([][][]ir.Extent, len(g.Nodes())),
		forms: ir.NewForms(), checked: map[int]bool{},
	}
}

// inner returns the analysis of a body or a subgraph whose ports have the given extents.
func (a *Analysis) inner(g *ir.Graph, in [][]ir.Extent) (*Analysis, error) {
	sub := newAnalysis(g, a.open)
	sub.forms, sub.checked = a.forms, a.checked
	err := sub.run(in)
	maps.Copy(a.sizes, sub.sizes)
	maps.Copy(a.least, sub.least)
	return sub, err
}

// run decides about all nodes, given the extents of the ports.
func (a *Analysis) run(in [][]ir.Extent) error {
	for i, p := range a.graph.Ports() {
		a.extents[p.Value.Node().ID()] = [][]ir.Extent{in[i]}
		a.require(p.Value.Shape()...)
	}
	for _, n := range a.graph.Nodes() {
		if n.Op() == ir.OpPort {
			continue
		}
		for _, t := range n.Types() {
			a.require(t.Shape...)
		}
		if a.isClosed(n) {
			a.extents[n.ID()] = closedExtents(n)
			continue
		}
		if err := a.node(n); err != nil {
			return n.Fail(err)
		}
	}
	return nil
}

// require records sizes of arrays.
func (a *Analysis) require(dims ...ir.Dim) {
	for _, d := range dims {
		if _, constant := d.Const(); !constant {
			a.sizes[d] = true
		}
	}
}

// isClosed reports whether no size of a node is open.
func (a *Analysis) isClosed(n *ir.Node) bool {
	for _, t := range slices.Concat(n.Types(), n.InTypes()) {
		if slices.ContainsFunc(t.Shape, a.open) {
			return false
		}
	}
	return !slices.ContainsFunc(ir.AttrDims(n), a.open) && !slices.ContainsFunc(n.Subgraphs(), func(g *ir.Graph) bool {
		return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return !a.isClosed(n) })
	})
}

func closedExtents(n *ir.Node) [][]ir.Extent {
	out := make([][]ir.Extent, n.NumResults())
	for i, t := range n.Types() {
		out[i] = plainExtents(t.Shape)
	}
	return out
}

func plainExtents(s ir.Shape) []ir.Extent {
	out := make([]ir.Extent, len(s))
	for i, d := range s {
		out[i] = ir.ExtentOf(d)
	}
	return out
}

// node decides about a node with an open size.
func (a *Analysis) node(n *ir.Node) error {
	in := make([][]ir.Extent, len(n.Inputs()))
	for i, v := range n.Inputs() {
		in[i] = a.extents[v.Node().ID()][v.Index()]
	}
	d, rule := n.Def(), ruleOf(n)
	switch {
	case rule != nil:
		return a.apply(n, in, rule)
	case isAttention(n.Op()):
		if p := (&ir.Padding{Node: n, In: in, Open: a.open}); attention(p) {
			a.adopt(p)
			return nil
		}
		return a.composite(n, in)
	case len(n.Subgraphs()) > 0 && d.Body == nil:
		return a.control(n, in)
	case d.Scalar != nil:
		return a.apply(n, in, elementwise)
	case d.Body != nil:
		return a.composite(n, in)
	}
	return ir.Errorf(ir.ErrUnsupported, "it has no rule for padding, and one of its sizes is open: %v", errExact)
}

// errExact is the remedy for graphs that cannot be padded.
var errExact = errors.New("compile the symbol for its true sizes")

// apply applies a rule.
func (a *Analysis) apply(n *ir.Node, in [][]ir.Extent, rule func(p *ir.Padding) error) error {
	p := &ir.Padding{Node: n, In: in, Open: a.open}
	if err := rule(p); err != nil {
		return err
	}
	a.adopt(p)
	return nil
}

func isAttention(op ir.Op) bool {
	return op == ops.OpAttention || op == ops.OpAttentionForward || op == ops.OpAttentionBackward
}

// adopt applies the padding rule of a node.
func (a *Analysis) adopt(p *ir.Padding) {
	n := p.Node
	for _, d := range p.NonNegative {
		a.least[d] = true
	}
	a.extents[n.ID()] = p.Out
	for _, axes := range p.Out {
		for _, e := range axes {
			a.require(e...)
		}
	}
	d := &a.nodes[n.ID()]
	d.emit = p.Emit
	for _, f := range p.Fills {
		if value, ok := f.Value.Value(); !ok || !a.zero[n.Input(f.Operand)] || value.F != 0 || value.I != 0 || value.C != 0 {
			d.fills = append(d.fills, f)
		}
	}
}

// composite keeps a composite if its body needs no mask, and otherwise inlines it.
func (a *Analysis) composite(n *ir.Node, in [][]ir.Extent) error {
	g, err := ir.Inline(n)
	if err != nil {
		return refuse("its body needs constant sizes: %v", err)
	}
	if err := a.checkBody(n, g); err != nil {
		return err
	}
	body, err := a.inner(g, in)
	if err != nil {
		return err
	}
	a.extents[n.ID()] = body.outputs()
	if !body.plain() {
		a.nodes[n.ID()].body = body
	}
	return nil
}

// probes are factors of the sizes for which the body of a composite is built: small and large ones,
// odd ones and divisors. Each symbol also has a distinct prime, so that no two axes happen to have
// equal sizes.
var (
	probes = []int{1, 12, 24}
	primes = []int{5, 7, 11, 13, 17, 19, 23}
)

// checkBody returns an error if the body of a composite is built in another way for constant sizes than
// for symbolic ones: its rules would then be those of another algorithm.
func (a *Analysis) checkBody(n *ir.Node, body *ir.Graph) error {
	form := a.forms.Of(n)
	if a.checked[form] {
		return nil
	}
	alone, err := ir.Transform(string(n.Op()), func(b *ir.Builder) {
		in := make([]ir.Value, len(n.Inputs()))
		for i, t := range n.InTypes() {
			in[i] = b.Port(ir.InputPort, strconv.Itoa(i), t)
		}
		for i, v := range b.AddNode(n.Op(), n.Attrs(), n.Subgraphs(), in...) {
			b.Output(strconv.Itoa(i), v)
		}
	})
	if err != nil {
		return err
	}
	symbols := symbolsOf(alone)
	built := false
	for _, factor := range probes {
		sizes := map[string]int{}
		for i, s := range symbols {
			sizes[s] = factor * primes[i%len(primes)]
		}
		bound, err := alone.Bind(sizes)
		if err != nil {
			continue // the op does not accept this size
		}
		want, err := ir.Inline(bound.Nodes()[len(bound.Nodes())-1])
		if err != nil {
			continue
		}
		if got, err := body.Bind(sizes); err != nil || !got.Equal(want) {
			return refuse("its algorithm depends on its sizes")
		}
		built = true
	}
	if !built {
		return refuse("its sizes are too special to be tried")
	}
	a.checked[form] = true
	return nil
}

// symbolsOf returns the symbols of the types and attributes of a graph.
func symbolsOf(g *ir.Graph) []string {
	set := map[string]bool{}
	add := func(dims []ir.Dim) {
		for _, d := range dims {
			for _, s := range d.Symbols() {
				set[s] = true
			}
		}
	}
	for _, n := range g.Nodes() {
		add(ir.AttrDims(n))
		for _, t := range n.Types() {
			add(t.Shape)
		}
		for _, sub := range n.Subgraphs() {
			for _, s := range symbolsOf(sub) {
				set[s] = true
			}
		}
	}
	return slices.Sorted(keys(set))
}

// outputs returns the extents of the outputs.
func (a *Analysis) outputs() [][]ir.Extent {
	out := make([][]ir.Extent, len(a.graph.Outputs()))
	for i, o := range a.graph.Outputs() {
		out[i] = a.extents[o.Value.Node().ID()][o.Value.Index()]
	}
	return out
}

// plain reports whether the graph is itself padded once its symbols are bound.
func (a *Analysis) plain() bool {
	return !slices.ContainsFunc(a.nodes, func(d decision) bool { return !d.plain() })
}

// Output returns the extents of output i of the graph.
func (a *Analysis) Output(i int) []ir.Extent {
	v := a.graph.Outputs()[i].Value
	out := slices.Clone(a.extents[v.Node().ID()][v.Index()])
	for axis, e := range out {
		if e == nil {
			out[axis] = ir.ExtentOf(v.Dim(axis))
		}
	}
	return out
}
