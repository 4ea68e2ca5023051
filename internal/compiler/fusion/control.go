package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// control lowers the control-flow nodes of a partition to items that run inner partitions.
type control struct{ *Partition }

// items returns the items of the group of a control-flow node.
func (c control) items(g *Group) ([]Item, error) {
	switch g.Members[0].Node.Op() {
	case ops.OpCond:
		return c.branch(g.Members[0])
	case ops.OpWhile:
		return c.while(g.Members[0])
	}
	return c.loop(g)
}

// branch lowers a cond to a choice between two partitions.
func (c control) branch(m *Member) ([]Item, error) {
	c.storeAll(m)
	pred, items := c.flag(m.Node.Input(0))
	out := &Branch{Node: m.Node, Pred: pred, reads: c.operandsOf(m.Node), writes: m.Store}
	if !slices.Contains(out.reads, pred) {
		out.reads = append(out.reads, pred)
	}
	for k, g := range m.Node.Subgraphs() {
		b, err := c.inner(g, 0)
		if err != nil {
			return nil, err
		}
		for i, port := range b.Graph.Ports() {
			b.bindPort(port, m.Node.Input(1+i))
		}
		for i, o := range b.Graph.Outputs() {
			b.stacked = append(b.stacked, stackedOutput{o.Value, m.Store[i]})
		}
		if out.Taken[k], err = build(b); err != nil {
			return nil, err
		}
	}
	return append(items, out), nil
}

// flag returns a root tensor that holds a boolean, and the items that copy it there.
func (c control) flag(v ir.Value) (*Tensor, []Item) {
	if t := c.tensors[v]; t != nil && t.Outer == nil && !t.carried {
		return t, nil
	}
	t := c.newTensor("flag", v.Type())
	return t, copyItems(c.Partition, []Copy{c.copyOf(v, t)})
}

// while lowers a while_loop to copies of the initial carries and the loop. Each
// carry has a single buffer, because the number of steps is unknown.
func (c control) while(m *Member) ([]Item, error) {
	a := m.Node.Attrs().(*ops.WhileAttrs)
	c.storeAll(m)
	var first []Copy
	for i := range m.Store {
		first = append(first, c.copyOf(m.Node.Input(a.Consts+i), m.Store[i]))
	}
	w := &While{Node: m.Node, Max: a.MaxSteps, Pred: c.newTensor("going_on", ir.TypeOf(ir.Bool))}
	w.reads, w.writes = c.operandsOf(m.Node), append(slices.Clone(m.Store), w.Pred)
	var err error
	if w.Cond, err = c.step(m, a.Consts, 0); err != nil {
		return nil, err
	}
	w.Cond.stacked = []stackedOutput{{w.Cond.Graph.Outputs()[0].Value, w.Cond.seen("going_on", w.Pred.Type(), w.Pred)}}
	if w.Cond, err = build(w.Cond); err != nil {
		return nil, err
	}
	if w.Body, err = c.step(m, a.Consts, 1); err != nil {
		return nil, err
	}
	for i, o := range w.Body.Graph.Outputs() {
		w.Body.states.pairs = append(w.Body.states.pairs, newValue{old: w.Body.Graph.Ports()[a.Consts+i].Value, new: o.Value, name: o.Name})
	}
	if w.Body, err = build(w.Body); err != nil {
		return nil, err
	}
	return append(copyItems(c.Partition, first), w), nil
}

// step returns the partition of the condition (0) or the body (1) of a while_loop,
// not yet built.
func (c control) step(m *Member, consts, graph int) (*Partition, error) {
	b, err := c.inner(m.Node.Subgraphs()[graph], graph*len(m.Store))
	if err != nil {
		return nil, err
	}
	b.repeated = true
	for i, port := range b.Graph.Ports() {
		if i < consts {
			b.bindPort(port, m.Node.Input(i))
		} else {
			b.tensors[port.Value] = b.seen(port.Name, port.Value.Type(), m.Store[i-consts])
		}
	}
	return b, nil
}

// loop lowers a scan to copies of the initial carries and the loop. The carries after
// the last step stay where they are, as results of the scan.
func (c control) loop(g *Group) ([]Item, error) {
	m := g.Members[0]
	a := m.Node.Attrs().(*ops.ScanAttrs)
	count, _ := a.Length.Const()
	c.storeAll(m)
	l := &Loop{Node: m.Node, Count: count, writes: slices.Clone(m.Store)}
	var first, last []Copy
	if count > 0 {
		var err error
		if l.Body, err = c.body(m, a); err != nil {
			return nil, err
		}
	}
	for i := range a.Carries {
		begin, end := c.carry(l, i)
		first = append(first, c.copyOf(m.Node.Input(a.Consts+i), begin))
		if end != m.Store[i] {
			last = append(last, Copy{From: end, To: m.Store[i]})
		}
	}
	items := copyItems(c.Partition, first)
	if count == 0 {
		return items, nil
	}
	l.reads = c.operandsOf(m.Node)
	return append(append(items, l), copyItems(c.Partition, last)...), nil
}

