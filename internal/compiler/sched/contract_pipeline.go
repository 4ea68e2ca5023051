package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Tiles whose operands are copied. Wide ones are faster where they fill a device, tall ones
// share it better. On an H200, in TFLOP/s, beside PyTorch's in the same run, stored as they
// are, with the first matrix turned, the second, and both:
//
//	4096 × 4096 × 4096   wide 52.0 53.7 49.5 51.0   tall 51.0 52.1 47.4 49.0   PyTorch 51.5 51.9 50.4 49.3
//	2048 × 2048 × 2048   wide 52.0                  tall 48.2                  PyTorch 50.4
//	16384 × 1152 × 384   wide 43.9                  tall 47.9                  PyTorch 42.2
//
// A step of 8 contracted positions for wide ones, and of 16 for tall ones, is some 1,150
// instructions: those of twice as many, which do not stay in the cache of instructions, ran at
// 48.4 where wide ones ran at 52.0.
var (
	wide           = tile{128, 128, 8, 16, 8, 1, 2}
	tall           = tile{64, 128, 16, 8, 8, 1, 2}
	pipelinedTiles = []tile{wide, tall}
)

// pipelined returns what takes the place of a tile where operands can be copied: it, too,
// where nothing does.
func (w *contractWays) pipelined(t tile, parts int) (tile, int) {
	caps := w.e.caps
	if !tall.pipelines(caps) || !w.copied() || t.together > 1 || t.rm != tall.rm || 4*tall.padded(w.c) > 5*t.padded(w.c) {
		return t, parts
	}
	if wide.fills(w.c, caps) {
		return wide, 1
	}
	return tall, tall.cheapestParts(w.c, caps)
}

// fullTurns is which part of the multiprocessors must be busy in all turns of wide tiles. Of
// 16384 × 1152 results, whose tiles are 0.87 of ten turns, they took 330 µs, where tall ones
// took 303; of 16384 × 768, which are 0.97 of six, 1,488 and 1,531 (H200).
const fullTurns = 0.9

// fills reports whether tiles keep a device busy: those of the last turn come two to a
// multiprocessor, as those of the turns before, even where there is one for each.
func (t tile) fills(c *fusion.Contraction, caps loop.Caps) bool {
	count, at := t.count(c), caps.Profile().Processors
	turns := 1
	if count > at {
		turns = 2 * ceilDiv(count, 2*at)
	}
	return float64(count) >= fullTurns*float64(turns*at)
}

// The threads of a warp have warpRows rows of vectors of results by warpColumns columns.
const (
	warpRows    = 4
	warpColumns = 8
)

// pipelineRegisters are those of a multiprocessor that sums may take: the other half is for
// operands and places.
const pipelineRegisters = 32 << 10

// pipelineBytes is the workgroup memory of all stages.
func (t tile) pipelineBytes() int { return t.stages * t.k * (t.pitch(t.m) + t.pitch(t.n)) * 4 }

// pitch is the elements from one contracted position of a side's tile to the next: a vector
// more than a row has, so that threads that write to neighbouring rows do not write to one
// bank.
func (t tile) pitch(row int) int { return row + width }

// pipelines reports whether a target has the copies, and room for a tile's.
func (t tile) pipelines(caps loop.Caps) bool {
	return caps.Dialect == dtype.CUDA && caps.Mma && t.threads() <= caps.Invocations && t.sharedBytes() <= caps.MmaBytes
}

// pipeline is the steps of a tile whose operands are copied to workgroup memory beside the
// arithmetic: those of all steps but one that are there are on their way. Each thread reads
// what it multiplies next into registers while it multiplies, over the border of a step too.
type pipeline struct {
	*tileEmitter
	first [2][]string // a thread's operands of the first contracted position of a step
	// from is where a thread's operands of a step begin in workgroup memory, in vectors. They
	// are variables, since NVRTC folds the constants by which reads are further on into its
	// instructions only where it does not see what they are added to: they took one
	// instruction in forty.
	from [2]string
}

func newPipeline(te *tileEmitter) *pipeline {
	for i := range te.side {
		te.side[i].kFast = layoutOf(te.emitter, te.g, te.c, ir.F32, i) == alongK
	}
	te.side[1].base = te.t.stages * te.t.k * te.t.pitch(te.t.m) / width
	te.resident = pipelineRegisters / (te.t.threads() * te.t.rm * te.t.rn)
	return &pipeline{tileEmitter: te}
}

