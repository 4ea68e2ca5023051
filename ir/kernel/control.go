package kernel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// loop turns the group of a scan into items: copies of the first carries to
// where the loop keeps them, and the loop itself. The carries after the last
// step stay where they are, as results of the scan.
func (p *Program) loop(g *Group) ([]Item, error) {
	m := g.Members[0]
	a := m.Node.Attrs().(*ops.ScanAttrs)
	count, _ := a.Length.Const()
	for i, t := range m.Store {
		if t == nil {
			v := m.Node.Result(i)
			m.Store[i] = p.newTensor(resultName(v), v.Type())
		}
	}
	l := &Loop{Node: m.Node, Count: count, writes: slices.Clone(m.Store)}
	var first, last []Copy
	if count > 0 {
		var err error
		if l.Body, err = p.body(m, a); err != nil {
			return nil, err
		}
	}
	for i := range a.Carries {
		begin, end := p.carry(l, i)
		first = append(first, p.copyOf(m.Node.Input(a.Consts+i), begin))
		if end != m.Store[i] {
			last = append(last, Copy{From: end, To: m.Store[i]})
		}
	}
	items := p.copyItems(first)
	if count == 0 {
		return items, nil
	}
	for _, v := range m.Node.Inputs() {
		if t := p.tensors[v]; t != nil && !slices.Contains(l.reads, t) {
			l.reads = append(l.reads, t)
		}
	}
	return append(append(items, l), p.copyItems(last)...), nil
}

// carry tells the body of a loop where carry i is, and returns where it is
// before the first step and after the last one. A carry that is not written in
// place has two places, which change roles with every step.
func (p *Program) carry(l *Loop, i int) (begin, end *Tensor) {
	end = l.writes[i]
	if l.Body == nil {
		return end, end
	}
	pair := l.Body.pairs[i]
	old := l.Body.tensors[pair.old]
	if pair.old == pair.new || l.Body.inPlace[pair.old] {
		old.Outer = end
		return end, end
	}
	if end.sliced() { // the other place is no slice, and one kernel is to write both
		end = p.newTensor(end.Name+"_last", pair.old.Type())
		l.writes = append(l.writes, end)
	}
	places := [2]*Tensor{p.newTensor(end.Name+"_turn", pair.old.Type()), end}
	l.writes = append(l.writes, places[0])
	if l.Count%2 == 0 {
		places[0], places[1] = places[1], places[0]
	}
	old.Outer, pair.next.Outer = places[0], places[1]
	l.Swaps = append(l.Swaps, places)
	return places[0], end
}

// copyItems returns items that make copies.
func (p *Program) copyItems(copies []Copy) []Item {
	var items []Item
	for _, g := range p.copyGroups(copies) {
		p.collectLoads(g)
		items = append(items, g)
	}
	return items
}

// body builds the program of a scan's step, whose ports are tensors of the
// program around it. Where its carries are is told by [Program.carry].
func (p *Program) body(m *Member, a *ops.ScanAttrs) (*Program, error) {
	step, err := prepared(m.Node.Subgraphs()[0], p.options)
	if err != nil {
		return nil, err
	}
	if step, err = ownCarries(step, a.Carries); err != nil {
		return nil, err
	}
	b := &Program{Graph: step, parent: p, options: p.options, byID: p.byID}
	b.tensors, b.given = map[ir.Value]*Tensor{}, map[ir.Value]scalar.Expr{}
	for i, port := range step.Ports() {
		v := m.Node.Input(i)
		carry := i >= a.Consts && i < a.Consts+a.Carries
		switch literal, ok := p.plan.literals[v]; {
		case carry:
			b.tensors[port.Value] = p.alias(port.Name, port.Value.Type(), nil)
		case ok:
			b.given[port.Value] = literal
		default:
			t := p.alias(port.Name, port.Value.Type(), p.tensors[v])
			t.PerStep = i >= a.Consts
			t.Reverse = a.Reverse && t.PerStep
			b.tensors[port.Value] = t
		}
	}
	for i, o := range step.Outputs() {
		if i < a.Carries {
			old := step.Ports()[a.Consts+i].Value
			b.pairs = append(b.pairs, newValue{old, o.Value, o.Name, p.alias(o.Name, o.Value.Type(), nil)})
			continue
		}
		y := p.alias(o.Name, o.Value.Type(), m.Store[i])
		y.PerStep, y.Reverse = true, a.Reverse
		b.stacked = append(b.stacked, stackedOutput{o.Value, y})
	}
	return build(b)
}

// ownCarries returns a step in which no carry after it is an output besides: so
// that what is kept of it is written next to it, and not copied.
func ownCarries(g *ir.Graph, carries int) (*ir.Graph, error) {
	outputs := g.Outputs()
	shared, any := make([]bool, len(outputs)), false
	for i, carry := range outputs[:carries] {
		others := slices.Concat(outputs[:i], outputs[carries:])
		shared[i] = !isLeaf(carry.Value.Node()) && slices.ContainsFunc(others, func(o ir.Output) bool { return o.Value == carry.Value })
		any = any || shared[i]
	}
	if !any {
		return g, nil
	}
	return ir.Build(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		for _, n := range g.Nodes() {
			if n.Op() != ir.OpPort {
				m.SetAll(n, b.Copy(n, m.Inputs(n)))
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

// alias returns a tensor for a value that a loop's body sees of outer, which may
// be told later.
func (p *Program) alias(name string, t ir.Type, outer *Tensor) *Tensor {
	dims, _ := t.Shape.Ints()
	return p.numbered(&Tensor{Name: name, DType: t.DType, Dims: dims, Outer: outer})
}
