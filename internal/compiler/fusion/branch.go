package fusion

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// selectBranches returns the graph with both branches of each cond computed and
// the result selected, unless a partition is to run the one that is taken: where
// they hold at least least elements to compute, see [Options], and where one holds
// a loop of unknown length. Values are pure, so the other branch costs time and
// nothing else.
func selectBranches(g *ir.Graph, least int) (*ir.Graph, error) {
	if !slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return n.Op() == ops.OpCond && !worthBranch(n, least) }) {
		return g, nil
	}
	return ir.Build(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		brancher{b: b, least: least}.copyNodes(g, m)
		for _, o := range g.Outputs() {
			b.CopyOutput(o, m.Get(o.Value))
		}
	})
}

// brancher copies graphs without their conds. What it copies counts only where
// taken, a boolean, is true; that is always where it is no valid value. Indices
// are checked only where they count.
type brancher struct {
	b     *ir.Builder
	taken ir.Value
	least int
}

// worthBranch reports whether a partition is to run only one branch of a cond.
func worthBranch(n *ir.Node, least int) bool {
	return slices.ContainsFunc(n.Subgraphs(), holdsWhile) || least > 0 && work(n, n.Subgraphs()...) >= least
}

func holdsWhile(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return n.Op() == ops.OpWhile || slices.ContainsFunc(n.Subgraphs(), holdsWhile)
	})
}

// work returns about how many elements graphs that a node owns compute: those of
// results, for reductions and products those that they go through.
func work(owner *ir.Node, graphs ...*ir.Graph) int {
	total := 0
	for _, g := range graphs {
		for _, n := range g.Nodes() {
			if isLeaf(n) {
				continue
			}
			most := elementsOf(n.Types())
			switch n.Def().Lower.(type) {
			case *ir.ReduceLowering:
				most = max(most, elementsOf(n.InTypes()))
			case *ir.ContractLowering:
				dims, _ := n.Types()[0].Shape.Ints()
				most = bounded(slices.Concat(dims, ContractionOf(n, scalar.NewSimplifier()).K)...)
			case *ir.ControlLowering:
				most = work(n, n.Subgraphs()...)
			}
			total = bounded(total) + bounded(most)
		}
	}
	if a, ok := owner.Attrs().(*ops.ScanAttrs); ok {
		count, _ := a.Length.Const()
		total = bounded(total, count)
	}
	return bounded(total)
}

func elementsOf(types []ir.Type) int {
	most := 0
	for _, t := range types {
		dims, _ := t.Shape.Ints()
		most = max(most, bounded(dims...))
	}
	return most
}

// bounded returns a product, half of MaxElements where it is more: two of these
// can be added.
func bounded(factors ...int) int {
	n := 1
	for _, f := range factors {
		if f > 0 && n > loop.MaxElements/2/f {
			n = loop.MaxElements / 2 / f
		}
		n *= f
	}
	return n
}

// splice adds a graph for the values in of its ports, as [ir.Builder.Splice]
// does.
func (br brancher) splice(g *ir.Graph, in []ir.Value) []ir.Value {
	m := ir.NewMapping(g)
	for i, p := range g.Ports() {
		m.Set(p.Value, in[i])
	}
	br.copyNodes(g, m)
	out := make([]ir.Value, len(g.Outputs()))
	for i, o := range g.Outputs() {
		out[i] = m.Get(o.Value)
	}
	return out
}

// copyNodes copies the nodes of a graph whose ports are mapped.
func (br brancher) copyNodes(g *ir.Graph, m *ir.Mapping) {
	for _, n := range g.Nodes() {
		in := m.Inputs(n)
		switch {
		case n.Op() == ir.OpPort:
		case n.Op() == ops.OpCond && worthBranch(n, br.least) && !(br.taken.Valid() && slices.ContainsFunc(n.Subgraphs(), HasChecks)):
			m.SetAll(n, br.b.Copy(n, in))
		case n.Op() == ops.OpCond:
			m.SetAll(n, br.both(n, in))
		case br.taken.Valid() && n.Op() == ops.OpCheckIndex:
			in[0] = ops.Select(br.b, br.taken, in[0], ops.ZerosLike(br.b, in[0]))
			m.SetAll(n, br.b.Copy(n, in))
		case br.taken.Valid() && n.Op() == ops.OpScan && HasChecks(n.Subgraphs()[0]):
			m.SetAll(n, br.scan(n, in))
		default:
			m.SetAll(n, br.b.Copy(n, in))
		}
	}
}

// both computes both branches of a cond and selects.
func (br brancher) both(n *ir.Node, in []ir.Value) []ir.Value {
	yes, no := br.when(in[0]), br.when(ops.Not(br.b, in[0]))
	a, b := yes.splice(n.Subgraphs()[0], in[1:]), no.splice(n.Subgraphs()[1], in[1:])
	out := make([]ir.Value, len(a))
	for i := range a {
		out[i] = ops.Select(br.b, in[0], a[i], b[i])
	}
	return out
}

func (br brancher) when(condition ir.Value) brancher {
	if br.taken.Valid() {
		condition = ops.And(br.b, br.taken, condition)
	}
	return brancher{br.b, condition, br.least}
}

// scan copies a loop that checks indices, with taken as one more constant.
func (br brancher) scan(n *ir.Node, in []ir.Value) []ir.Value {
	a, step := *n.Attrs().(*ops.ScanAttrs), n.Subgraphs()[0]
	a.Consts++
	in = append([]ir.Value{br.taken}, in...)
	body := br.b.Subgraph(step.Name(), func(b *ir.Builder) {
		ports := make([]ir.Value, len(in))
		for i, v := range in {
			t := v.Type()
			if i > 0 {
				t = step.Ports()[i-1].Value.Type()
			}
			ports[i] = b.Port(ir.InputPort, "in"+strconv.Itoa(i), t)
		}
		for i, v := range (brancher{b, ports[0], br.least}).splice(step, ports[1:]) {
			b.Output(step.Outputs()[i].Name, v)
		}
	})
	return br.b.CopyWith(n, &a, []*ir.Graph{body}, in)
}

// HasChecks reports whether a graph, or one that a node of it owns, checks
// indices.
func HasChecks(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return n.Op() == ops.OpCheckIndex || slices.ContainsFunc(n.Subgraphs(), HasChecks)
	})
}
