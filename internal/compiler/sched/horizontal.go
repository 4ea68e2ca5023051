package sched

import (
	"math"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// MaxFused is the maximum number of different parts in one kernel, whose text has all of them.
const MaxFused = 8

// Part is one of several independent pieces of work, an element-wise map or a partial sum.
// Parts are fused horizontally once their tensors are placed: those of one key by
// [Cache.Segments], a few others by [Cache.FuseMaps].
type Part struct {
	// Key is equal for parts that do the same to as many tensors, whatever their lengths and
	// addresses.
	Key string
	// Args are the tensors that the part touches, in the order of the key; nil stands for the
	// status words.
	Args []*fusion.Tensor
	// Written reports which of Args the part stores to.
	Written []bool
	// First is, for each of Args, the number of its elements before the part's own.
	First []int
	// Len is the number of elements of the part, at least 1.
	Len int

	work work
	p    *fusion.Partition
}

// work is the computation of a part.
type work interface {
	// name returns the kernel's name.
	name() string
	// share returns the maximum number of elements per workgroup.
	share() int
	// write writes the work of a workgroup.
	write(w *writer, s segment)
}

// segment is the position of a workgroup in its part: its number, the part's number of
// elements, the stored elements before the part's own, and the elements per thread of a map.
type segment struct{ workgroup, length, first, perThread scalar.Expr }

// Groups returns the minimum number of workgroups of the part.
func (p *Part) Groups() int { return ceilDiv(p.Len, p.work.share()) }

// IsMap reports whether the part is a map, which [Cache.FuseMaps] accepts.
func (p *Part) IsMap() bool {
	_, ok := p.work.(mapWork)
	return ok
}

// newPart returns a part. Its key is the text of a kernel for it that knows neither its length
// nor those of its tensors.
func newPart(x work, length int, p *fusion.Partition, caps loop.Caps) Part {
	w := newWriter(p, caps, mapThreads)
	w.groups = [3]int{1, 1, 1}
	free := func(name string) scalar.Expr { return scalar.FreeVar(name, ir.I32) }
	x.write(w, segment{free("workgroup"), free("length"), loop.Int(0), free("turns")})
	l := w.launch(x.name())
	part := Part{Args: l.Args, First: make([]int, len(l.Args)), Len: length, work: x, p: p}
	for i := range l.Kernel.Arrays {
		if a := &l.Kernel.Arrays[i]; a.Space == loop.Storage {
			a.Len = 0
			part.Written = append(part.Written, a.Access != loop.Read)
		}
	}
	part.Key = l.Kernel.String()
	return part
}

// ownLaunch returns the launch of the part in a kernel of its own.
func (p *Part) ownLaunch(caps loop.Caps) Launch {
	w := newWriter(p.p, caps, mapThreads)
	first := 0
	for _, n := range p.First {
		first = max(first, n)
	}
	p.work.write(w, segment{w.let("workgroup", w.linearGroup(p.Groups())), loop.Int(p.Len), loop.Int(first), loop.Int(1)})
	return w.launch(p.work.name())
}

// partsLaunch returns the launch of parts whose kernels are not built yet, or none if there are
// no parts. Tensors that are only read come first, so that they are placed first.
func partsLaunch(parts []Part) []Launch {
	if len(parts) == 0 {
		return nil
	}
	l := Launch{Parts: parts}
	var written []*fusion.Tensor
	seen := map[*fusion.Tensor]bool{}
	for _, part := range parts {
		for i, t := range part.Args {
			switch {
			case part.Written[i] && t != nil:
				written = append(written, t)
			case !seen[t]:
				seen[t] = true
				l.Args = append(l.Args, t)
			}
		}
	}
	slices.SortFunc(written, func(a, b *fusion.Tensor) int { return a.ID - b.ID })
	l.Args = append(l.Args, slices.Compact(written)...)
	return []Launch{l}
}

// mapWork computes the elements of a map.
type mapWork struct {
	g     *fusion.Group
	words *fusion.Words // nil: all literals are in the kernel
}

// A thread of horizontally fused maps computes up to maxPerThread elements, to share the search
// for its part, as long as fullGroups workgroups remain to hide the latency of the search:
// twice the resident workgroups of an H200, eight on each of 132 multiprocessors.
const (
	maxPerThread = 4
	fullGroups   = 2048
)

func (m mapWork) name() string { return m.g.Name() + "_parts" }

func (m mapWork) share() int { return maxPerThread * mapThreads }

func (m mapWork) write(w *writer, s segment) {
	first := w.let("first", scalar.Add(scalar.Mul(scalar.Mul(s.workgroup, s.perThread), loop.Int(mapThreads)), loop.LocalID(0, mapThreads)))
	w.loop("turn", loop.Int(0), s.perThread, 1, maxPerThread-1, func(turn scalar.Expr) {
		name := w.name("i")
		w.add(&loop.Let{Name: name, Value: scalar.Add(first, scalar.Mul(turn, loop.Int(mapThreads)))})
		i := scalar.NewVar(name, ir.I32, 0, loop.MaxElements-1)
		w.when(scalar.Lt(scalar.FreeVar(name, ir.I32), s.length), func() {
			m.words.Read(func() { w.add(w.mapElements(m.g, w.unflatten(i, m.g.Outer))...) })
		})
	})
}

// updates reports whether a group is a map that only stores states. It is lowered as a part,
// even by itself, so that maps like it of other lengths share its kernel.
func updates(g *fusion.Group) bool {
	return g.Kind == fusion.MapKind && !slices.ContainsFunc(g.Writes(), func(t *fusion.Tensor) bool { return !t.Root().Persistent() })
}

// mapParts returns the parts of horizontally fused maps, with all literals in their kernels.
func mapParts(g *fusion.Group, caps loop.Caps) []Part {
	var out []Part
	for _, part := range g.HorizontalParts() {
		if n := fusion.Product(part.Outer); n > 0 {
			out = append(out, newPart(mapWork{g: part}, n, g.Partition(), caps))
		}
	}
	return out
}

// Bindings of a segmented kernel other than arenas.
const (
	TableBinding  = -1 // the segment table
	StatusBinding = -2 // the status words
)

// Segmented is a kernel for any number of parts of one key, whose tensors lie in arenas. It
// reads what differs between the parts from a table, see [Table].
type Segmented struct {
	Kernel *loop.Kernel
	// Bindings are the bindings of the kernel's storage arrays: the number of an arena,
	// TableBinding or StatusBinding.
	Bindings []int
}

// Segments returns the kernel for parts of one key in the given number of workgroups. arenas
// holds the arena of each of the part's Args, from 0; the tensors of an arena have elements of
// 4 bytes.
func (c *Cache) Segments(part *Part, arenas []int, groups int, caps loop.Caps) (s Segmented, err error) {
	c.key(caps, part.Key)
	c.text = strconv.AppendInt(c.text, int64(groups), 10)
	for _, n := range arenas {
		c.text = strconv.AppendInt(append(c.text, ' '), int64(n), 10)
	}
	if s, known := c.segments[string(c.text)]; known {
		return s, nil
	}
	if s, err = segments(part, arenas, groups, caps); err == nil {
		c.segments[string(c.text)] = s
	}
	return s, err
}

func segments(part *Part, arenas []int, groups int, caps loop.Caps) (Segmented, error) {
	w := &segmentWriter{writer: newWriter(part.p, caps, mapThreads), part: part}
	s := w.find(groups)
	part.work.write(w.writer, s)
	l := w.launch(part.work.name())
	spans := make([]loop.Span, slices.Max(arenas)+1)
	for array, t := range l.Args {
		if arg := slices.Index(part.Args, t); t != nil && arg >= 0 {
			a := arenas[arg]
			spans[a].Windows = append(spans[a].Windows, loop.Window{Array: array, First: w.first[arg]})
		}
	}
	k, err := loop.MergeArrays(l.Kernel, spans)
	return Segmented{k, w.bindings(l.Args, arenas)}, err
}

// segmentWriter writes a segmented kernel.
type segmentWriter struct {
	*writer
	part  *Part
	first []scalar.Expr // the first element of each of the part's tensors in its arena
}

// The table holds 32-bit integers: the number of parts, then a row for each part: its first
// workgroup, its length, the elements per thread, and the first element of each of its tensors
// in its arena. A last row starts with a workgroup number that does not occur.
const (
	tableHead = 1
	rowHead   = 3
)

// Table returns the table of parts of one key, and their number of workgroups. first holds, for
// each part and each of its Args other than the status words, the first element of the tensor
// in its arena.
func Table(parts []Part, first [][]int) (table []int32, groups int) {
	table = []int32{int32(len(parts))}
	share, turns := shareOf(parts)
	for i, part := range parts {
		table = append(table, int32(groups), int32(part.Len), int32(turns))
		for j, at := range first[i] {
			table = append(table, int32(at+part.First[j]))
		}
		groups += ceilDiv(part.Len, share)
	}
	return append(table, math.MaxInt32), groups
}

// shareOf returns the elements per workgroup of parts of one key, and the elements per thread
// if they are maps.
func shareOf(parts []Part) (share, turns int) {
	if !parts[0].IsMap() {
		return parts[0].work.share(), 1
	}
	elements := 0
	for _, part := range parts {
		elements += part.Len
	}
	turns = min(max(elements/(mapThreads*fullGroups), 1), maxPerThread)
	return turns * mapThreads, turns
}

// tableSlot is the slot of the table while a kernel is built, segmentTable its tensor among the
// arguments.
const tableSlot = statusSlot + 1

var segmentTable = &fusion.Tensor{Name: "table", DType: ir.I32}

// find finds the part of a workgroup: each thread tests one row of the table at a time.
func (w *segmentWriter) find(groups int) segment {
	load := func(at scalar.Expr) scalar.Expr { return scalar.LoadAt(tableSlot, ir.I32, at) }
	row := func(part scalar.Expr) scalar.Expr {
		return scalar.Add(scalar.Mul(part, loop.Int(rowHead+len(w.part.Args))), loop.Int(tableHead))
	}
	// The size of the grid must not appear in the text, not even where it is 1.
	workgroup := scalar.FreeVar(w.let("workgroup", w.linearGroup(max(groups, 2))).Name, ir.I32)
	w.groups[0] = min(groups, w.groups[0])
	found := w.shared("found", ir.I32, 1, 1)
	w.loop("part", loop.LocalID(0, mapThreads), load(loop.Int(0)), mapThreads, math.MaxInt16, func(part scalar.Expr) {
		from, next := load(row(part)), load(row(scalar.Add(part, loop.Int(1))))
		w.when(scalar.And(scalar.Le(from, workgroup), scalar.Lt(workgroup, next)), func() { w.put(found, loop.Int(0), part) })
	})
	w.barrier()
	here := w.let("row", row(scalar.LoadAt(found, ir.I32, loop.Int(0))))
	field := func(name string, i int) scalar.Expr { return w.let(name, load(scalar.Add(here, loop.Int(i)))) }
	s := segment{scalar.Sub(workgroup, field("before", 0)), field("length", 1), loop.Int(0), field("turns", 2)}
	for i := range w.part.Args {
		w.first = append(w.first, field("at"+strconv.Itoa(i)+"_", rowHead+i))
	}
	return s
}

// bindings returns the bindings of the kernel's arrays. args are the tensors before the arrays
// of an arena were merged.
func (w *segmentWriter) bindings(args []*fusion.Tensor, arenas []int) []int {
	var out []int
	for _, t := range args {
		b := TableBinding
		switch arg := slices.Index(w.part.Args, t); {
		case t == nil:
			b = StatusBinding
		case arg >= 0:
			b = arenas[arg]
		}
		if !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}
