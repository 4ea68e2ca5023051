package kernel

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// prefixEmitter writes a running combination: one workgroup for each row, each
// thread with a stretch of it. Threads first combine their stretches, then the
// stretches' totals, then run through their stretch once more from there.
type prefixEmitter struct {
	*emitter
	l      *ir.PrefixLowering
	n      *ir.Node
	out    *Tensor
	row    ir.Index
	exists scalar.Expr // false in workgroups beyond the last row
	lane   scalar.Expr
	length int
	lanes  int
	each   int // elements of a stretch
}

func schedulePrefix(e *emitter, g *Group) []Launch {
	n := g.Members[0].Node
	p := &prefixEmitter{emitter: e, n: n, l: n.Def().Lower.(*ir.PrefixLowering), out: g.Members[0].Store[0]}
	axis := p.l.Axis(n)
	p.length = p.out.Dims[axis]
	if p.out.Len() == 0 {
		return nil
	}
	p.lanes = min(e.device.Threads, powerOfTwo(p.length))
	p.each = ceilDiv(p.length, p.lanes)
	e.workgroup = [3]int{p.lanes, 1, 1}
	rows := p.out.Len() / p.length
	group, exists := e.boundedGroup(rows)
	p.exists = exists
	dims := append([]int{}, p.out.Dims...)
	dims[axis] = 1
	p.row = e.unflatten(group, dims)
	p.lane = LocalID(0, p.lanes)
	return []Launch{e.finish(g.Name(), p.body())}
}

// at is the position of element i of the row, counted in running order.
func (p *prefixEmitter) at(i scalar.Expr) ir.Index {
	at := append(ir.Index{}, p.row...)
	if p.l.Reverse(p.n) {
		i = scalar.Sub(integer(p.length-1), i)
	}
	at[p.l.Axis(p.n)] = p.Simplify(i)
	return at
}

func (p *prefixEmitter) element(i scalar.Expr) scalar.Expr {
	return scalar.Convert(p.reader().element(p.n.Input(0), p.at(i)), p.l.Init(p.n).Type)
}

// stretch runs statements for each element of the thread's stretch.
func (p *prefixEmitter) stretch(body func(i scalar.Expr) []Stmt) []Stmt {
	name := p.name("i")
	start := scalar.Mul(p.lane, integer(p.each))
	end := scalar.Min(scalar.Add(start, integer(p.each)), integer(p.length))
	i := scalar.NewVar(name, ir.I32, 0, int64(p.length-1))
	return []Stmt{&For{Var: name, Start: start, End: end, Step: integer(1), Body: body(i)}}
}

func (p *prefixEmitter) body() []Stmt {
	init := p.l.Init(p.n)
	d := init.Type
	total := scalar.FreeVar("total", d)
	body := []Stmt{&Var{"total", init}}
	body = append(body, p.stretch(func(i scalar.Expr) []Stmt {
		return []Stmt{&Assign{"total", p.l.Combine(p.n, total, p.element(i))}}
	})...)
	body = append(body, p.combineStretches(d, total)...)
	return append(body, p.stretch(func(i scalar.Expr) []Stmt {
		next := &Assign{"running", p.l.Combine(p.n, scalar.FreeVar("running", d), p.element(i))}
		result := scalar.Convert(scalar.FreeVar("running", d), p.out.DType)
		store := guard(p.exists, p.store(p.out, p.at(i), result))
		if p.l.Exclusive(p.n) {
			return append(store, next)
		}
		return append([]Stmt{next}, store...)
	})...)
}

// combineStretches leaves in "running" the combination of all stretches before
// the thread's own: a scan over workgroup memory that doubles its reach.
func (p *prefixEmitter) combineStretches(d ir.DType, total scalar.Expr) []Stmt {
	slot := p.shared("totals", d, 1, p.lanes)
	own := scalar.LoadAt(slot, d, p.lane)
	body := []Stmt{&Store{slot, p.lane, total}, &Barrier{}}
	for reach := 1; reach < p.lanes; reach *= 2 {
		name := p.name("sum")
		before := scalar.LoadAt(slot, d, scalar.Max(scalar.Sub(p.lane, integer(reach)), integer(0)))
		sum := scalar.Select(scalar.Ge(p.lane, integer(reach)), p.l.Combine(p.n, before, own), own)
		body = append(body, &Let{name, sum}, &Barrier{}, &Store{slot, p.lane, scalar.FreeVar(name, d)}, &Barrier{})
	}
	before := scalar.LoadAt(slot, d, scalar.Max(scalar.Sub(p.lane, integer(1)), integer(0)))
	return append(body, &Var{"running", scalar.Select(scalar.Gt(p.lane, integer(0)), before, p.l.Init(p.n))})
}
