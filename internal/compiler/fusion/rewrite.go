package fusion

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// selectBranches replaces each cond by both of its branches and a select. It keeps
// the conds whose branches run alone: those that compute at least threshold elements
// (see [Options.Branch]) and those that contain a while loop. Values are pure, so
// computing the other branch costs only time.
func selectBranches(g *ir.Graph, threshold int) (*ir.Graph, error) {
	if !slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return n.Op() == ops.OpCond && !keepsBranch(n, threshold) }) {
		return g, nil
	}
	return ir.Build(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		brancher{b: b, threshold: threshold}.copyNodes(g, m)
		b.CopyOutputs(g, m)
	})
}

// brancher copies graphs without their conds. Where taken is valid, it is a boolean
// that reports whether the copied nodes are on the branch taken; index checks apply
// only then. An invalid taken means always.
type brancher struct {
	b         *ir.Builder
	taken     ir.Value
	threshold int
}

// keepsBranch reports whether a cond stays, so that only one branch runs.
func keepsBranch(n *ir.Node, threshold int) bool {
	return slices.ContainsFunc(n.Subgraphs(), containsWhile) || threshold > 0 && work(n, n.Subgraphs()...) >= threshold
}

func containsWhile(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return n.Op() == ops.OpWhile || slices.ContainsFunc(n.Subgraphs(), containsWhile)
	})
}

// work estimates how many elements the subgraphs of owner compute: result elements,
// and for reductions and contractions the points they iterate over.
func work(owner *ir.Node, graphs ...*ir.Graph) int {
	total := 0
	for _, g := range graphs {
		for _, n := range g.Nodes() {
			if isLeaf(n) {
				continue
			}
			elements := elementsOf(n.Types())
			switch n.Def().Lower.(type) {
			case *ir.ReduceLowering:
				elements = max(elements, elementsOf(n.InTypes()))
			case *ir.ContractLowering:
				dims, _ := n.Types()[0].Shape.Ints()
				elements = bounded(slices.Concat(dims, ContractionOf(n, scalar.NewSimplifier()).K)...)
			case *ir.ControlLowering:
				elements = work(n, n.Subgraphs()...)
			}
			total = bounded(total) + bounded(elements)
		}
	}
	if a, ok := owner.Attrs().(*ops.ScanAttrs); ok {
		count, _ := a.Length.Const()
		total = bounded(total, count)
	}
	return bounded(total)
}

// elementsOf returns the number of elements of the largest of types.
func elementsOf(types []ir.Type) int {
	largest := 0
	for _, t := range types {
		dims, _ := t.Shape.Ints()
		largest = max(largest, bounded(dims...))
	}
	return largest
}

// bounded returns the product of factors, capped at half of MaxElements so that
// the sum of two results does not overflow.
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

// splice adds a graph with its ports bound to in, like [ir.Builder.Splice].
func (br brancher) splice(g *ir.Graph, in []ir.Value) []ir.Value {
	m := ir.NewMapping(g)
	m.SetPorts(g, in)
	br.copyNodes(g, m)
	return m.Outputs(g)
}

// copyNodes copies the nodes of a graph whose ports are mapped.
func (br brancher) copyNodes(g *ir.Graph, m *ir.Mapping) {
	for _, n := range g.Nodes() {
		in := m.Inputs(n)
		switch {
		case n.Op() == ir.OpPort:
		case n.Op() == ops.OpCond && keepsBranch(n, br.threshold) && !(br.taken.Valid() && slices.ContainsFunc(n.Subgraphs(), HasChecks)):
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

// both computes both branches of a cond and selects the result.
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
	return brancher{br.b, condition, br.threshold}
}

// scan copies a loop that checks indices, with taken as an additional constant.
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
		for i, v := range (brancher{b, ports[0], br.threshold}).splice(step, ports[1:]) {
			b.Output(step.Outputs()[i].Name, v)
		}
	})
	return br.b.CopyWith(n, &a, []*ir.Graph{body}, in)
}

// HasChecks reports whether a graph or one of its subgraphs checks indices or has a collective: what
// may fail during a run.
func HasChecks(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return n.Op() == ops.OpCheckIndex || ops.IsCollective(n) || slices.ContainsFunc(n.Subgraphs(), HasChecks)
	})
}

// rewrite splits each concatenation with more operands than a kernel can bind besides the result into
// a tree of shorter ones, pulls scales out of sums, and gives cached attention updates of its caches of its own.
func rewrite(g *ir.Graph, o Options) (*ir.Graph, error) {
	long := func(n *ir.Node) bool { return n.Op() == ops.OpConcatenate && len(n.Inputs()) >= o.Tensors }
	pulled := pulledScales(g, o.Policy)
	appended := func(n *ir.Node) bool { return o.Prologues && n.Op() == ops.OpCachedAttention }
	if len(pulled) == 0 && !slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return long(n) || appended(n) }) {
		return g, nil
	}
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		w := scaleWriter{b: b, m: m}
		for _, n := range g.Nodes() {
			in := m.Inputs(n)
			if n.Op() == ir.OpPort {
				continue
			}
			if s := sumScale(n); pulled[s] > 0 {
				m.Set(n.Result(0), w.product(n, s))
				continue
			}
			if appended(n) {
				for i, v := range n.Inputs() {
					if x := v.Node(); isSingleUpdate(x) {
						in[i] = b.Copy(x, m.Inputs(x))[0]
					}
				}
			}
			if long(n) {
				in = joined(b, n.Attrs().(*ops.AxisAttrs).Axis, in, o.Tensors-1)
			}
			m.SetAll(n, b.Copy(n, in))
		}
		b.CopyOutputs(g, m)
	})
}

// joined concatenates values in rounds until at most limit are left, all of about
// the same length.
func joined(b *ir.Builder, axis int, in []ir.Value, limit int) []ir.Value {
	for len(in) > limit {
		var out []ir.Value
		for part := range slices.Chunk(in, limit) {
			out = append(out, ops.Concatenate(b, axis, part...))
		}
		in = out
	}
	return in
}
