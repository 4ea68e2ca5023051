package passes

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// scanHoistInvariants hoists computations on a scan's constants out of the scan, such as the
// weights of products in half precision, and products of constants. A carry that products read in
// another type becomes one more carry of that type, so that the kernel that computes the carry
// stores both.
func scanHoistInvariants(s site) []ir.Value {
	h := newInvariantHoister(s)
	for _, n := range h.body.Nodes() {
		for _, v := range n.Inputs() {
			if !h.invariant[n.ID()] {
				h.need(v, isContraction(n))
			}
		}
	}
	h.twinCarries()
	if len(h.hoisted)+len(h.twins) == 0 {
		return nil
	}
	return h.rewrite()
}

// invariantHoister hoists invariant computations out of one scan.
type invariantHoister struct {
	site
	a         *ops.ScanAttrs
	body      *ir.Graph
	invariant []bool     // by node of the body: computed from constants alone
	reads     []int      // by node of the body: elements of the constants that an invariant one reads
	hoisted   []ir.Value // values of the body that become constants
	twins     []*ir.Node // conversions of carries that become carries
}

func newInvariantHoister(s site) *invariantHoister {
	a, body := scanOf(s.n)
	h := &invariantHoister{site: s, a: a, body: body, invariant: make([]bool, len(body.Nodes())), reads: make([]int, len(body.Nodes()))}
	for _, p := range body.Ports()[:a.Consts] {
		h.invariant[p.Value.Node().ID()] = true
		h.reads[p.Value.Node().ID()] = elements(p.Value)
	}
	for _, n := range body.Nodes() {
		if n.Op() == ir.OpPort || len(n.Inputs()) == 0 || !isPure(n) {
			continue
		}
		all := !slices.ContainsFunc(n.Inputs(), func(v ir.Value) bool { return !h.invariant[v.Node().ID()] })
		h.invariant[n.ID()] = all
		for _, v := range n.Inputs() {
			h.reads[n.ID()] += h.reads[v.Node().ID()]
		}
	}
	return h
}

// isPure reports whether a node may be computed at another place.
func isPure(n *ir.Node) bool {
	return len(n.Subgraphs()) == 0 && n.Op() != ops.OpRematerialize && n.Op() != ops.OpCheckIndex && isKnownLowering(n)
}

// isKnownLowering reports whether a node is an elementwise op, a map, a reduction or a product.
func isKnownLowering(n *ir.Node) bool {
	switch n.Def().Lower.(type) {
	case *ir.MapLowering, *ir.ReduceLowering, *ir.ContractLowering:
		return true
	}
	return n.Def().Scalar != nil
}

func isContraction(n *ir.Node) bool {
	_, is := n.Def().Lower.(*ir.ContractLowering)
	return is
}

// need hoists a value that a node of every step reads, or the source of a view: a product or a sum,
// or the operand of a product that is computed from the scan's constants.
func (h *invariantHoister) need(v ir.Value, multiplied bool) {
	n := v.Node()
	for h.invariant[n.ID()] && movesElements[n.Op()] {
		v = n.Input(0)
		n = v.Node()
	}
	_, summed := n.Def().Lower.(*ir.ReduceLowering)
	worth := summed || isContraction(n) || multiplied
	if h.invariant[n.ID()] && n.Op() != ir.OpPort && worth && elements(v) <= h.reads[n.ID()] && !slices.Contains(h.hoisted, v) {
		h.hoisted = append(h.hoisted, v)
	}
}

// twinCarries finds conversions of carries to narrower types that products read.
func (h *invariantHoister) twinCarries() {
	carries := h.body.Ports()[h.a.Consts : h.a.Consts+h.a.Carries]
	uses := h.body.Uses()
	for _, p := range carries {
		for _, n := range uses[p.Value.Node().ID()] {
			narrow := n.Op() == ops.OpConvert && n.Types()[0].DType.Size() < p.Value.DType().Size()
			if narrow && slices.ContainsFunc(uses[n.ID()], isContraction) {
				h.twins = append(h.twins, n)
			}
		}
	}
}

