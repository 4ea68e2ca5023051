package derive

import "github.com/rlx-go/rlx/ir"

// Transpose adds to b the transpose of g, a graph that is linear in the ports
// marked linear. in are the values of the other ports, ct the cotangents of the
// outputs. It returns a cotangent for each linear port; it is invalid for
// every other port and where the cotangent is zero. The error is of kind
// [ir.ErrNoRule] if an op is not linear in an operand that depends on a linear port.
func Transpose(b *ir.Builder, g *ir.Graph, linear []bool, in, ct []ir.Value) []ir.Value {
	return TransposeLazy(b, g, linear, func(port int) ir.Value { return in[port] }, ct)
}

// TransposeLazy is [Transpose] that gets the values of the other ports from a function.
// It calls in once for each port that is used, just before the first use, so that the
// value may be computed there.
func TransposeLazy(b *ir.Builder, g *ir.Graph, linear []bool, in func(port int) ir.Value, ct []ir.Value) []ir.Value {
	defer restoreOrigin(b)()
	t := &transposition{
		b: b, linear: make([]bool, len(g.Nodes())), value: ir.NewMapping(g), port: map[*ir.Node]int{}, in: in,
		cts: make([][][]ir.Value, len(g.Nodes())),
	}
	t.mark(g, linear)
	for i, o := range g.Outputs() {
		if ct[i].Valid() {
			t.add(o.Value, ct[i])
		}
	}
	nodes := g.Nodes()
	for i := len(nodes) - 1; i >= 0 && b.Err() == nil; i-- {
		if n := nodes[i]; n.Op() != ir.OpPort && t.linear[i] && t.cts[i] != nil {
			t.node(n)
		}
	}
	out := make([]ir.Value, len(g.Ports()))
	for i, p := range g.Ports() {
		if linear[i] {
			out[i] = t.total(p.Value.Node())[0]
		}
	}
	return out
}

// transposition is one backward walk.
type transposition struct {
	b      *ir.Builder
	linear []bool // by node: it depends on a linear port
	value  *ir.Mapping
	port   map[*ir.Node]int
	in     func(port int) ir.Value
	cts    [][][]ir.Value // contributions, by node and result
}

// mark marks the nodes that depend on a linear port.
func (t *transposition) mark(g *ir.Graph, linear []bool) {
	for i, p := range g.Ports() {
		t.linear[p.Value.Node().ID()] = linear[i]
		t.port[p.Value.Node()] = i
	}
	for _, n := range g.Nodes() {
		for _, v := range n.Inputs() {
			t.linear[n.ID()] = t.linear[n.ID()] || t.linear[v.Node().ID()]
		}
	}
}

// known returns the operands of a node that do not depend on a linear port,
// computing those that are not in the new graph yet.
func (t *transposition) known(n *ir.Node) []ir.Value {
	for _, v := range n.Inputs() {
		x := v.Node()
		if t.linear[x.ID()] || t.value.Get(v).Valid() {
			continue
		}
		if x.Op() == ir.OpPort {
			t.value.Set(v, t.in(t.port[x]))
		} else {
			t.value.SetAll(x, t.b.Copy(x, t.known(x)))
		}
	}
	return t.value.Inputs(n)
}

func (t *transposition) node(n *ir.Node) {
	setOrigin(t.b, n)
	linear := make([]bool, len(n.Inputs()))
	for i, v := range n.Inputs() {
		linear[i] = t.linear[v.Node().ID()]
	}
	in, ct := t.known(n), t.total(n)
	if t.b.Err() != nil {
		return
	}
	var back []ir.Value
	switch d := n.Def(); {
	case d.Transpose != nil:
		back = d.Transpose(t.b, n, linear, in, ct)
	case d.Body != nil:
		g, err := ir.Inline(n)
		if err != nil {
			t.b.Fail(n.Fail(err))
			return
		}
		back = Transpose(t.b, g, linear, in, ct)
	default:
		t.b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "%s has no transpose: %s", n.Op(), ruleReason(d.NoTranspose))))
		return
	}
	checkRule(t.b, n, "transpose", back, n.Inputs())
	for i, v := range back {
		if v.Valid() && linear[i] {
			t.add(n.Input(i), v)
		}
	}
}

// add adds a contribution to the cotangent of v. It drops contributions to values that do
// not depend on a linear port, which are zeros that a rule made explicit.
func (t *transposition) add(v, ct ir.Value) {
	id := v.Node().ID()
	if !t.linear[id] {
		return
	}
	if t.cts[id] == nil {
		t.cts[id] = make([][]ir.Value, v.Node().NumResults())
	}
	t.cts[id][v.Index()] = append(t.cts[id][v.Index()], ct)
}

// total returns the accumulated cotangents of the results of n.
func (t *transposition) total(n *ir.Node) []ir.Value {
	out := make([]ir.Value, n.NumResults())
	for i, parts := range t.cts[n.ID()] {
		out[i] = Sum(t.b, parts)
	}
	return out
}

// Sum adds values of one type in a balanced tree, so that rounding errors and
// the depth grow with the logarithm of their number. It returns
// the zero Value for no values.
func Sum(b *ir.Builder, parts []ir.Value) ir.Value {
	switch len(parts) {
	case 0:
		return ir.Value{}
	case 1:
		return parts[0]
	}
	half := len(parts) / 2
	left, right := Sum(b, parts[:half]), Sum(b, parts[half:])
	if b.Err() != nil {
		return ir.Value{}
	}
	return b.Add1("add", nil, left, right)
}
