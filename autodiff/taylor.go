package autodiff

import (
	"math"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// unbounded is the degree of a series that may be infinite.
const unbounded = math.MaxInt / 4

// series is a value that depends on s, as the coefficients of its power series. A coefficient is
// added to the graph when it is first requested, from coefficients of lower or equal order. So a
// series may be defined recursively, as the solution of a differential equation.
type series struct {
	id     int
	degree int // higher coefficients are zero; 0 for a constant
	terms  []ir.Value
	term   func(k int) ir.Value
	slope  *series // the derivative by s, once requested
}

// at returns coefficient k, an invalid Value if it is known to be zero.
func (s *series) at(k int) ir.Value {
	if k > s.degree {
		return ir.Value{}
	}
	for len(s.terms) <= k {
		s.terms = append(s.terms, s.term(len(s.terms)))
	}
	return s.terms[k]
}

// isConstant reports whether the value does not depend on s.
func (s *series) isConstant() bool { return s.degree == 0 }

// taylor maps graphs to the series of their values. Nodes that compute the same from the same
// series share one series. This closes cycles of derivative rules, such as sin and cos, and keeps
// the graph small.
type taylor struct {
	b     *ir.Builder
	count int
	known map[string][]*series
	rules map[string]*stepRule
}

func newTaylor(b *ir.Builder) *taylor {
	return &taylor{b: b, known: map[string][]*series{}, rules: map[string]*stepRule{}}
}

// series returns a new series with coefficients computed by term.
func (w *taylor) series(degree int, term func(k int) ir.Value) *series {
	w.count++
	return &series{id: w.count, degree: degree, term: term}
}

// fromTerms returns the series with the given coefficients.
func (w *taylor) fromTerms(terms []ir.Value) *series {
	return w.series(len(terms)-1, func(k int) ir.Value { return terms[k] })
}

// derivative returns the series of dx/ds.
func (w *taylor) derivative(x *series) *series {
	if x.slope == nil {
		x.slope = w.series(max(x.degree-1, 0), func(k int) ir.Value { return scale(w.b, x.at(k+1), float64(k+1)) })
		if x.degree == unbounded {
			x.slope.degree = unbounded
		}
	}
	return x.slope
}

// graph returns the series of the outputs of g, given those of its ports.
func (w *taylor) graph(g *ir.Graph, in []*series) []*series {
	of := make([][]*series, len(g.Nodes()))
	for i, p := range g.Ports() {
		of[p.Value.Node().ID()] = []*series{in[i]}
	}
	for _, n := range g.Nodes() {
		if n.Op() == ir.OpPort {
			continue
		}
		operands := make([]*series, len(n.Inputs()))
		for i, v := range n.Inputs() {
			operands[i] = of[v.Node().ID()][v.Index()]
		}
		if of[n.ID()] = w.node(n, operands); w.b.Err() != nil {
			return nil
		}
	}
	out := make([]*series, len(g.Outputs()))
	for i, o := range g.Outputs() {
		out[i] = of[o.Value.Node().ID()][o.Value.Index()]
	}
	return out
}

// node returns the series of the results of n.
func (w *taylor) node(n *ir.Node, in []*series) []*series {
	key := keyOf(n, in)
	if s, ok := w.known[key]; ok {
		return s
	}
	a := w.apply(n, in)
	d := n.Def()
	// Register a composite by name only after its body is expanded: a rule may lead back to it.
	switch {
	case !a.isMoving() || d.JVP == nil && d.Body == nil:
		w.known[key] = a.constants()
	case d.JVP == nil:
		body, err := ir.Inline(n)
		if err != nil {
			w.b.Fail(n.Fail(err))
			return nil
		}
		w.known[key] = w.graph(body, in)
	case isProduct(n.Op()) && !in[0].isConstant() && !in[1].isConstant():
		w.known[key] = []*series{a.product()}
	case n.Op() == ops.OpDiv && !in[1].isConstant():
		w.known[key] = []*series{a.quotient()}
	default:
		w.known[key] = a.byRule()
	}
	return w.known[key]
}

// keyOf returns a key that is equal for nodes that compute the same from the same series.
func keyOf(n *ir.Node, in []*series) string {
	var sb strings.Builder
	writeOp(&sb, n)
	for _, s := range in {
		sb.WriteByte(' ')
		sb.WriteString(strconv.Itoa(s.id))
	}
	return sb.String()
}

// writeOp writes the name, attributes and subgraphs of an op.
func writeOp(sb *strings.Builder, n *ir.Node) {
	sb.WriteString(string(n.Op()))
	if c, ok := n.Attrs().(*ir.ConstantAttrs); ok {
		sb.WriteString(c.Type.String())
		sb.Write(c.Data)
		return
	}
	sb.WriteString(ir.FormatAttrs(n.Attrs()))
	for _, g := range n.Subgraphs() {
		sb.WriteString(g.Hash().String())
	}
}

// applied is a node applied to series.
type applied struct {
	w   *taylor
	n   *ir.Node
	in  []*series
	out []ir.Value // the results at s = 0, once requested
}

func (w *taylor) apply(n *ir.Node, in []*series) *applied { return &applied{w: w, n: n, in: in} }

// isMoving reports whether a differentiable operand depends on s.
func (a *applied) isMoving() bool {
	for i, s := range a.in {
		if !s.isConstant() && derive.Differentiable(a.n.Input(i).DType()) {
			return true
		}
	}
	return false
}

// value returns a result at s = 0.
func (a *applied) value(result int) ir.Value {
	if a.out == nil {
		in := make([]ir.Value, len(a.in))
		for i, s := range a.in {
			in[i] = s.at(0)
		}
		a.out = a.w.b.Copy(a.n, in)
	}
	if result >= len(a.out) { // after an error
		return ir.Value{}
	}
	return a.out[result]
}

// constants returns the results as constants.
func (a *applied) constants() []*series {
	out := make([]*series, a.n.NumResults())
	for i := range out {
		out[i] = a.w.series(0, func(int) ir.Value { return a.value(i) })
	}
	return out
}

// withOrigin calls f; the nodes that it adds get the label and position of the differentiated op.
func (a *applied) withOrigin(f func() ir.Value) ir.Value {
	b := a.w.b
	label, at := b.Origin()
	b.Label(a.n.Label())
	b.At(a.n.Pos())
	v := f()
	b.Label(label)
	b.At(at)
	return v
}
