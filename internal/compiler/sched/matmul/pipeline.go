package matmul

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The tiles of the asynchronous-copy pipeline. Wide ones are faster where they fill a
// device; tall ones balance better. Rates on an H200 in TFLOP/s, with those of PyTorch in
// the same run, for the layouts NN, TN, NT and TT:
//
//	4096 × 4096 × 4096   wide 52.0 53.7 49.5 51.0   tall 51.0 52.1 47.4 49.0   PyTorch 51.5 51.9 50.4 49.3
//	2048 × 2048 × 2048   wide 52.0                  tall 48.2                  PyTorch 50.4
//	16384 × 1152 × 384   wide 43.9                  tall 47.9                  PyTorch 42.2
//
// A step (8 contracted positions of wide tiles, 16 of tall ones) is about 1,150
// instructions. Steps twice as long overflow the instruction cache and ran at 48.4 instead
// of 52.0.
var (
	wide           = tile{128, 128, 8, 16, 8, 1, 2, false}
	tall           = tile{64, 128, 16, 8, 8, 1, 2, false}
	pipelinedTiles = []tile{wide, tall}
)

// preferPipeline replaces a tile and its split-K parts by those of the pipeline where the
// operands can be copied asynchronously. Otherwise it returns its arguments.
func preferPipeline(w *Space, t tile, parts int) (tile, int) {
	caps := w.e.Caps
	if !fitsPipeline(tall, caps) || !w.asyncCopyable() || t.lanes > 1 || t.rm != tall.rm || 4*tall.padded(w.c) > 5*t.padded(w.c) {
		return t, parts
	}
	if fills(wide, w.c, caps) {
		return wide, 1
	}
	return tall, cheapestParts(tall, w.c, caps)
}

// minWaveUse is the minimum share of busy multiprocessors over all waves of wide tiles. 16384 ×
// 1152 results fill 0.87 of ten waves: wide tiles took 330 µs and tall ones 303. 16384 × 768
// fill 0.97 of six: 1,488 and 1,531 µs (H200).
const minWaveUse = 0.9

// fills reports whether the tiles keep a device busy. Tiles of the last wave run two to a
// multiprocessor, like those of the waves before, even where one each would do.
func fills(t tile, c *fusion.Contraction, caps loop.Caps) bool {
	count, at := t.count(c), caps.Profile().Processors
	waves := 1
	if count > at {
		waves = 2 * emit.CeilDiv(count, 2*at)
	}
	return float64(count) >= minWaveUse*float64(waves*at)
}

// A warp covers warpRows × warpColumns vectors of results.
const (
	warpRows    = 4
	warpColumns = 8
)

// pipelineRegisters is the number of a multiprocessor's registers that accumulators may take.
// The other half is for operands and addresses.
const pipelineRegisters = 32 << 10

// pipelineBytes returns the bytes of workgroup memory of all stages.
func pipelineBytes(t tile) int { return t.stages * t.k * (pitch(t, t.m) + pitch(t, t.n)) * 4 }

// pitch returns the elements from one contracted position of a side's tile to the next: one
// vector of padding per row avoids bank conflicts of threads that write to neighbouring rows.
func pitch(t tile, row int) int { return row + emit.VectorWidth }

// fitsPipeline reports whether a target has asynchronous copies and room for the tile's stages.
func fitsPipeline(t tile, caps loop.Caps) bool {
	return caps.Dialect == dtype.CUDA && caps.Mma && t.threads() <= caps.Invocations && t.sharedBytes() <= caps.MmaBytes
}

// pipeline is the main loop of a tile whose operands are copied asynchronously to workgroup
// memory: the copies of all stages but one are in flight during the arithmetic. Each thread
// double-buffers its operands in registers, across the end of a step too.
type pipeline struct {
	e     *tileEmitter
	first [2][]string // a thread's operands of the first contracted position of a step
	// from names the offsets in workgroup memory, in vectors, of a thread's operands of a
	// step. They are variables because NVRTC folds the constant part of an address into the
	// load only where it does not know the base. Without them one instruction in forty was
	// address arithmetic.
	from [2]string
}

func newPipeline(te *tileEmitter) *pipeline {
	for i := range te.side {
		l, _ := layoutOf(te.Emitter, te.out.g, te.out.c, ir.F32, i)
		te.side[i].kFast = l == alongK
	}
	te.side[1].base = te.t.stages * te.t.k * pitch(te.t, te.t.m) / emit.VectorWidth
	te.Resident = pipelineRegisters / (te.t.threads() * te.t.rm * te.t.rn)
	return &pipeline{e: te}
}

