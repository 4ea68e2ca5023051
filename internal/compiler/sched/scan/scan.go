package scan

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scan is a scan along the rows of a tensor. The elements of a row are stride apart; rows that
// start within one stride are adjacent.
type scan struct {
	e                  *emit.Emitter // of another kernel of the same group
	name               string
	accs               []ir.Accumulator
	combine            func(a, b []scalar.Expr) []scalar.Expr
	exclusive, reverse bool
	// rows is the number of rows, stride the distance between the elements of a row, and so the
	// number of adjacent rows.
	rows, stride, length int
	tensors              int // accessed by element and save
	// element returns the terms of element i of a row, kept the stores of its results, and save
	// writes these stores. Scans of the totals between kernels have no kept.
	element func(w *emit.Emitter, row, i scalar.Expr) []scalar.Expr
	kept    func(w *emit.Emitter, row, i scalar.Expr, acc []scalar.Expr) []emit.PendingStore
	save    func(w *emit.Emitter, row, i scalar.Expr, acc []scalar.Expr)
}

// scanOf returns the scan of a group, or nil where it has no elements.
func scanOf(e *emit.Emitter, g *fusion.Group) *scan {
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
	place := func(w *emit.Emitter, row, i scalar.Expr) ir.Index {
		at := w.Unflatten(row, lines)
		if l.Reverse(n) {
			i = scalar.Sub(loop.Int(dims[axis]-1), i)
		}
		at[axis] = w.Simplify(i)
		return at
	}
	results := func(w *emit.Emitter, row, i scalar.Expr, acc []scalar.Expr) (stores []emit.PendingStore) {
		if l.Finish != nil {
			acc = l.Finish(n, acc)
		}
		at := place(w, row, i)
		for k, t := range m.Store {
			if t != nil {
				stores = append(stores, emit.PendingStore{Tensor: t, At: at, Value: acc[k]})
			}
		}
		return stores
	}
	return &scan{
		e: e, name: g.Name(), accs: l.Accumulators(n), exclusive: l.Exclusive(n), reverse: l.Reverse(n),
		rows: fusion.Product(lines), stride: fusion.Product(dims[axis+1:]), length: dims[axis],
		tensors: len(g.Reads()) + len(g.Writes()),
		combine: func(a, b []scalar.Expr) []scalar.Expr { return l.Combine(n, a, b) },
		element: func(w *emit.Emitter, row, i scalar.Expr) []scalar.Expr {
			return l.Element(n, place(w, row, i), w.Reader().Operand(n))
		},
		kept: results,
		save: func(w *emit.Emitter, row, i scalar.Expr, acc []scalar.Expr) {
			w.Add(w.StoreAll(results(w, row, i, acc))...)
		},
	}
}

// launches splits rows into chunks over workgroups where the schedule says so: a
// reduce-then-scan. The first launch reduces each chunk to its total; the last scans each chunk
// from the exclusive prefix of its totals. Each workgroup combines the totals before its chunk
// itself, or, where that takes longer than a launch, a launch between scans them. No workgroup
// waits for another.
func (p *scan) launches(s emit.Schedule) []emit.Launch {
	cut := p.chunking(s)
	if cut.chunks == 1 {
		return []emit.Launch{p.kernel(s, cut)}
	}
	cut.totals = p.scratch("total", cut.chunks, p.rows)
	out := []emit.Launch{p.reduceChunks(s, cut)}
	if !p.gathers(s) {
		cut.starts = p.scratch("start", cut.chunks, p.rows)
		out = append(out, p.scanTotals(cut)...)
	}
	return append(out, p.kernel(s, cut))
}

// reduceChunks is the launch that reduces chunks to their totals.
func (p *scan) reduceChunks(s emit.Schedule, cut chunking) emit.Launch {
	first := *p
	first.name = p.name + "_totals"
	cut.first = true
	if s.Family != emit.SerialScan && p.commutative() {
		return first.totalCommutative(s, cut)
	}
	return first.kernel(s, cut)
}

