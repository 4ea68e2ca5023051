package sched

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
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
func Segments(part *Part, arenas []int, groups int, caps loop.Caps) (Segmented, error) {
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

// The table holds 32-bit integers. The first are the number of turns that halving
// takes to find a part, and the number of parts; then come rows, one for each part:
// the first of its workgroups, its length, and for each of its tensors the first
// element in the arena that it lies in.
const (
	tableHead = 2
	rowHead   = 2
)

// Table returns the table of parts of one key, and how many workgroups they take.
// first tells for each part and each of its Args, other than the status words, the
// place of the first element of that tensor in its arena.
func Table(parts []Part, first [][]int) (table []int32, groups int) {
	table = []int32{int32(bits.Len(uint(len(parts) - 1))), int32(len(parts))}
	for i, part := range parts {
		table = append(table, int32(groups), int32(part.Len))
		for j, at := range first[i] {
			table = append(table, int32(at+part.First[j]))
		}
		groups += part.Groups()
	}
	return table, groups
}

// tableSlot stands for the table while a kernel is built, segmentTable among the
// tensors that it binds.
const tableSlot = statusSlot + 1

var segmentTable = &group.Tensor{Name: "table", DType: ir.I32}

// find lets a workgroup find its part by halving.
func (w *segmentWriter) find(groups int) segment {
	load := func(at scalar.Expr) scalar.Expr { return scalar.LoadAt(tableSlot, ir.I32, at) }
	row := rowHead + len(w.part.Args)
	at := func(part scalar.Expr) scalar.Expr {
		return scalar.Add(scalar.Mul(part, loop.Int(row)), loop.Int(tableHead))
	}
	// The size of the grid is no part of the text, not even where it is 1.
	workgroup := scalar.FreeVar(w.let("workgroup", w.linearGroup(max(groups, 2))).Name, ir.I32)
	w.groups[0] = min(groups, w.groups[0])
	low, high := w.variable("low", loop.Int(0)), w.variable("high", load(loop.Int(1)))
	w.add(&loop.For{Var: w.name("turn"), Start: loop.Int(0), End: load(loop.Int(0)), Step: loop.Int(1), Body: w.nested(func() {
		middle := w.let("middle", scalar.FloorDiv(scalar.Add(low, high), loop.Int(2)))
		w.choose(scalar.Le(load(at(middle)), workgroup), func() { w.set(low, middle) }, func() { w.set(high, middle) })
	})})
	here := w.let("row", at(low))
	field := func(i int) scalar.Expr { return load(scalar.Add(here, loop.Int(i))) }
	s := segment{workgroup: w.let("own", scalar.Sub(workgroup, field(0))), length: w.let("length", field(1)), first: loop.Int(0)}
	for i := range w.part.Args {
		w.first = append(w.first, w.let("at"+strconv.Itoa(i)+"_", field(rowHead+i)))
	}
	return s
}

// bindings tells what the arrays of the kernel are bound to, of which args are the
// tensors before those of one arena became one.
func (w *segmentWriter) bindings(args []*group.Tensor, arenas []int) []int {
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
