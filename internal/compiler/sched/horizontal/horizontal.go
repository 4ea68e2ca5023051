package horizontal

import (
	"math"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/elementwise"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// MaxFused is the maximum number of different parts in one kernel, whose text has all of them.
const MaxFused = 8

// Bindings of a segmented kernel other than arenas.
const (
	TableBinding  = -1 // the segment table
	StatusBinding = -2 // the status words
)

// Segmented is a kernel for any number of parts of one key, whose tensors lie in arenas. It
// reads what differs between the parts from a table, see [Table].
type Segmented struct {
	Kernel *loop.Kernel // its grid is that of the table
	// Bindings are the bindings of the kernel's storage arrays: the number of an arena,
	// TableBinding or StatusBinding.
	Bindings []int
}

// Segments returns the kernel for parts of one key in the given number of workgroups. arenas
// holds the arena of each of the part's Args, from 0; the tensors of an arena have elements of
// 4 bytes.
func Segments(part *emit.Part, arenas []int, groups int, caps loop.Caps) (Segmented, error) {
	w := &segmentWriter{Emitter: emit.New(part.Partition, caps).WithThreads(emit.GroupThreads), part: part}
	s := w.find(groups)
	part.Work.Write(w.Emitter, s)
	l := w.Launch(part.Work.Name())
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
	*emit.Emitter
	part  *emit.Part
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
func Table(parts []emit.Part, first [][]int) (table []int32, groups int) {
	table = []int32{int32(len(parts))}
	share, perThread := shareOf(parts)
	for i, part := range parts {
		table = append(table, int32(groups), int32(part.Len), int32(perThread))
		for j, at := range first[i] {
			table = append(table, int32(at+part.First[j]))
		}
		groups += emit.CeilDiv(part.Len, share)
	}
	return append(table, math.MaxInt32), groups
}

// shareOf returns the elements per workgroup of parts of one key, and the elements per thread
// if they are maps.
func shareOf(parts []emit.Part) (share, perThread int) {
	if !parts[0].IsMap() {
		return parts[0].Work.Share(), 1
	}
	elements := 0
	for _, part := range parts {
		elements += part.Len
	}
	perThread = min(max(elements/(emit.GroupThreads*elementwise.FullGroups), 1), elementwise.MaxPerThread)
	return perThread * emit.GroupThreads, perThread
}

// find finds the part of a workgroup: each thread tests one row of the table at a time.
func (w *segmentWriter) find(groups int) emit.Segment {
	load := func(at scalar.Expr) scalar.Expr { return scalar.LoadAt(emit.TableSlot, ir.I32, at) }
	row := func(part scalar.Expr) scalar.Expr {
		return scalar.Add(scalar.Mul(part, loop.Int(rowHead+len(w.part.Args))), loop.Int(tableHead))
	}
	// The size of the grid must not appear in the text, not even where it is 1.
	workgroup := scalar.FreeVar(w.Let("workgroup", w.LinearGroup(max(groups, 2))).Name, ir.I32)
	w.Groups[0] = min(groups, w.Groups[0])
	found := w.Shared("found", ir.I32, 1, 1)
	w.Loop("part", loop.LocalID(0, emit.GroupThreads), load(loop.Int(0)), emit.GroupThreads, math.MaxInt16, func(part scalar.Expr) {
		from, next := load(row(part)), load(row(scalar.Add(part, loop.Int(1))))
		w.When(scalar.And(scalar.Le(from, workgroup), scalar.Lt(workgroup, next)), func() { w.Put(found, loop.Int(0), part) })
	})
	w.Barrier()
	here := w.Let("row", row(scalar.LoadAt(found, ir.I32, loop.Int(0))))
	field := func(name string, i int) scalar.Expr { return w.Let(name, load(scalar.Add(here, loop.Int(i)))) }
	s := emit.Segment{Workgroup: scalar.Sub(workgroup, field("before", 0)), Length: field("length", 1), First: loop.Int(0), PerThread: field("items", 2)}
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
