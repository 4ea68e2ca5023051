package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Bounds of loops that run as one kernel. What a workgroup does in a step takes as
// many cycles as a launch of each group on the whole device would at most: a launch
// takes 2 to 3 µs. A thread takes some cycles for a point, and some for each element
// of a sum; and a multiprocessor gets some 64 bytes in a cycle from what all share,
// as it reads all the weights in each step. A device must be done with a kernel before
// it is taken for stuck.
const (
	launchCycles  = 4096
	pointCycles   = 64
	elementCycles = 6
	barrierCycles = 128
	mostCycles    = 1 << 27 // of all steps: some 75 ms
	mostPerStep   = 1 << 17 // elements that a step of one row goes through
	fewSteps      = 4       // from how many steps on it pays
)

// persistent is a loop whose rounds are all in one kernel. Each row of its values
// belongs to a workgroup, which keeps its carries and what goes from group to group of
// the body in its own memory, so that a barrier is all that a step waits for.
type persistent struct {
	*writer
	l       *fusion.Loop
	rows    int
	row     scalar.Expr // of the workgroup
	count   string      // the variable that the body knows the count by
	stages  [][]*rowPart
	kept    map[int]*keptRows // by the tensors' IDs
	order   []*keptRows
	written map[int]*fusion.Tensor // what the body stores to
	stacked map[int]bool           // those of which it stores a slice in each step
	step    int                    // elements that a step of a row goes through
	bytes   int                    // of kept rows
}

// Persistent returns the launch of a kernel that runs all rounds of a loop, behind those
// that pack weights for it; or false where the loop is not one of values that go by
// rows, or too much for that. A compiler bug comes back as an error.
func Persistent(l *fusion.Loop, caps loop.Caps) (out []Launch, ok bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = format.Errorf("sched: cannot make a kernel of a loop, %s: %v", l.Node.Op(), r)
		}
	}()
	if l.Count < fewSteps || caps.Invocations < mapThreads {
		return out, false, nil
	}
	for _, rows := range []int{rowsOf(l), 1} {
		p := &persistent{l: l, rows: rows, kept: map[int]*keptRows{}, written: map[int]*fusion.Tensor{}, stacked: map[int]bool{}}
		p.count = loop.Counter(l.Body.Depth() - 1).Name
		if rows > 0 && p.plan() && p.pays() && p.bytes <= caps.SharedBytes {
			out = p.pack(caps)
			last := p.write(caps)
			return append(out, last), len(last.Args) <= caps.Tensors(), nil
		}
	}
	return out, false, nil
}

// rowsOf returns how many rows the values of a loop may have: the first coordinate of
// its groups, 0 where they have none in common.
func rowsOf(l *fusion.Loop) int {
	rows := 0
	for _, item := range l.Body.Items {
		g, ok := item.(*fusion.Group)
		if !ok {
			return 0
		}
		for _, part := range g.SideBySide() {
			if len(part.Outer) == 0 || rows > 0 && part.Outer[0] != rows {
				return 0
			}
			rows = part.Outer[0]
		}
	}
	return rows
}

// plan reads the groups of the body and checks that each of their rows needs rows of
// its own number alone.
func (p *persistent) plan() bool {
	for _, item := range p.l.Body.Items {
		g, ok := item.(*fusion.Group)
		if !ok || g.Long() { // what is kept lies in workgroup memory, whose indices are I32
			return false
		}
		var parts []*rowPart
		for _, part := range g.SideBySide() {
			x, ok := newRowPart(part, p.rows)
			if !ok {
				return false
			}
			parts = append(parts, x)
			p.step += x.points * x.each
			for _, s := range x.code.Rows {
				p.written[s.Tensor.ID] = s.Tensor
				p.stacked[s.Tensor.ID] = p.stacked[s.Tensor.ID] || mentions(s.Offset, p.count)
			}
		}
		p.stages = append(p.stages, parts)
	}
	return p.keepCarries() && p.keepRest() && p.all(p.inRows)
}

// all reports whether something holds for all parts of the body.
func (p *persistent) all(holds func(x *rowPart) bool) bool {
	for _, parts := range p.stages {
		for _, x := range parts {
			if !holds(x) {
				return false
			}
		}
	}
	return true
}

// pays reports whether one workgroup for each row is as fast as launches of all groups
// in each step.
func (p *persistent) pays() bool {
	threads, cycles := p.workgroupSize(), barrierCycles*len(p.stages)
	p.all(func(x *rowPart) bool {
		cycles += ceilDiv(x.points, threads) * (pointCycles + x.each*elementCycles)
		return true
	})
	return cycles <= launchCycles*len(p.stages) && cycles <= mostCycles/p.l.Count && p.step <= mostPerStep
}

// workgroupSize returns a size of workgroups with which as few threads as can be have nothing
// to do in the last of their turns through the points of a row.
func (p *persistent) workgroupSize() int {
	most := 1
	p.all(func(x *rowPart) bool {
		most = max(most, x.points)
		return true
	})
	turns := ceilDiv(most, mapThreads)
	return max(32, ceilDiv(ceilDiv(most, turns), 32)*32)
}

// write writes the kernel.
func (p *persistent) write(caps loop.Caps) Launch {
	p.writer = newWriter(p.l.Body, caps, p.workgroupSize())
	row, exists := p.boundedGroup(p.rows)
	p.row = row
	for _, k := range p.order {
		k.slot = p.shared(p.name("kept"), k.dtype, 1, k.length)
	}
	p.each(func(k *keptRows) bool { return k.from != nil }, func(k *keptRows, i, at scalar.Expr) {
		p.put(k.slot, i, scalar.LoadAt(k.from.ID, k.dtype, p.Simplify(at)))
	})
	p.barrier()
	p.times("round", p.l.Count, func(round scalar.Expr) { p.round(round, exists) })
	p.each(func(k *keptRows) bool { return k.to != nil }, func(k *keptRows, i, at scalar.Expr) {
		p.when(exists, func() {
			p.add(&loop.Store{Array: k.to.ID, At: p.Simplify(at), Value: scalar.LoadAt(k.slot, k.dtype, i)})
		})
	})
	return p.launch("loop_" + p.l.Body.Items[0].(*fusion.Group).Name())
}

// round writes a step: its groups one after the other, and then the carries take their
// next values.
func (p *persistent) round(round, exists scalar.Expr) {
	for _, parts := range p.stages {
		for _, x := range parts {
			p.part(x, round, exists)
		}
		p.barrier()
	}
	if len(p.l.Swaps) == 0 {
		return
	}
	p.each(func(k *keptRows) bool { return k.next != nil }, func(k *keptRows, i, _ scalar.Expr) {
		p.put(k.slot, i, scalar.LoadAt(k.next.slot, k.dtype, i))
	})
	p.barrier()
}