// warpCoords returns the place of a thread's results in the tile, in vectors. Lanes that differ
// in the lowest bit lie below each other, and so do those that differ in the highest. Pairs of
// neighbouring lanes then read the same vector of one operand, so that workgroup memory serves
// 16 threads at once instead of 8.
func warpCoords(te *tileEmitter) (down, right scalar.Expr) {
	warp, in := scalar.FloorDiv(te.lane, loop.Int(loop.Warp)), scalar.Mod(te.lane, loop.Int(loop.Warp))
	across := te.t.n / te.t.rn / warpColumns
	down = scalar.Add(scalar.Mod(in, loop.Int(2)), scalar.Mul(scalar.FloorDiv(in, loop.Int(loop.Warp/2)), loop.Int(2)))
	right = scalar.Mod(scalar.FloorDiv(in, loop.Int(2)), loop.Int(warpColumns))
	down = scalar.Add(scalar.Mul(scalar.FloorDiv(warp, loop.Int(across)), loop.Int(warpRows)), down)
	right = scalar.Add(scalar.Mul(scalar.Mod(warp, loop.Int(across)), loop.Int(warpColumns)), right)
	return down, right
}

// vectorOffset returns the offset, in vectors, of vector vec of contracted position k of a
// side's tile in a stage.
func (p *pipeline) vectorOffset(s *side, stage, k, vec scalar.Expr) scalar.Expr {
	pitch := pitch(p.e.t, s.tile) / emit.VectorWidth
	row := scalar.Add(scalar.Mul(stage, loop.Int(p.e.t.k)), k)
	return p.e.Simplify(scalar.Add(scalar.Add(scalar.Mul(row, loop.Int(pitch)), vec), loop.Int(s.base)))
}

// stage names the stage of a step.
func (p *pipeline) stage(step scalar.Expr) scalar.Expr {
	return p.e.let("stage", scalar.Mod(step, loop.Int(p.e.t.stages)), p.e.t.stages-1)
}

// begin starts the copies of the first tiles and loads the first operands.
func (p *pipeline) begin() {
	for i := range p.e.t.stages - 1 {
		p.startCopies(loop.Int(i))
	}
	p.awaitStep()
	for i := range p.e.side {
		p.from[i] = p.e.Name("from")
		p.e.Body = append(p.e.Body, &loop.Var{Name: p.from[i], Init: p.ownOffset(&p.e.side[i], loop.Int(0))})
	}
	for i, names := range p.loadOperands(0) {
		for _, name := range names {
			first := p.e.Name(p.e.side[i].prefix)
			p.first[i] = append(p.first[i], first)
			p.e.Body = append(p.e.Body, &loop.Var{Name: first, Init: scalar.FreeVar(name, ir.F32)})
		}
	}
}

// awaitStep waits for the tiles of the next step.
func (p *pipeline) awaitStep() {
	p.e.Body = append(p.e.Body, &loop.CopyWait{Pending: p.e.t.stages - 2}, &loop.Barrier{})
}

// step multiplies the tiles of a step. Copies in flight overwrite the stage of the step before,
// which all threads have read.
func (p *pipeline) step(at scalar.Expr) {
	p.startCopies(scalar.Add(at, loop.Int(p.e.t.stages-1)))
	now := p.first
	for k := 1; k < p.e.t.k; k++ {
		next := p.loadOperands(k)
		p.mulAdd(now)
		now = next
	}
	p.awaitStep()
	stage := p.stage(scalar.Add(at, loop.Int(1)))
	for i := range p.e.side {
		p.e.Body = append(p.e.Body, &loop.Assign{Name: p.from[i], Value: p.ownOffset(&p.e.side[i], stage)})
	}
	next := p.loadOperands(0)
	p.mulAdd(now)
	for i := range next {
		for j, name := range next[i] {
			p.e.Body = append(p.e.Body, &loop.Assign{Name: p.first[i][j], Value: scalar.FreeVar(name, ir.F32)})
		}
	}
}

// end waits for the copies started in place of those of steps beyond the last.
func (p *pipeline) end() { p.e.Body = append(p.e.Body, &loop.CopyWait{}) }

// ownOffset returns the offset, in vectors, of a thread's first operands of a side in a stage.
func (p *pipeline) ownOffset(s *side, stage scalar.Expr) scalar.Expr {
	return p.vectorOffset(s, stage, loop.Int(0), s.thread)
}

// loadOperands loads a thread's operands of contracted position k of a step.
func (p *pipeline) loadOperands(k int) (out [2][]string) {
	for i := range p.e.side {
		s := &p.e.side[i]
		from := scalar.NewVar(p.from[i], ir.I32, 0, int64(pipelineBytes(p.e.t)/(4*emit.VectorWidth)-1))
		for v := range s.reg / emit.VectorWidth {
			names := make([]string, emit.VectorWidth)
			for j := range names {
				names[j] = p.e.Name(s.prefix)
			}
			at := p.e.Simplify(scalar.Add(from, loop.Int(k*pitch(p.e.t, s.tile)/emit.VectorWidth+v*s.tile/s.reg)))
			p.e.Body = append(p.e.Body, &loop.LoadVec{Names: names, Array: p.e.slot, At: at})
			out[i] = append(out[i], names...)
		}
	}
	return out
}