// rewrite replaces the scan by one with more constants and carries, and returns its results.
func (h *invariantHoister) rewrite() []ir.Value {
	b, a := h.b, *h.a
	m := ir.NewMapping(h.body)
	for i, p := range h.body.Ports()[:a.Consts] {
		m.Set(p.Value, h.in[i])
	}
	operands := slices.Clone(h.in[:a.Consts])
	for _, v := range h.hoisted {
		operands = append(operands, h.outside(m, v))
	}
	operands = append(operands, h.in[a.Consts:a.Consts+a.Carries]...)
	for _, n := range h.twins {
		operands = append(operands, b.CopyWith(n, n.Attrs(), nil, []ir.Value{h.in[h.portOf(n)]})[0])
	}
	operands = append(operands, h.in[a.Consts+a.Carries:]...)
	a.Consts += len(h.hoisted)
	a.Carries += len(h.twins)
	out := b.AddNode(ops.OpScan, &a, []*ir.Graph{h.step()}, operands...)
	if b.Err() != nil {
		return nil
	}
	return slices.Delete(out, h.a.Carries, a.Carries)
}

// portOf returns the place of the port that a conversion reads.
func (h *invariantHoister) portOf(n *ir.Node) int {
	return slices.IndexFunc(h.body.Ports(), func(p ir.Port) bool { return p.Value == n.Input(0) })
}

// outside adds a value of the body that is computed from constants to the graph of the scan.
func (h *invariantHoister) outside(m *ir.Mapping, v ir.Value) ir.Value {
	if known := m.Get(v); known.Valid() {
		return known
	}
	n := v.Node()
	in := make([]ir.Value, len(n.Inputs()))
	for i, x := range n.Inputs() {
		in[i] = h.outside(m, x)
	}
	m.SetAll(n, h.b.Copy(n, in))
	return m.Get(v)
}

// step returns the body with the hoisted values and the twins of carries as ports. Each port keeps its
// place among those of its kind.
func (h *invariantHoister) step() *ir.Graph {
	return h.b.Subgraph(h.body.Name(), func(b *ir.Builder) {
		m, ports := ir.NewMapping(h.body), h.body.Ports()
		same := func(list []ir.Port) {
			for _, p := range list {
				m.Set(p.Value, b.Port(p.Kind, p.Name, p.Value.Type()))
			}
		}
		fresh := func(v ir.Value, i int) ir.Value {
			return b.Port(ir.InputPort, freeName(h.body, "invariant", len(ports)+i), v.Type())
		}
		given := map[ir.Value]ir.Value{}
		same(ports[:h.a.Consts])
		for i, v := range h.hoisted {
			given[v] = fresh(v, i)
		}
		same(ports[h.a.Consts : h.a.Consts+h.a.Carries])
		for i, n := range h.twins {
			given[n.Result(0)] = fresh(n.Result(0), len(h.hoisted)+i)
		}
		same(ports[h.a.Consts+h.a.Carries:])
		for _, n := range h.body.Nodes() {
			if v, known := given[firstResult(n)]; known {
				m.Set(n.Result(0), v)
			} else if n.Op() != ir.OpPort {
				b.CopyNode(n, m)
			}
		}
		for i, o := range h.body.Outputs() {
			if i == h.a.Carries {
				h.twinOutputs(b, m)
			}
			b.CopyOutput(o, m.Get(o.Value))
		}
		if len(h.body.Outputs()) == h.a.Carries {
			h.twinOutputs(b, m)
		}
	})
}

// freeName returns a name for a port or an output that the body of a loop does not have: an earlier hoisting may have left some
// that are numbered alike.
func freeName(body *ir.Graph, word string, i int) string {
	name := word + strconv.Itoa(i)
	_, isPort := body.Port(name)
	if _, isOutput := body.Output(name); isPort || isOutput {
		return freeName(body, word+"+", i)
	}
	return name
}

// twinOutputs adds the next values of the twins of carries.
func (h *invariantHoister) twinOutputs(b *ir.Builder, m *ir.Mapping) {
	for i, n := range h.twins {
		next := h.body.Outputs()[h.portOf(n)-h.a.Consts].Value
		b.Output(freeName(h.body, "twin", len(h.body.Outputs())+i), b.CopyWith(n, n.Attrs(), nil, []ir.Value{m.Get(next)})[0])
	}
}

// firstResult returns the only result of a node, or the zero value.
func firstResult(n *ir.Node) ir.Value {
	if n.NumResults() != 1 {
		return ir.Value{}
	}
	return n.Result(0)
}
