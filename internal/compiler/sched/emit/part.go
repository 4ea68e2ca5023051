package emit

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Part is one of several independent pieces of work, an element-wise map or a partial sum.
// Parts are fused horizontally once their tensors are placed, by [sched.Fuser].
type Part struct {
	// Key is equal for parts that do the same to equally many tensors, whatever their lengths and
	// addresses.
	Key string
	// Args are the tensors that the part touches, in the order of the key; nil means the
	// status words.
	Args []*fusion.Tensor
	// Written reports which of Args the part stores to.
	Written []bool
	// First is, for each of Args, the number of its elements before the part's own.
	First []int
	// Len is the number of elements of the part, at least 1.
	Len int

	// Work is the computation of the part.
	Work Work
	// Partition has its tensors.
	Partition *fusion.Partition
}

// Work is the computation of a part.
type Work interface {
	// Name returns the kernel's name.
	Name() string
	// Share returns the maximum number of elements per workgroup.
	Share() int
	// Write writes the work of a workgroup.
	Write(w *Emitter, s Segment)
	// IsMap reports whether the work is an element-wise map.
	IsMap() bool
}

// Segment is the position of a workgroup in its part.
type Segment struct {
	Workgroup scalar.Expr // the number of the workgroup in the part
	Length    scalar.Expr // the number of elements of the part
	First     scalar.Expr // the number of stored elements before the part's own
	PerThread scalar.Expr // the elements per thread of a map
}

// Groups returns the minimum number of workgroups of the part.
func (p *Part) Groups() int { return CeilDiv(p.Len, p.Work.Share()) }

// IsMap reports whether the part is a map, which has elements for several threads.
func (p *Part) IsMap() bool { return p.Work.IsMap() }

// NewPart returns a part. Its key is the text of a kernel for it that knows neither its length
// nor those of its tensors.
func NewPart(x Work, length int, p *fusion.Partition, caps loop.Caps) Part {
	w := New(p, caps).WithThreads(GroupThreads)
	w.Groups = [3]int{1, 1, 1}
	free := func(name string) scalar.Expr { return scalar.FreeVar(name, ir.I32) }
	x.Write(w, Segment{free("workgroup"), free("length"), loop.Int(0), free("items")})
	l := w.Launch(x.Name())
	part := Part{Args: l.Args, First: make([]int, len(l.Args)), Len: length, Work: x, Partition: p}
	for i := range l.Kernel.Arrays {
		if a := &l.Kernel.Arrays[i]; a.Space == loop.Storage {
			a.Len = 0
			part.Written = append(part.Written, a.Access != loop.Read)
		}
	}
	part.Key = l.Kernel.String()
	return part
}

// OwnLaunch returns the launch of the part in a separate kernel.
func (p *Part) OwnLaunch(caps loop.Caps) Launch {
	w := New(p.Partition, caps).WithThreads(GroupThreads)
	first := 0
	for _, n := range p.First {
		first = max(first, n)
	}
	p.Work.Write(w, Segment{w.Let("workgroup", w.LinearGroup(p.Groups())), loop.Int(p.Len), loop.Int(first), loop.Int(1)})
	return w.Launch(p.Work.Name())
}

// PartsLaunch returns the launch of parts whose kernels are not built yet, or none if there are
// no parts. Tensors that are only read come first, so that they are placed first.
func PartsLaunch(parts []Part) []Launch {
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

// TableSlot is the slot of the table while a kernel is built, segmentTable its tensor among the
// arguments.
const TableSlot = statusSlot + 1

var segmentTable = &fusion.Tensor{Name: "table", DType: ir.I32}
