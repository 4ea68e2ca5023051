package attention

import (
	"math"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/matmul"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// ScoreBytes is the maximum size of an attention's scores, in f32, up to which they are kept in
// memory and not computed in blocks of plain registers: what a binding of every WebGPU device
// holds. Up to there contractions with larger tiles compute them, and masks and other
// elementwise operations are fused.
const ScoreBytes = 128 << 20

// InBlocks reports whether a node is attention that is better computed without its scores
// in memory: if they take more than maxBytes bytes, or if multiply-adds in blocks take less time
// than scores in memory.
func InBlocks(n *ir.Node, caps loop.Caps, maxBytes int) bool {
	l, ok := n.Def().Lower.(*ir.AttendLowering)
	if !ok || caps.Invocations < plainThreads || caps.SharedBytes < plainShared {
		return false
	}
	for _, t := range n.InTypes() {
		if _, ok := t.Shape.Ints(); !ok || t.DType == ir.F64 {
			return false
		}
	}
	s := l.Spec(n)
	if min(s.Depth, s.Width) == 0 || max(s.Depth, s.Width) > maxLength || scores(s) == 0 {
		return false
	}
	d := n.Input(0).DType()
	return 4*scores(s) > float64(maxBytes) || emit.WithMma && usesMma(s, d, caps) && mmaTime(s, d, caps, emit.Schedule{}) < storedScoresTime(s, d, caps)
}

// scores returns the number of scores, which may overflow an int.
func scores(s ir.Attend) float64 {
	n := 1.0
	for _, size := range append([]int{s.Queries, s.Keys}, s.Heads...) {
		n *= float64(size)
	}
	return n
}

// blockCycles are those of a block of columns for a workgroup that has a processor to itself: it waits
// for its own multiply-adds and exponentials (900 ns on an H200).
const blockCycles = 1530

// mmaRateOf returns the operations per nanosecond of a processor.
func mmaRateOf(d ir.DType, p hardware.Profile) float64 {
	if d == ir.F32 {
		return p.Rates().AttentionF32
	}
	return p.Rates().Attention
}

// mmaTime estimates the nanoseconds of attention by multiply-adds, with the tiles of a schedule.
func mmaTime(s ir.Attend, d ir.DType, caps loop.Caps, by emit.Schedule) float64 {
	p, time := caps.Profile(), 0.0
	for _, kind := range kindsOf(s) {
		t := tileFor(by, kind, d, s, caps.MmaBytes)
		rows, cols, products := s.Queries, s.Keys, 2
		switch kind {
		case queriesKernel:
			products = 3
		case keysKernel:
			rows, cols, products = s.Keys, s.Queries, 4
		}
		blocks := float64(emit.CeilDiv(cols, t.columns))
		groups := float64(fusion.Product(s.Heads) * emit.CeilDiv(rows, t.rows()))
		work := 2 * float64(products) * float64(t.rows()*t.columns*paddedLength(d, max(s.Depth, s.Width))) * blocks
		if s.Causal {
			work, blocks = work/2, (blocks+1)/2
		}
		if seen := float64(emit.CeilDiv(s.Window+t.rows(), t.columns)); s.Window > 0 && seen < blocks {
			work, blocks = work*seen/blocks, seen
		}
		busy := math.Ceil(groups/float64(p.Processors)) * work / mmaRateOf(d, p)
		time += p.Launch + matmul.TileOverhead(p) + max(busy, blocks*blockCycles/p.Clock)
	}
	return time
}

// plainTime estimates the nanoseconds of attention in plain registers, at the device's full rate.
// Fragments multiply f32 on the same units of the devices that have them.
func plainTime(s ir.Attend, caps loop.Caps) float64 {
	launches, products := 1, 2
	if s.Backward {
		launches, products = 2, 7
	}
	work := 2 * float64(products) * scores(s) * float64(max(s.Depth, s.Width))
	if s.Causal {
		work /= 2
	}
	p := caps.Profile()
	return float64(launches)*p.Launch + work/p.Arithmetic()
}

// storedScoresTime estimates the nanoseconds of attention with its scores in memory: products
// and the operations between them write and read them three times.
func storedScoresTime(s ir.Attend, d ir.DType, caps loop.Caps) float64 {
	launches, products, bytes := 3, 2, 20
	if s.Backward {
		launches, products, bytes = 6, 5, 40
	}
	operations := 2 * float64(products) * scores(s) * float64(max(s.Depth, s.Width))
	p := caps.Profile()
	return float64(launches)*p.Launch + scores(s)*float64(bytes)/p.Bandwidth() + operations/(mmaRateOf(d, p)*float64(p.Processors))
}