// storeAll assigns a tensor to every result of a control-flow node.
func (c control) storeAll(m *Member) {
	for i, t := range m.Store {
		if t == nil {
			v := m.Node.Result(i)
			m.Store[i] = c.newTensor(resultName(v), v.Type())
		}
	}
}

// operandsOf returns the tensors of a node's operands, each once.
func (c control) operandsOf(n *ir.Node) []*Tensor {
	var out []*Tensor
	for _, v := range n.Inputs() {
		if t := c.whole(v).viewed(); t != nil && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// carry connects carry i of a loop body to its buffers, and returns the tensors that
// hold it before the first and after the last step. A carry that is not updated in
// place is double-buffered: its two buffers swap roles with every step.
func (c control) carry(l *Loop, i int) (begin, end *Tensor) {
	end = l.writes[i]
	if l.Body == nil {
		return end, end
	}
	pair := l.Body.states.pairs[i]
	old := l.Body.tensors[pair.old]
	if pair.old == pair.new || l.Body.states.inPlace[pair.old] {
		old.Outer = end
		return end, end
	}
	if end.IsSlice() { // the other buffer is no slice, and one kernel writes both
		end = c.newTensor(end.Name+"_last", pair.old.Type())
		l.writes = append(l.writes, end)
	}
	places := [2]*Tensor{c.newTensor(end.Name+"_turn", pair.old.Type()), end}
	l.writes = append(l.writes, places[0])
	if l.Count%2 == 0 {
		places[0], places[1] = places[1], places[0]
	}
	old.Outer, pair.next.Outer = places[0], places[1]
	l.Swaps = append(l.Swaps, places)
	return places[0], end
}

// body builds the partition of a scan's step, whose ports are tensors of the
// surrounding partition. carry connects its carries later.
func (c control) body(m *Member, a *ops.ScanAttrs) (*Partition, error) {
	b, err := c.inner(m.Node.Subgraphs()[0], a.Carries)
	if err != nil {
		return nil, err
	}
	b.repeated, b.doubleBuffered = true, true
	for i, port := range b.Graph.Ports() {
		if i >= a.Consts && i < a.Consts+a.Carries {
			b.tensors[port.Value] = c.alias(port.Name, port.Value.Type(), nil)
		} else if t := b.bindPort(port, m.Node.Input(i)); t != nil {
			t.PerStep = i >= a.Consts
			t.Reverse = a.Reverse && t.PerStep
		}
	}
	for i, o := range b.Graph.Outputs() {
		if i < a.Carries {
			old := b.Graph.Ports()[a.Consts+i].Value
			b.states.pairs = append(b.states.pairs, newValue{old, o.Value, o.Name, c.alias(o.Name, o.Value.Type(), nil)})
			continue
		}
		y := c.alias(o.Name, o.Value.Type(), m.Store[i])
		y.PerStep, y.Reverse = true, a.Reverse
		b.stacked = append(b.stacked, stackedOutput{o.Value, y})
	}
	return build(b)
}

// inner returns the partition of a subgraph, not yet built. The first outputs are
// the next values of carries.
func (c control) inner(g *ir.Graph, carries int) (*Partition, error) {
	g, err := prepared(g, c.options)
	if err != nil {
		return nil, err
	}
	if g, err = distinctCarries(g, carries); err != nil {
		return nil, err
	}
	return &Partition{
		Graph: g, parent: c.Partition, options: c.options, byID: c.byID,
		tensors: map[ir.Value]*Tensor{}, given: map[ir.Value]scalar.Expr{},
	}, nil
}

// bindPort binds a port to the value v of the surrounding partition. It returns the
// port's tensor, or nil where v is a literal.
func (p *Partition) bindPort(port ir.Port, v ir.Value) *Tensor {
	if literal, ok := p.parent.decided.literals[v]; ok {
		p.given[port.Value] = literal
		return nil
	}
	p.tensors[port.Value] = p.seen(port.Name, port.Value.Type(), p.parent.whole(v))
	return p.tensors[port.Value]
}

// seen returns a tensor of the surrounding partition as p sees it.
func (p *Partition) seen(name string, t ir.Type, outer *Tensor) *Tensor {
	if !p.repeated {
		return outer
	}
	return p.parent.alias(name, t, outer)
}

// distinctCarries returns a step in which no next carry is also another output, so that both are written
// by one kernel instead of a copy.
func distinctCarries(g *ir.Graph, carries int) (*ir.Graph, error) {
	outputs := g.Outputs()
	shared, found := make([]bool, len(outputs)), false
	for i, carry := range outputs[:carries] {
		others := slices.Concat(outputs[:i], outputs[carries:])
		shared[i] = !isLeaf(carry.Value.Node()) && slices.ContainsFunc(others, func(o ir.Output) bool { return o.Value == carry.Value })
		found = found || shared[i]
	}
	if !found {
		return g, nil
	}
	return ir.Build(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		for _, n := range g.Nodes() {
			if n.Op() != ir.OpPort {
				b.CopyNode(n, m)
			}
		}
		for i, o := range outputs {
			v := m.Get(o.Value)
			if shared[i] {
				v = b.AddNode(ops.OpReshape, &ops.ReshapeAttrs{Shape: v.Shape()}, nil, v)[0]
			}
			b.CopyOutput(o, v)
		}
	})
}
