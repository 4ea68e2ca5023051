package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/ir/scalar"
)

// take leaves to the library what follows a product, where that is all that the group
// keeps, and is a bias and a matrix of the result's layout that are added, each or not. In
// f32 alone: in 16 bits the library rounds once where the graph rounds the product too. A
// maximum with 0 is not left to it, for it keeps what is no number.
func (p *productPlan) take(e *emitter, g *fusion.Group, c *fusion.Contraction) {
	if p.out != nil || p.Batch != 1 || p.Result != ir.F32 || len(g.Copies) > 0 {
		return
	}
	f := &follower{e: e, c: c, p: p, product: scalar.FreeVar("product", ir.F32)}
	k, ok := f.only(g)
	if !ok || k.t.Outer != nil || e.p.Guards(k.t) || k.t.DType != p.Result {
		return
	}
	_, at := e.p.Place(k.t, k.at)
	if lies, ok := f.layout(e.Simplify(at)); !ok || lies != p.Out {
		return
	}
	if !f.sum(k.value) || f.met != 1 || k.t.Root() == p.left.Root() || k.t.Root() == p.right.Root() || f.reads(k.t) {
		return
	}
	p.Bias, p.Adds, p.Added = f.bias != nil, f.adds != nil, f.added
	p.out, p.alone = k.t, true
	for _, t := range []*fusion.Tensor{f.bias, f.adds} {
		if t != nil {
			p.rest = append(p.rest, t)
		}
	}
}

// follower finds out what follows a product.
type follower struct {
	e       *emitter
	c       *fusion.Contraction
	p       *productPlan
	product scalar.Expr
	// met counts how often the product was met.
	met        int
	bias, adds *fusion.Tensor
	added      routine.Layout
}

// only returns what a group keeps, for the product at coordinates of the contraction,
// if it is one value.
func (f *follower) only(g *fusion.Group) (k kept, ok bool) {
	m := g.Members[0]
	b := fusion.Coords("b", f.c.Batch)
	rows, columns := f.p.spaces(f.c)
	product := f.c.Out(b, rows.at, columns.at)
	at := make(ir.Index, len(g.Outer))
	for axis, coordinate := range m.Coord {
		if coordinate >= 0 {
			at[coordinate] = product[axis]
		}
	}
	for _, x := range at {
		if x == nil {
			return k, false
		}
	}
	rd := f.e.reader()
	rd.Given = map[ir.Value]scalar.Expr{m.Node.Result(0): f.product}
	all := f.e.values(g, rd, at)
	if len(all) != 1 {
		return k, false
	}
	return all[0], true
}

// layout returns how a matrix of M×N lies with its element at a position.
func (f *follower) layout(at scalar.Expr) (routine.Layout, bool) {
	down, across := f.sides()
	return layoutAt(at, space{}, down, across)
}

// sides are the spaces of the rows and columns of the result, as the library has it.
func (f *follower) sides() (down, across space) {
	down, across = f.p.spaces(f.c)
	if f.p.swapped {
		return across, down
	}
	return down, across
}

// sum takes a sum apart.
func (f *follower) sum(x scalar.Expr) bool {
	switch {
	case scalar.Equal(x, f.product):
		f.met++
		return true
	case x.Op == scalar.OpAdd:
		return f.sum(x.Args[0]) && f.sum(x.Args[1])
	case x.Op != scalar.OpLoad || x.Type != ir.F32 || x.Ref < 0:
		return false
	}
	t := f.e.p.Tensor(x.Ref)
	at := f.e.Simplify(x.Args[0])
	if f.bias == nil && f.perColumn(at) {
		f.bias = t
		return true
	}
	if l, ok := f.layout(at); ok && f.adds == nil && !l.Turned {
		f.adds, f.added = t, l
		return true
	}
	return false
}

// perColumn reports whether a position is the number of the column.
func (f *follower) perColumn(at scalar.Expr) bool {
	factors := map[string]int{}
	if !linearFactors(at, 1, factors) {
		return false
	}
	down, across := f.sides()
	step, ok := across.step(factors)
	if !ok || step != 1 {
		return false
	}
	step, ok = down.step(factors)
	return ok && step == 0 && len(factors) == 0
}

// reads reports whether what is added lies where a tensor does.
func (f *follower) reads(t *fusion.Tensor) bool {
	return f.bias != nil && f.bias.Root() == t.Root() || f.adds != nil && f.adds.Root() == t.Root()
}

// libraryFinishes estimates the nanoseconds that what follows a product takes the
// library: what it reads besides.
func (p *productPlan) libraryFinishes(caps loop.Caps) float64 {
	if !p.Adds {
		return 0
	}
	return float64(p.Result.Size()) * float64(p.Batch*p.M*p.N) / caps.Profile().Bytes / float64(caps.Profile().Processors)
}