// scanTotals scans the totals of chunks.
func (p *scan) scanTotals(cut chunking) []emit.Launch {
	starts := *p
	starts.name, starts.exclusive, starts.length, starts.stride, starts.tensors = p.name+"_starts", true, cut.chunks, p.rows, 2*len(p.accs)
	starts.kept = nil
	starts.element = func(w *emit.Emitter, row, i scalar.Expr) []scalar.Expr {
		return emit.LoadAll(w, cut.totals, ir.Index{i, row})
	}
	starts.save = func(w *emit.Emitter, row, i scalar.Expr, acc []scalar.Expr) {
		emit.SaveAll(w, cut.starts, ir.Index{i, row}, acc)
	}
	return starts.launches(starts.rule())
}

// scratch allocates memory for sets of running values.
func (p *scan) scratch(name string, dims ...int) []*fusion.Tensor {
	out := make([]*fusion.Tensor, len(p.accs))
	for i, a := range p.accs {
		out[i] = p.e.Partition.Scratch(name, a.DType, dims...)
	}
	return out
}

// chunking is how a kernel splits rows.
type chunking struct {
	chunk, chunks int  // elements per chunk, and chunks per row
	first         bool // the kernel stores totals only
	// totals are the totals by chunk and row, starts their exclusive scan, nil where workgroups
	// gather it.
	totals, starts []*fusion.Tensor
}

// chunking returns the chunks of a schedule: whole tiles, or the row.
func (p *scan) chunking(s emit.Schedule) chunking {
	tile := s.Lanes * s.Each
	tiles := emit.CeilDiv(p.length, tile)
	share := emit.CeilDiv(tiles, s.Split)
	if share == tiles {
		return chunking{chunk: p.length, chunks: 1}
	}
	return chunking{chunk: share * tile, chunks: emit.CeilDiv(tiles, share)}
}

// gathers reports whether workgroups combine the totals before their chunk themselves.
func (s chunking) gathers() bool { return s.totals != nil && !s.first && s.starts == nil }

// number maps a workgroup's number to its chunk of the row. The second pass runs in reverse,
// since the chunks that were read last are in the cache.
func (s chunking) number(i scalar.Expr) scalar.Expr {
	if s.first || s.totals == nil {
		return i
	}
	return scalar.Sub(loop.Int(s.chunks-1), i)
}

// whole reports whether workgroups have whole tiles of a schedule only.
func (s chunking) whole(p *scan, by emit.Schedule) bool {
	return p.length == s.chunk*s.chunks && s.chunk%(by.Lanes*by.Each) == 0
}

// commutative reports whether elements may be combined in any order.
func (p *scan) commutative() bool {
	a, b := make([]scalar.Expr, len(p.accs)), make([]scalar.Expr, len(p.accs))
	for i, acc := range p.accs {
		a[i], b[i] = scalar.FreeVar("a"+strconv.Itoa(i), acc.DType), scalar.FreeVar("b"+strconv.Itoa(i), acc.DType)
	}
	return emit.Commutes(p.combine(a, b))
}

func (p *scan) kernel(s emit.Schedule, cut chunking) emit.Launch {
	switch s.Family {
	case emit.SerialScan:
		return p.serial(s, cut)
	case emit.RegisterScan:
		return p.register(s, cut)
	}
	return p.block(s, cut)
}

// init returns the initial running values.
func (p *scan) init() []scalar.Expr {
	out := make([]scalar.Expr, len(p.accs))
	for i, a := range p.accs {
		out[i] = a.Init
	}
	return out
}

// combineAll combines sets of running values in order.
func (p *scan) combineAll(w *emit.Emitter, values []scalar.Expr) []scalar.Expr {
	n := len(p.accs)
	all := values[:n]
	for i := n; i < len(values); i += n {
		all = w.LetAll("sum", p.combine(all, values[i:i+n]))
	}
	return all
}
