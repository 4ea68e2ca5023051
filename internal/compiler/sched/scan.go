package sched

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
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
func prefixOf(e *emitter, g *fusion.Group) *prefix {
	m := g.Members[0]
	n := m.Node
	l := n.Def().Lower.(*ir.PrefixLowering)
	dims, _ := n.Types()[0].Shape.Ints()
	axis := l.Axis(n)
	if fusion.Product(dims) == 0 {
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
		rows: fusion.Product(lines), beside: fusion.Product(dims[axis+1:]), length: dims[axis],
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
// combined first, and gone through from what those before them come to. Each workgroup
// gathers that for itself, or where this takes longer than a launch, one goes through
// what the chunks come to. No workgroup waits for another.
func (p *prefix) launches(s Schedule) []Launch {
	of := p.span(s)
	if of.chunks == 1 {
		return []Launch{p.kernel(s, of)}
	}
	of.totals = p.scratch("total", of.chunks, p.rows)
	out := []Launch{p.total(s, of)}
	if !p.gathers(s) {
		of.starts = p.scratch("start", of.chunks, p.rows)
		out = append(out, p.between(of)...)
	}
	return append(out, p.kernel(s, of))
}

// total is the launch that leaves what chunks come to.
func (p *prefix) total(s Schedule, of span) Launch {
	first := *p
	first.name = p.name + "_totals"
	of.first = true
	if s.Family != Lines && p.anyOrder() {
		return first.totalInAnyOrder(s, of)
	}
	return first.kernel(s, of)
}

// between goes through what chunks come to.
func (p *prefix) between(of span) []Launch {
	starts := *p
	starts.name, starts.exclusive, starts.length, starts.beside, starts.tensors = p.name+"_starts", true, of.chunks, p.rows, 2*len(p.accs)
	starts.kept = nil
	starts.element = func(w *writer, row, i scalar.Expr) []scalar.Expr {
		return loadAll(w, of.totals, ir.Index{i, row})
	}
	starts.save = func(w *writer, row, i scalar.Expr, acc []scalar.Expr) { saveAll(w, of.starts, ir.Index{i, row}, acc) }
	return starts.launches(starts.rule())
}

// scratch is memory for sets of running values.
func (p *prefix) scratch(name string, dims ...int) []*fusion.Tensor {
	out := make([]*fusion.Tensor, len(p.accs))
	for i, a := range p.accs {
		out[i] = p.e.p.Scratch(name, a.DType, dims...)
	}
	return out
}

// span is what of each row a kernel goes through.
type span struct {
	chunk, chunks int  // elements of a chunk, and chunks of a row
	first         bool // totals are all that the kernel leaves
	// totals are by chunk and row: what it comes to. starts are what the chunks before come
	// to, nil where workgroups gather it.
	totals, starts []*fusion.Tensor
}

// span tells what a schedule cuts rows into: chunks that are whole tiles, or the row.
func (p *prefix) span(s Schedule) span {
	tile := s.Lanes * s.Each
	tiles := ceilDiv(p.length, tile)
	share := ceilDiv(tiles, s.Split)
	if share == tiles {
		return span{chunk: p.length, chunks: 1}
	}
	return span{chunk: share * tile, chunks: ceilDiv(tiles, share)}
}

// gathers reports whether workgroups gather what those before theirs come to.
func (s span) gathers() bool { return s.totals != nil && !s.first && s.starts == nil }

// number is which chunk of a row a workgroup has, by its own number among them. Those that
// were read last are gone through first, since they are in the cache.
func (s span) number(i scalar.Expr) scalar.Expr {
	if s.first || s.totals == nil {
		return i
	}
	return scalar.Sub(loop.Int(s.chunks-1), i)
}

// whole reports whether workgroups have whole tiles of a schedule and nothing else.
func (s span) whole(p *prefix, by Schedule) bool {
	return p.length == s.chunk*s.chunks && s.chunk%(by.Lanes*by.Each) == 0
}

// anyOrder reports whether elements may be combined in any order.
func (p *prefix) anyOrder() bool {
	a, b := make([]scalar.Expr, len(p.accs)), make([]scalar.Expr, len(p.accs))
	for i, acc := range p.accs {
		a[i], b[i] = scalar.FreeVar("a"+strconv.Itoa(i), acc.DType), scalar.FreeVar("b"+strconv.Itoa(i), acc.DType)
	}
	return commutes(p.combine(a, b))
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

func loadAll(w *writer, from []*fusion.Tensor, at ir.Index) []scalar.Expr {
	out := make([]scalar.Expr, len(from))
	for k, t := range from {
		out[k] = w.load(t, at)
	}
	return out
}

func saveAll(w *writer, to []*fusion.Tensor, at ir.Index, values []scalar.Expr) {
	for k, t := range to {
		w.save(t, at, values[k])
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

// inTurn combines sets of running values one after the other.
func (p *prefix) inTurn(w *writer, values []scalar.Expr) []scalar.Expr {
	n := len(p.accs)
	all := values[:n]
	for i := n; i < len(values); i += n {
		all = w.letAll("sum", p.combine(all, values[i:i+n]))
	}
	return all
}