// mulAdd accumulates the products of a contracted position, going through the rows in
// alternate directions, so that each multiply-add shares an operand with the one before. A
// multiprocessor reads one register of each of two banks per cycle and caches it for the next
// instruction. A multiply-add takes one cycle if it reads only its accumulator and one operand,
// and two at the start of each row if all rows go in the same direction.
func (p *pipeline) mulAdd(now [2][]string) {
	for i, x := range now[0] {
		for j := range now[1] {
			if i%2 == 1 {
				j = p.e.t.rn - 1 - j
			}
			sum := p.e.acc(i*p.e.t.rn + j)
			product := scalar.Mul(scalar.FreeVar(x, ir.F32), scalar.FreeVar(now[1][j], ir.F32))
			p.e.Body = append(p.e.Body, &loop.Assign{Name: sum, Value: scalar.Add(scalar.FreeVar(sum, ir.F32), product)})
		}
	}
}

// transposedRows is the number of contracted positions that neighbouring threads copy of an
// operand that is transposed on the way: one memory sector each, without bank conflicts.
const transposedRows = 8

// startCopies starts the copies of a step's tiles. Beyond the last step it copies the last tiles
// again.
func (p *pipeline) startCopies(step scalar.Expr) {
	at := p.e.let("copied", scalar.Min(step, loop.Int(p.e.steps-1)), p.e.steps-1)
	stage := p.stage(step)
	k := scalar.Mul(scalar.Add(scalar.Mul(p.e.part, loop.Int(p.e.steps)), at), loop.Int(p.e.t.k))
	k = p.e.let("k", k, p.e.parts*p.e.steps*p.e.t.k-1)
	load := p.e.Reader().Operand(p.e.out.c.Node)
	for i := range p.e.side {
		s := &p.e.side[i]
		count := copyWidth(s)
		for v := range emit.CeilDiv(s.tile*p.e.t.k/count, p.e.t.threads()) {
			id := scalar.Add(p.e.lane, loop.Int(v*p.e.t.threads()))
			kk, free := copyCoords(s, id)
			x := p.asyncCopy(s, load, scalar.Add(k, kk), free, count)
			to := scalar.Add(scalar.Mul(p.vectorOffset(s, stage, kk, loop.Int(0)), loop.Int(emit.VectorWidth)), scalar.Mul(free, loop.Int(count)))
			x.To, x.ToAt = p.e.slot, p.e.Simplify(to)
			p.e.Body = append(p.e.Body, x)
		}
	}
	p.e.Body = append(p.e.Body, &loop.CopyCommit{})
}

// copyWidth returns the number of elements of each copy of a side: a vector, or one element if
// the tile is transposed.
func copyWidth(s *side) int {
	if s.kFast {
		return 1
	}
	return emit.VectorWidth
}

// copyCoords returns the contracted position of copy id in the tile, and its number along the
// free positions.
func copyCoords(s *side, id scalar.Expr) (k, free scalar.Expr) {
	if !s.kFast {
		return scalar.FloorDiv(id, loop.Int(s.tile/emit.VectorWidth)), scalar.Mod(id, loop.Int(s.tile/emit.VectorWidth))
	}
	low, rest := scalar.Mod(id, loop.Int(transposedRows)), scalar.FloorDiv(id, loop.Int(transposedRows))
	return scalar.Add(low, scalar.Mul(scalar.FloorDiv(rest, loop.Int(s.tile)), loop.Int(transposedRows))), scalar.Mod(rest, loop.Int(s.tile))
}

// asyncCopy returns the copy of count elements of a side. Out-of-range free positions are
// clamped, since their results are not stored; out-of-range contracted positions are zero.
func (p *pipeline) asyncCopy(s *side, load ir.Load, k, free scalar.Expr, count int) *loop.CopyAsync {
	var inside scalar.Expr
	if length := fusion.Product(p.e.out.c.K); p.e.parts*p.e.steps*p.e.t.k > length {
		inside = p.e.Simplify(scalar.Lt(k, loop.Int(length)))
		k = scalar.Min(k, loop.Int(length-1))
	}
	f := scalar.Add(scalar.FloorDiv(s.first, loop.Int(count)), free)
	if n := fusion.Product(s.free); n%s.tile != 0 {
		f = scalar.Min(f, loop.Int(n/count-1))
	}
	f = p.e.Simplify(scalar.Mul(f, loop.Int(count)))
	x := p.e.out.c.Factor(s.operand, p.e.out.batch, p.e.Unflatten(f, s.free), p.e.Unflatten(p.e.Simplify(k), p.e.out.c.K), load)
	from, ok := emit.StoredAt(ir.F32, p.e.Simplify(x))
	if !ok {
		panic("an operand's layout has changed")
	}
	return &loop.CopyAsync{From: from.Array, FromAt: p.e.Simplify(from.At), Count: count, Valid: emit.Both(from.Valid, inside)}
}
