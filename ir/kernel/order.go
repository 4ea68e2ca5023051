package kernel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// order turns the groups into items: producers first, checks before anything
// persistent is written, and otherwise as the graph has them.
func (p *Program) order() error {
	p.checksFirst()
	var order []*Group
	done := map[*Group]bool{}
	var visit func(g *Group)
	visit = func(g *Group) {
		if done[g] {
			return
		}
		done[g] = true
		for _, q := range p.before(g) {
			visit(q)
		}
		order = append(order, g)
	}
	for _, g := range p.groups {
		visit(g)
	}
	for _, g := range order {
		if g.Kind == LoopKind {
			items, err := p.loop(g)
			if err != nil {
				return err
			}
			p.Items = append(p.Items, items...)
			continue
		}
		p.collectReads(g)
		p.Items = append(p.Items, g)
	}
	return nil
}

// checksFirst makes groups that write states wait for those that check indices,
// so that a bad index leaves the states as they were.
func (p *Program) checksFirst() {
	var checking []*Group
	for _, g := range p.groups {
		if p.checks(g) {
			checking = append(checking, g)
		}
	}
	for _, g := range p.groups {
		if !slices.ContainsFunc(g.Writes(), (*Tensor).Persistent) {
			continue
		}
		for _, c := range checking {
			if c != g && !p.reaches(g, c) {
				p.after[g] = append(p.after[g], c)
			}
		}
	}
}

func (p *Program) checks(g *Group) bool {
	for _, part := range g.parts() {
		for _, m := range part.Members {
			if p.spaceOf(m.Node).checks || slices.ContainsFunc(m.Node.Subgraphs(), hasChecks) {
				return true
			}
		}
	}
	return false
}

// Persistent reports whether the tensor keeps its value between runs.
func (t *Tensor) Persistent() bool { return t.Port != nil && t.Port.Kind != ir.InputPort }

// collectReads fills in the tensors a group loads.
func (p *Program) collectReads(g *Group) {
	add := func(t *Tensor) {
		if t != nil && !slices.Contains(g.reads, t) {
			g.reads = append(g.reads, t)
		}
	}
	for _, v := range p.readsOf(g) {
		add(p.tensors[v])
	}
	for _, part := range g.parts() {
		for _, c := range part.Copies {
			add(c.From)
		}
	}
}
