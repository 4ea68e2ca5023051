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

// Bindings of a kernel for segments other than arenas.
const (
	TableBinding  = -1 // the table
	StatusBinding = -2 // the status words
)

// Segmented is a kernel for any number of parts of one key, whose tensors lie in
// arenas. What differs between the parts stands in a table that it reads, see
// [Table].
type Segmented struct {
	Kernel *loop.Kernel
	// Bindings are what the kernel's storage arrays are bound to: the number of an
	// arena, TableBinding or StatusBinding.
	Bindings []int
}

// Segments returns the kernel for parts like the given one in so many workgroups.
// arenas numbers for each of the part's Args the arena that it lies in, from 0;
// tensors of one arena are of elements of 4 bytes.
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

// segmentWriter writes the kernel for segments.
type segmentWriter struct {
	*writer
	part  *Part
	first []scalar.Expr // for each of the part's tensors, where the workgroup's begins in its arena
}

// The table holds 32-bit integers. The first is the number of parts; then come rows,
// one for each part: the first of its workgroups, its length, how many elements a
// thread has, and for each of its tensors the first element in the arena that it lies
// in. One more row ends with its first number, which no workgroup has.
const (
	tableHead = 1
	rowHead   = 3
)

// Table returns the table of parts of one key, and how many workgroups they take.
// first tells for each part and each of its Args, other than the status words, the
// place of the first element of that tensor in its arena.
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

// shareOf returns how many elements a workgroup of parts of one key has, and in how
// many turns if they are maps.
func shareOf(parts []Part) (share, turns int) {
	if !parts[0].IsMap() {
		return parts[0].work.share(), 1
	}
	elements := 0
	for _, part := range parts {
		elements += part.Len
	}
	turns = min(max(elements/(mapThreads*fullGroups), 1), mapTurns)
	return turns * mapThreads, turns
}

// tableSlot stands for the table while a kernel is built, segmentTable among the
// tensors that it binds.
const tableSlot = statusSlot + 1

var segmentTable = &fusion.Tensor{Name: "table", DType: ir.I32}

// find lets a workgroup find its part: each thread looks at one, and tells the others
// if it is theirs.
func (w *segmentWriter) find(groups int) segment {
	load := func(at scalar.Expr) scalar.Expr { return scalar.LoadAt(tableSlot, ir.I32, at) }
	row := func(part scalar.Expr) scalar.Expr {
		return scalar.Add(scalar.Mul(part, loop.Int(rowHead+len(w.part.Args))), loop.Int(tableHead))
	}
	// The size of the grid is no part of the text, not even where it is 1.
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

// bindings tells what the arrays of the kernel are bound to, of which args are the
// tensors before those of one arena became one.
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
