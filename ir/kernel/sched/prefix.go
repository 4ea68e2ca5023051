package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// prefix is a running combination along the rows of some elements. A row has
// its elements side by side, or as far apart as there are rows beside it.
type prefix struct {
	e                  *emitter // of a kernel like those of the combination
	name               string
	accs               []ir.Accumulator
	combine            func(a, b []scalar.Expr) []scalar.Expr
	exclusive, reverse bool
	// rows counts all rows; beside is how many of them lie side by side, so that
	// the elements of a row are that far apart.
	rows, beside, length int
	tensors              int // that element and save touch
	// element returns what element i of a row brings, kept is what is stored of its result,
	// and save stores it. What goes between kernels has no kept.
	element func(w *writer, row, i scalar.Expr) []scalar.Expr
	kept    func(w *writer, row, i scalar.Expr, acc []scalar.Expr) []kept
	save    func(w *writer, row, i scalar.Expr, acc []scalar.Expr)
}

// prefixOf returns the running combination that a group is, or nil where it has no
// elements.
func prefixOf(e *emitter, g *group.Group) *prefix {
	m := g.Members[0]
	n := m.Node
	l := n.Def().Lower.(*ir.PrefixLowering)
	dims, _ := n.Types()[0].Shape.Ints()
	axis := l.Axis(n)
	if group.Product(dims) == 0 {
		return nil
	}
	lines := append([]int{}, dims...)
	lines[axis] = 1
	place := func(w *writer, row, i scalar.Expr) ir.Index {
		at := w.unflatten(row, lines)
		if l.Reverse(n) {
			i = scalar.Sub(loop.Int(dims[axis]-1), i)
		}
		at[axis] = w.Simplify(i)
		return at
	}
	results := func(w *writer, row, i scalar.Expr, acc []scalar.Expr) (stores []kept) {
		if l.Finish != nil {
			acc = l.Finish(n, acc)
		}
		at := place(w, row, i)
		for k, t := range m.Store {
			if t != nil {
				stores = append(stores, kept{t, at, acc[k]})
			}
		}
		return stores
	}
	return &prefix{
		e: e, name: g.Name(), accs: l.Accumulators(n), exclusive: l.Exclusive(n), reverse: l.Reverse(n),
		rows: group.Product(lines), beside: group.Product(dims[axis+1:]), length: dims[axis],
		tensors: len(g.Reads()) + len(g.Writes()),
		combine: func(a, b []scalar.Expr) []scalar.Expr { return l.Combine(n, a, b) },
		element: func(w *writer, row, i scalar.Expr) []scalar.Expr {
			return l.Element(n, place(w, row, i), w.reader().Operand(n))
		},
		kept: results,
		save: func(w *writer, row, i scalar.Expr, acc []scalar.Expr) { w.add(w.storeAll(results(w, row, i, acc))...) },
	}
}

// launches cuts rows over workgroups where a schedule says so: then chunks of rows are
// combined first, what they come to is gone through, and the chunks are gone through
// from there. No workgroup waits for another.
func (p *prefix) launches(s Schedule) []Launch {
	chunk, chunks := p.chunks(s)
	if chunks == 1 {
		return []Launch{p.kernel(s, span{chunk: p.length, chunks: 1})}
	}
	totals, starts := make([]*group.Tensor, len(p.accs)), make([]*group.Tensor, len(p.accs))
	for i, a := range p.accs {
		totals[i] = p.e.p.Scratch("total", a.DType, chunks, p.rows)
		starts[i] = p.e.p.Scratch("start", a.DType, chunks, p.rows)
	}
	between := *p
	between.name, between.exclusive, between.length, between.beside, between.tensors = p.name+"_starts", true, chunks, p.rows, 2*len(p.accs)
	between.kept = nil
	between.element = func(w *writer, row, i scalar.Expr) []scalar.Expr { return loadAll(w, totals, i, row) }
	between.save = func(w *writer, row, i scalar.Expr, acc []scalar.Expr) { saveAll(w, starts, i, row, acc) }
	first := *p
	first.name = p.name + "_totals"
	out := append([]Launch{first.kernel(s, span{chunk: chunk, chunks: chunks, total: totals})}, between.launches(between.rule())...)
	return append(out, p.kernel(s, span{chunk: chunk, chunks: chunks, start: starts}))
}

// span is what of each row a kernel goes through: chunks, from their starts or, where
// there is none, from nothing; total, where there is one, is all that is kept of each.
type span struct {
	chunk, chunks int
	start, total  []*group.Tensor
}

// number is the chunk that a workgroup has, by its own number among them. Chunks that
// were read last are gone through first, since they are in the cache.
func (s span) number(i scalar.Expr) scalar.Expr {
	if s.start == nil {
		return i
	}
	return scalar.Sub(loop.Int(s.chunks-1), i)
}

// chunks returns how long the chunks are that a schedule cuts rows into, whole tiles,
// and how many.
func (p *prefix) chunks(s Schedule) (chunk, chunks int) {
	tile := s.Lanes * s.Each
	chunk = ceilDiv(ceilDiv(p.length, tile), s.Split) * tile
	return chunk, ceilDiv(p.length, chunk)
}

func (p *prefix) kernel(s Schedule, of span) Launch {
	switch s.Family {
	case Lines:
		return p.lines(s, of)
	case Strips:
		return p.strips(s, of)
	}
	return p.tiles(s, of)
}

func loadAll(w *writer, from []*group.Tensor, i, row scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(from))
	for k, t := range from {
		out[k] = w.load(t, ir.Index{i, row})
	}
	return out
}

func saveAll(w *writer, to []*group.Tensor, i, row scalar.Expr, values []scalar.Expr) {
	for k, t := range to {
		w.save(t, ir.Index{i, row}, values[k])
	}
}

// init returns what the running values begin as.
func (p *prefix) init() []scalar.Expr {
	out := make([]scalar.Expr, len(p.accs))
	for i, a := range p.accs {
		out[i] = a.Init
	}
	return out
}

// letAll names values.
func (w *writer) letAll(prefix string, values []scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(values))
	for i, x := range values {
		out[i] = w.let(prefix, x)
	}
	return out
}

// vars declares variables, setAll changes them all at once.
func (w *writer) vars(prefix string, init []scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(init))
	for i, x := range init {
		out[i] = w.variable(prefix, x)
	}
	return out
}

func (w *writer) setAll(vars, values []scalar.Expr) {
	values = append([]scalar.Expr{}, values...)
	w.add(w.nameAll(values)...)
	for i, v := range vars {
		w.set(v, values[i])
	}
}
