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
	p         *group.Program
	caps      loop.Caps
	name      string
	accs      []ir.Accumulator
	combine   func(a, b []scalar.Expr) []scalar.Expr
	exclusive bool
	// rows counts all rows; beside is how many of them lie side by side, so that
	// the elements of a row are that far apart.
	rows, beside, length int
	tensors              int // that element and save touch
	// element returns what element i of a row brings, save stores its result.
	element func(w *writer, row, i scalar.Expr) []scalar.Expr
	save    func(w *writer, row, i scalar.Expr, acc []scalar.Expr)
}

// manyBeside is from how many rows side by side on a thread has a row by itself:
// neighbouring threads then read whole sectors of memory.
const manyBeside = 8

func schedulePrefix(e *emitter, g *group.Group) []Launch {
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
	p := &prefix{
		p: e.p, caps: e.caps, name: g.Name(), accs: l.Accumulators(n), exclusive: l.Exclusive(n),
		rows: group.Product(lines), beside: group.Product(dims[axis+1:]), length: dims[axis],
		tensors: len(g.Reads()) + len(g.Writes()),
		combine: func(a, b []scalar.Expr) []scalar.Expr { return l.Combine(n, a, b) },
		element: func(w *writer, row, i scalar.Expr) []scalar.Expr {
			return l.Element(n, place(w, row, i), w.reader().Operand(n))
		},
		save: func(w *writer, row, i scalar.Expr, acc []scalar.Expr) {
			if l.Finish != nil {
				acc = l.Finish(n, acc)
			}
			at, values := place(w, row, i), append([]scalar.Expr{}, acc...)
			w.add(w.nameAll(values)...)
			for k, t := range m.Store {
				if t != nil {
					w.save(t, at, values[k])
				}
			}
		},
	}
	return p.launches()
}

// launches cuts rows where whole ones would not fill a device: then chunks of
// rows are combined first, what they come to is gone through, and the chunks are
// gone through from there. No workgroup waits for another.
func (p *prefix) launches() []Launch {
	alone := p.beside >= manyBeside
	chunk, chunks := p.chunks(alone)
	if p.tensors+len(p.accs) > p.caps.Tensors() {
		chunk, chunks = p.length, 1 // no room for what goes from chunk to chunk
	}
	whole := func(q *prefix, chunk, chunks int, start, total []*group.Tensor) Launch {
		if alone {
			return q.threads(chunk, chunks, start, total)
		}
		return q.tiles(chunk, chunks, start, total)
	}
	if chunks == 1 {
		return []Launch{whole(p, p.length, 1, nil, nil)}
	}
	totals, starts := make([]*group.Tensor, len(p.accs)), make([]*group.Tensor, len(p.accs))
	for i, a := range p.accs {
		totals[i] = p.p.Scratch("total", a.DType, chunks, p.rows)
		starts[i] = p.p.Scratch("start", a.DType, chunks, p.rows)
	}
	between := *p
	between.name, between.exclusive, between.length, between.tensors = p.name+"_starts", true, chunks, 2*len(p.accs)
	between.element = func(w *writer, row, i scalar.Expr) []scalar.Expr { return loadAll(w, totals, i, row) }
	between.save = func(w *writer, row, i scalar.Expr, acc []scalar.Expr) { saveAll(w, starts, i, row, acc) }
	first := *p
	first.name = p.name + "_totals"
	out := append([]Launch{whole(&first, chunk, chunks, nil, totals)}, between.launches()...)
	return append(out, whole(p, chunk, chunks, starts, nil))
}

// What fills a device: threads that have a row each, and workgroups that have
// one together; and how many steps a thread takes at least, to be worth the
// launches of a cut.
const (
	enoughThreads = 1 << 15
	enoughGroups  = 1024
	leastSteps    = 64
)

// chunks returns how rows are cut.
func (p *prefix) chunks(alone bool) (chunk, chunks int) {
	if alone {
		chunks = max(1, min(enoughThreads/p.rows, p.length/leastSteps))
		chunk = ceilDiv(p.length, chunks)
		return chunk, ceilDiv(p.length, chunk)
	}
	_, lanes, each := p.shape()
	tiles := ceilDiv(p.length, lanes*each)
	chunks = max(1, min(enoughGroups/p.rows, tiles))
	if tiles < 4 {
		chunks = 1
	}
	chunk = ceilDiv(tiles, chunks) * lanes * each
	return chunk, ceilDiv(p.length, chunk)
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

// threads gives each thread a chunk of a row. start, where there is one, has the
// running values before each chunk; total, where there is one, is all that is
// kept.
func (p *prefix) threads(chunk, chunks int, start, total []*group.Tensor) Launch {
	w := newWriter(p.p, p.caps, min(p.caps.Invocations, mapThreads))
	w.threads(p.rows*chunks, func(flat scalar.Expr) {
		row, number := w.let("row", scalar.Mod(flat, loop.Int(p.rows))), w.let("chunk", scalar.FloorDiv(flat, loop.Int(p.rows)))
		init := p.init()
		if start != nil {
			init = loadAll(w, start, number, row)
		}
		running := w.vars("running", init)
		from := w.let("from", scalar.Mul(number, loop.Int(chunk)))
		to := w.let("to", scalar.Min(scalar.Add(from, loop.Int(chunk)), loop.Int(p.length)))
		w.loop("i", from, to, 1, p.length-1, func(i scalar.Expr) {
			step := func() { w.setAll(running, p.combine(running, p.element(w, row, i))) }
			if total != nil {
				step()
				return
			}
			if !p.exclusive {
				step()
			}
			p.save(w, row, i, running)
			if p.exclusive {
				step()
			}
		})
		if total != nil {
			saveAll(w, total, number, row, running)
		}
	})
	return w.launch(p.name)
}
