package kernel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// loop turns the group of a scan into items: copies of the first carries to
// where the loop keeps them, and the loop itself. The carries after the last
// step stay there, as results of the scan.
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
	l := &Loop{Node: m.Node, Count: count, writes: m.Store}
	var copies []Copy
	for i := range a.Carries {
		copies = append(copies, p.copyOf(m.Node.Input(a.Consts+i), m.Store[i]))
	}
	var items []Item
	for _, first := range p.copyGroups(copies) {
		p.collectLoads(first)
		items = append(items, first)
	}
	if count == 0 {
		return items, nil
	}
	body, err := p.body(m, a)
	l.Body = body
	for _, v := range m.Node.Inputs() {
		if t := p.tensors[v]; t != nil && !slices.Contains(l.reads, t) {
			l.reads = append(l.reads, t)
		}
	}
	return append(items, l), err
}

// body builds the program of a scan's step, whose ports are tensors of the
// program around it.
func (p *Program) body(m *Member, a *ops.ScanAttrs) (*Program, error) {
	step, err := prepared(m.Node.Subgraphs()[0], p.options)
	if err != nil {
		return nil, err
	}
	b := &Program{Graph: step, parent: p, options: p.options, byID: p.byID}
	b.tensors, b.given = map[ir.Value]*Tensor{}, map[ir.Value]scalar.Expr{}
	for i, port := range step.Ports() {
		v := m.Node.Input(i)
		carry := i >= a.Consts && i < a.Consts+a.Carries
		switch literal, ok := p.plan.literals[v]; {
		case carry:
			b.tensors[port.Value] = p.alias(port.Name, port.Value.Type(), m.Store[i-a.Consts])
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
			b.pairs = append(b.pairs, newValue{step.Ports()[a.Consts+i].Value, o.Value, o.Name})
			continue
		}
		y := p.alias(o.Name, o.Value.Type(), m.Store[i])
		y.PerStep, y.Reverse = true, a.Reverse
		b.stacked = append(b.stacked, stackedOutput{o.Value, y})
	}
	return build(b)
}

// alias returns a tensor for a value that a loop's body sees of outer.
func (p *Program) alias(name string, t ir.Type, outer *Tensor) *Tensor {
	dims, _ := t.Shape.Ints()
	return p.numbered(&Tensor{Name: name, DType: t.DType, Dims: dims, Outer: outer})
}