// warpPlace is where a thread's results are, in vectors from the first of the tile. Threads
// whose numbers differ in the lowest bit are below each other, and those that differ in the
// highest of a warp are, too: what a warp reads of one operand is then the same for
// neighbours in pairs, by which workgroup memory serves 16 threads at once and not 8.
func (te *tileEmitter) warpPlace() (down, right scalar.Expr) {
	warp, in := scalar.FloorDiv(te.lane, loop.Int(loop.Warp)), scalar.Mod(te.lane, loop.Int(loop.Warp))
	across := te.t.n / te.t.rn / warpColumns
	down = scalar.Add(scalar.Mod(in, loop.Int(2)), scalar.Mul(scalar.FloorDiv(in, loop.Int(loop.Warp/2)), loop.Int(2)))
	right = scalar.Mod(scalar.FloorDiv(in, loop.Int(2)), loop.Int(warpColumns))
	down = scalar.Add(scalar.Mul(scalar.FloorDiv(warp, loop.Int(across)), loop.Int(warpRows)), down)
	right = scalar.Add(scalar.Mul(scalar.Mod(warp, loop.Int(across)), loop.Int(warpColumns)), right)
	return down, right
}

// at is vector number vec of contracted position k of a side's tile in a stage.
func (p *pipeline) at(s *side, stage, k, vec scalar.Expr) scalar.Expr {
	pitch := p.t.pitch(s.tile) / width
	row := scalar.Add(scalar.Mul(stage, loop.Int(p.t.k)), k)
	return p.Simplify(scalar.Add(scalar.Add(scalar.Mul(row, loop.Int(pitch)), vec), loop.Int(s.base)))
}

// stage is where a step's tiles lie.
func (p *pipeline) stage(step scalar.Expr) scalar.Expr {
	return p.let("stage", scalar.Mod(step, loop.Int(p.t.stages)), p.t.stages-1)
}

// begin begins to copy the first tiles, and reads what the first step begins with.
func (p *pipeline) begin() {
	for i := range p.t.stages - 1 {
		p.copies(loop.Int(i))
	}
	p.arrive()
	for i := range p.side {
		p.from[i] = p.name("from")
		p.body = append(p.body, &loop.Var{Name: p.from[i], Init: p.own(&p.side[i], loop.Int(0))})
	}
	for i, names := range p.read(0) {
		for _, name := range names {
			first := p.name(p.side[i].prefix)
			p.first[i] = append(p.first[i], first)
			p.body = append(p.body, &loop.Var{Name: first, Init: scalar.FreeVar(name, ir.F32)})
		}
	}
}

// arrive waits for the tiles of the next step.
func (p *pipeline) arrive() {
	p.body = append(p.body, &loop.CopyWait{Pending: p.t.stages - 2}, &loop.Barrier{})
}

// step multiplies the tiles of a step, while those of another one are copied over the ones
// of the step before, which all threads have read.
func (p *pipeline) step(at scalar.Expr) {
	p.copies(scalar.Add(at, loop.Int(p.t.stages-1)))
	now := p.first
	for k := 1; k < p.t.k; k++ {
		next := p.read(k)
		p.products(now)
		now = next
	}
	p.arrive()
	stage := p.stage(scalar.Add(at, loop.Int(1)))
	for i := range p.side {
		p.body = append(p.body, &loop.Assign{Name: p.from[i], Value: p.own(&p.side[i], stage)})
	}
	next := p.read(0)
	p.products(now)
	for i := range next {
		for j, name := range next[i] {
			p.body = append(p.body, &loop.Assign{Name: p.first[i][j], Value: scalar.FreeVar(name, ir.F32)})
		}
	}
}

// end waits for the copies that were begun in place of those of steps that there are not.
func (p *pipeline) end() { p.body = append(p.body, &loop.CopyWait{}) }

// own is the first vector of a thread's operands of a side in a stage.
func (p *pipeline) own(s *side, stage scalar.Expr) scalar.Expr {
	return p.at(s, stage, loop.Int(0), s.thread)
}

// read reads a thread's operands of contracted position k of a step.
func (p *pipeline) read(k int) (out [2][]string) {
	for i := range p.side {
		s := &p.side[i]
		from := scalar.NewVar(p.from[i], ir.I32, 0, int64(p.t.pipelineBytes()/(4*width)-1))
		for v := range s.reg / width {
			names := make([]string, width)
			for j := range names {
				names[j] = p.name(s.prefix)
			}
			at := p.Simplify(scalar.Add(from, loop.Int(k*p.t.pitch(s.tile)/width+v*s.tile/s.reg)))
			p.body = append(p.body, &loop.LoadVec{Names: names, Array: p.slot, At: at})
			out[i] = append(out[i], names...)
		}
	}
	return out
}

