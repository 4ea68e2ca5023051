package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// mapThreads is the workgroup size of map kernels: a multiple of every
// subgroup size, and what WebGPU allows everywhere.
const mapThreads = 256

// mapWeight is how many operations a thread of a map may be given where it
// computes the elements of a whole word: they are written out one after the other.
const mapWeight = 128

// perThread is how many elements of a part a thread computes: one, or as many as
// it has to store at once where memory is made of words.
func (e *emitter) perThread(part *fusion.Group) int {
	per := 1
	for _, t := range part.Writes() {
		per = max(per, e.caps.Together(t.DType))
	}
	if fusion.Product(part.Outer)%per != 0 || per*part.Weight() > mapWeight {
		return 1
	}
	return per
}

// scheduleMaps gives each thread one element, or as many as it has to store at once.
// Groups side by side take consecutive ranges of workgroups, so that no workgroup's
// threads diverge.
func scheduleMaps(e *emitter, name string, parts []*fusion.Group) []Launch {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p *fusion.Group) bool { return fusion.Product(p.Outer) == 0 })
	starts := make([]int, len(parts)+1)
	for i, part := range parts {
		threads := fusion.Product(part.Outer) / e.perThread(part)
		starts[i+1] = starts[i] + ceilDiv(threads, mapThreads)
	}
	if starts[len(parts)] == 0 {
		return nil
	}
	return []Launch{e.partsAt(name, parts, starts, e.mapPart)}
}

// writePart writes what a thread does that has some number in a part; there are span threads.
type writePart func(part *fusion.Group, thread scalar.Expr, span int) []loop.Stmt

// partsAt is a kernel of parts that begin at some workgroups, and end at the last of these.
func (e *emitter) partsAt(name string, parts []*fusion.Group, starts []int, write writePart) Launch {
	e.workgroup = [3]int{mapThreads, 1, 1}
	workgroup := e.linearGroup(starts[len(parts)])
	return e.finish(name, e.halve(parts, starts, workgroup, loop.LocalID(0, mapThreads), write))
}

// halve lets a workgroup find its part by halving, since languages bound how
// deep statements may nest. starts are the first workgroups of the parts, and
// the one after the last.
func (e *emitter) halve(parts []*fusion.Group, starts []int, workgroup, lane scalar.Expr, write writePart) []loop.Stmt {
	if len(parts) == 1 {
		first := scalar.Sub(workgroup, loop.Int(starts[0]))
		flat := scalar.Add(scalar.Mul(first, loop.Int(mapThreads)), lane)
		return write(parts[0], flat, (starts[1]-starts[0])*mapThreads)
	}
	half := len(parts) / 2
	return []loop.Stmt{&loop.If{
		Cond: scalar.Lt(workgroup, loop.Int(starts[half])),
		Then: e.halve(parts[:half], starts[:half+1], workgroup, lane, write),
		Else: e.halve(parts[half:], starts[half:], workgroup, lane, write),
	}}
}

// mapPart computes the elements of a part that belong to the thread with the given
// number; there are span of them.
func (e *emitter) mapPart(part *fusion.Group, thread scalar.Expr, span int) []loop.Stmt {
	per := e.perThread(part)
	n := fusion.Product(part.Outer) / per
	name := e.name("i")
	i := scalar.NewVar(name, thread.Type, 0, int64(n-1))
	at := make([]ir.Index, per)
	for k := range at {
		at[k] = e.unflatten(scalar.Add(scalar.Mul(i, loop.Int(per)), loop.Int(k)), part.Outer)
	}
	body := e.mapElements(part, at...)
	if span != n || e.overshoots() {
		body = []loop.Stmt{&loop.If{Cond: scalar.Lt(scalar.FreeVar(name, thread.Type), loop.Int(n)), Then: body}}
	}
	return append([]loop.Stmt{&loop.Let{Name: name, Value: thread}}, body...)
}

// mapElements computes some elements of each result of a map.
func (e *emitter) mapElements(g *fusion.Group, at ...ir.Index) []loop.Stmt {
	body := e.points(g, e.reader(), at...)
	for _, c := range g.Copies {
		for _, at := range at {
			body = append(body, e.copyElement(c, at)...)
		}
	}
	return body
}

func (e *emitter) copyElement(c fusion.Copy, at ir.Index) []loop.Stmt {
	at = fusion.Spread(at, c.To.Dims)
	value := c.Literal
	if c.From != nil {
		value = e.load(c.From, at)
	}
	return e.store(c.To, at, value)
}

// kept is a value that is stored.
type kept struct {
	t     *fusion.Tensor
	at    ir.Index
	value scalar.Expr
}

// points computes the members at some points of a group and stores what is kept.
func (e *emitter) points(g *fusion.Group, r *fusion.Reader, at ...ir.Index) []loop.Stmt {
	return e.storeAll(e.values(g, r, at...))
}

// values returns what the members keep at some points of a group, the elements of a
// tensor one after the other.
func (e *emitter) values(g *fusion.Group, r *fusion.Reader, at ...ir.Index) (stores []kept) {
	for _, m := range g.Members {
		for i, t := range m.Store {
			for _, point := range at {
				if t == nil {
					continue
				}
				r.InGroup(g, point, func(ir.Value) (scalar.Expr, bool) { return nil, false })
				pos := m.At(point)
				stores = append(stores, kept{t, pos, r.Element(m.Node.Result(i), pos)})
			}
		}
	}
	return stores
}

// storeAll stores values. What several of them need is named once by the printer.
func (e *emitter) storeAll(stores []kept) []loop.Stmt {
	values := make([]scalar.Expr, len(stores))
	for i, s := range stores {
		values[i] = s.value
	}
	body := e.nameAll(values)
	for i, s := range stores {
		body = append(body, e.store(s.t, s.at, values[i])...)
	}
	return body
}

// nameAll names what several values share, and the values themselves where
// there is more than one: their stores may overwrite what they are made of.
func (e *emitter) nameAll(values []scalar.Expr) []loop.Stmt {
	if len(values) < 2 {
		return nil
	}
	var body []loop.Stmt
	s := scalar.BindShared(e.name("s")+"_", values...)
	for _, b := range s.Locals {
		body = append(body, &loop.Let{Name: b.Var.Name, Value: b.Value})
	}
	for i, root := range s.Roots {
		if root.Op == scalar.OpVar || root.Op == scalar.OpConst {
			values[i] = root
			continue
		}
		name := e.name("v")
		body = append(body, &loop.Let{Name: name, Value: root})
		values[i] = scalar.FreeVar(name, root.Type)
	}
	return body
}
