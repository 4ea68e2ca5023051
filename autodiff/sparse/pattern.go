package sparse

import (
	"slices"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// Pattern is the set of elements of a matrix that may differ from zero. Rows and columns are
// indices of elements in row-major order.
type Pattern struct {
	Columns int
	// Rows holds the columns of the elements of each row, ascending.
	Rows [][]int32
}

// Len returns the number of elements of the pattern.
func (p *Pattern) Len() int {
	n := 0
	for _, r := range p.Rows {
		n += len(r)
	}
	return n
}

// Transposed returns the pattern of the transposed matrix.
func (p *Pattern) Transposed() *Pattern {
	t := &Pattern{Columns: len(p.Rows), Rows: make([][]int32, p.Columns)}
	for i, r := range p.Rows {
		for _, j := range r {
			t.Rows[j] = append(t.Rows[j], int32(i))
		}
	}
	return t
}

// symmetric returns the union of the pattern and its transpose.
func (p *Pattern) symmetric() *Pattern {
	s, t := &Pattern{Columns: p.Columns, Rows: make([][]int32, len(p.Rows))}, p.Transposed()
	for i := range p.Rows {
		s.Rows[i] = union(p.Rows[i], t.Rows[i])
	}
	return s
}

// PatternOf returns which elements of a plain output of g depend on which elements of a port
// through derivatives: dependencies through comparisons and rounding do not count. The pattern is
// conservative. If an index or a branch depends on data, all possible elements count; in the
// results of loops and scans, all elements count. The error is of kind [ir.ErrShape] for symbolic
// sizes, [ir.ErrName] for an unknown output, [ir.ErrDType] for one without derivatives, or one of the errors of [autodiff.JVP].
func PatternOf(g *ir.Graph, output, port string) (*Pattern, error) {
	j, err := autodiff.JVP(g, port)
	if err != nil {
		return nil, err
	}
	k := differentiableIndex(g, output)
	if k < 0 {
		if o, ok := g.Output(output); ok && !o.State {
			return nil, ir.DTypef("output %q is %s; a derivative needs floats", output, o.Value.Type())
		}
		return nil, g.UnknownOutput(output)
	}
	// Tangents depend on the tangents of the ports through linear ops only.
	tangent, seed := j.Outputs()[len(g.Outputs())+k].Value, j.Ports()[len(g.Ports())].Value
	t := &tracer{values: map[ir.Value]*traced{}, seed: seed}
	if err := t.graph(j, tangent); err != nil {
		return nil, err
	}
	return newPattern(t.values[tangent], tangent, seed)
}

func newPattern(v *traced, rows, columns ir.Value) (*Pattern, error) {
	m, ok := rows.Shape().Size().Const()
	n, also := columns.Shape().Size().Const()
	if !ok || !also {
		return nil, ir.Shapef("%s by %s has symbolic sizes: bind them first", rows.Type(), columns.Type())
	}
	p := &Pattern{Columns: n, Rows: v.sets}
	if p.Rows == nil {
		p.Rows = make([][]int32, m)
	}
	return p, nil
}

// differentiableIndex returns the index of a plain output among those with derivatives, in the
// order in which transforms add tangents and cotangents; or -1.
func differentiableIndex(g *ir.Graph, output string) int {
	k := 0
	for _, o := range g.Outputs() {
		if o.State || !derive.Differentiable(o.Value.DType()) {
			continue
		}
		if o.Name == output {
			return k
		}
		k++
	}
	return -1
}

// union returns the union of two ascending lists. The result may share memory with an operand.
func union(x, y []int32) []int32 {
	switch {
	case len(x) == 0:
		return y
	case len(y) == 0 || len(x) == len(y) && slices.Equal(x, y):
		return x
	}
	out := make([]int32, 0, len(x)+len(y))
	for len(x) > 0 && len(y) > 0 {
		next := min(x[0], y[0])
		out = append(out, next)
		if x[0] == next {
			x = x[1:]
		}
		if y[0] == next {
			y = y[1:]
		}
	}
	return append(append(out, x...), y...)
}

// traced is a value whose elements are known because no port reaches it, or the dependencies of
// each of its elements; nil for none.
type traced struct {
	known *ir.Array
	sets  [][]int32
	whole []int32 // the union of sets, once requested
}

// all returns the dependencies of all elements together.
func (v *traced) all() []int32 {
	if v.whole == nil {
		for _, s := range v.sets {
			v.whole = union(v.whole, s)
		}
	}
	return v.whole
}

// tracer computes element dependencies through a graph.
type tracer struct {
	values map[ir.Value]*traced
	seed   ir.Value // its elements depend on themselves
}

// graph traces the nodes that a value depends on, unless they are already traced.
func (t *tracer) graph(g *ir.Graph, of ir.Value) error {
	live := make([]bool, len(g.Nodes()))
	live[of.Node().ID()] = true
	for i := len(live) - 1; i >= 0; i-- {
		for _, v := range g.Nodes()[i].Inputs() {
			live[v.Node().ID()] = live[v.Node().ID()] || live[i]
		}
	}
	for i, n := range g.Nodes() {
		if !live[i] || t.values[n.Result(0)] != nil {
			continue
		}
		if err := t.node(n); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracer) node(n *ir.Node) error {
	for _, r := range n.Types() {
		if _, ok := r.Shape.Ints(); !ok {
			return n.Fail(ir.Shapef("%s has a symbolic size: bind it first", r))
		}
	}
	in := make([]*traced, len(n.Inputs()))
	known, moving := n.Op() != ir.OpPort, false
	for i, v := range n.Inputs() {
		in[i] = t.values[v]
		known = known && in[i].known != nil
		moving = moving || in[i].sets != nil
	}
	switch {
	case n.Result(0) == t.seed:
		n, _ := t.seed.Shape().Size().Const()
		t.values[t.seed] = identity(n)
		return nil
	case known && n.Def().Subgraphs == 0:
		return t.evaluate(n, in)
	case !moving:
		for _, v := range n.Results() {
			t.values[v] = &traced{}
		}
		return nil
	}
	return t.traceNode(n, in)
}

func identity(n int) *traced {
	v := &traced{sets: make([][]int32, n)}
	for i := range v.sets {
		v.sets[i] = []int32{int32(i)}
	}
	return v
}

// evaluate computes a node that no port reaches.
func (t *tracer) evaluate(n *ir.Node, in []*traced) error {
	inputs := map[string]*ir.Array{}
	g, err := ir.Transform(string(n.Op()), func(b *ir.Builder) {
		operands := make([]ir.Value, len(in))
		for i, v := range n.Inputs() {
			name := string(rune('a' + i))
			inputs[name] = in[i].known
			operands[i] = b.Port(ir.InputPort, name, v.Type())
		}
		for i, v := range b.Copy(n, operands) {
			b.Output(string(rune('a'+i)), v)
		}
	})
	if err != nil {
		return err
	}
	out, err := ir.Eval(g, inputs, ir.EvalOptions{})
	if err != nil {
		return err
	}
	for i, a := range out {
		t.values[n.Result(i)] = &traced{known: a}
	}
	return nil
}

// traceNode traces a node that depends on the seed.
func (t *tracer) traceNode(n *ir.Node, in []*traced) error {
	d := n.Def()
	if d.Body != nil {
		body, err := ir.Inline(n)
		if err != nil {
			return err
		}
		inner := &tracer{values: map[ir.Value]*traced{}}
		for i, p := range body.Ports() {
			inner.values[p.Value] = in[i]
		}
		for i, o := range body.Outputs() {
			if err := inner.graph(body, o.Value); err != nil {
				return err
			}
			t.values[n.Result(i)] = inner.values[o.Value]
		}
		return nil
	}
	m := &machine{n: n, in: in}
	for i, r := range n.Types() {
		dims, _ := r.Shape.Ints()
		m.out = append(m.out, make([][]int32, product(dims)))
		if !derive.Differentiable(r.DType) {
			m.out[i] = nil
		}
	}
	m.run()
	for i, sets := range m.out {
		t.values[n.Result(i)] = &traced{sets: sets}
	}
	return nil
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}