// products adds the products of a contracted position, row after row to and fro: each has a
// factor of the one before. A multiprocessor reads a register of either of two banks at a
// time, and keeps what it read for the next instruction, so that a product takes one turn
// where its sum and one factor are all it reads, and two at the beginning of each row where
// rows begin at the same end.
func (p *pipeline) products(now [2][]string) {
	for i, x := range now[0] {
		for j := range now[1] {
			if i%2 == 1 {
				j = p.t.rn - 1 - j
			}
			sum := p.acc(i*p.t.rn + j)
			product := scalar.Mul(scalar.FreeVar(x, ir.F32), scalar.FreeVar(now[1][j], ir.F32))
			p.body = append(p.body, &loop.Assign{Name: sum, Value: scalar.Add(scalar.FreeVar(sum, ir.F32), product)})
		}
	}
}

// turnedRows is how many contracted positions neighbouring threads have of an operand that
// is turned on its way: a sector of memory each, and places in all banks.
const turnedRows = 8

// copies begins to copy the tiles of a step, of the last one again where there is none.
func (p *pipeline) copies(step scalar.Expr) {
	at := p.let("copied", scalar.Min(step, loop.Int(p.steps-1)), p.steps-1)
	stage := p.stage(step)
	k := scalar.Mul(scalar.Add(scalar.Mul(p.part, loop.Int(p.steps)), at), loop.Int(p.t.k))
	k = p.let("k", k, p.parts*p.steps*p.t.k-1)
	load := p.reader().Operand(p.c.Node)
	for i := range p.side {
		s := &p.side[i]
		count := s.copied()
		for v := range ceilDiv(s.tile*p.t.k/count, p.t.threads()) {
			id := scalar.Add(p.lane, loop.Int(v*p.t.threads()))
			kk, free := s.copyPlace(id)
			x := p.copy(s, load, scalar.Add(k, kk), free, count)
			to := scalar.Add(scalar.Mul(p.at(s, stage, kk, loop.Int(0)), loop.Int(width)), scalar.Mul(free, loop.Int(count)))
			x.To, x.ToAt = p.slot, p.Simplify(to)
			p.body = append(p.body, x)
		}
	}
	p.body = append(p.body, &loop.CopyCommit{})
}

// copied is how many elements of a side go at once: a vector, or one where the tile has
// neighbours along another axis than memory.
func (s *side) copied() int {
	if s.kFast {
		return 1
	}
	return width
}

// copyPlace is the contracted position of copy number id in the tile, and its number along
// the free positions.
func (s *side) copyPlace(id scalar.Expr) (k, free scalar.Expr) {
	if !s.kFast {
		return scalar.FloorDiv(id, loop.Int(s.tile/width)), scalar.Mod(id, loop.Int(s.tile/width))
	}
	low, rest := scalar.Mod(id, loop.Int(turnedRows)), scalar.FloorDiv(id, loop.Int(turnedRows))
	return scalar.Add(low, scalar.Mul(scalar.FloorDiv(rest, loop.Int(s.tile)), loop.Int(turnedRows))), scalar.Mod(rest, loop.Int(s.tile))
}

// copy is the copy of so many elements of a side. Beyond the free positions any will do,
// since nothing is made of them; beyond the contracted ones there are zeros.
func (p *pipeline) copy(s *side, load ir.Load, k, free scalar.Expr, count int) *loop.CopyAsync {
	var inside scalar.Expr
	if length := fusion.Product(p.c.K); p.parts*p.steps*p.t.k > length {
		inside = p.Simplify(scalar.Lt(k, loop.Int(length)))
		k = scalar.Min(k, loop.Int(length-1))
	}
	f := scalar.Add(scalar.FloorDiv(s.first, loop.Int(count)), free)
	if n := fusion.Product(s.free); n%s.tile != 0 {
		f = scalar.Min(f, loop.Int(n/count-1))
	}
	f = p.Simplify(scalar.Mul(f, loop.Int(count)))
	x := p.c.Factor(s.operand, p.batch, p.unflatten(f, s.free), p.unflatten(p.Simplify(k), p.c.K), load)
	from, ok := storedAt(ir.F32, p.Simplify(x))
	if !ok {
		panic("an operand does not lie as it was found to")
	}
	return &loop.CopyAsync{From: from.array, FromAt: p.Simplify(from.at), Count: count, Valid: both(from.valid, inside)}
}
