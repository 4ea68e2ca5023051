package matmul

import (
	"math"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// registerTiles are the tiles of devices whose barriers take longer than loads. A thread loads
// what it multiplies: 8×8 results take 16 numbers for 64 multiply-adds. A product of 512 takes
// 59 ms with the first on SwiftShader (two cores), 92 with 4×4 results of a thread and 692 by
// workgroup memory; its kernel compiles in 150 ms, that of 4×4 results in 40.
var registerTiles = []tile{
	{64, 64, 4, 8, 8, 1, 0, true},
	{32, 32, 4, 4, 4, 1, 0, true},
	{64, 16, 4, 4, 4, 1, 0, true},
	{16, 64, 4, 4, 4, 1, 0, true},
}

// chooseRegisters returns the first tile of registers that computes at most a quarter more results
// than the least, and as many split-K parts as give each processor a workgroup.
func chooseRegisters(c *fusion.Contraction, caps loop.Caps, minPadded float64) (best tile, parts int, ok bool) {
	for _, t := range registerTiles {
		if t.fits(caps) && 4*t.padded(c) <= 5*minPadded {
			parts = min(caps.Profile().Processors/t.count(c), fusion.Product(c.K)/partLength, maxParts(c, caps))
			return t, max(1, parts), true
		}
	}
	return tile{}, 0, false
}

// registersCost estimates the nanoseconds of a contraction by registers: each thread reads its
// operands from the cache.
func (t tile) registersCost(c *fusion.Contraction, parts int, d hardware.Profile) float64 {
	work := t.padded(c) * float64(fusion.Product(c.K))
	time := d.Launch + max(
		2*work/(d.Flops*t.rate()*float64(d.Processors)),
		4*work*float64(t.rm+t.rn)/float64(t.rm*t.rn)/d.CacheBandwidth(),
	)*math.Max(1, float64(d.Processors)/float64(t.count(c)*parts))
	if parts > 1 {
		time += d.Launch + 8*resultCount(c)*float64(parts)/d.Bandwidth()
	}
	return time
}

// nameFree computes the free coordinates of a thread's registers once, where these take divisions.
func (te *tileEmitter) nameFree() {
	for i := range te.side {
		s := &te.side[i]
		s.coords = make([]ir.Index, s.reg)
		for r := range s.coords {
			s.coords[r] = te.freeAt(s, te.freePosition(s, r))
			for axis, x := range s.coords[r] {
				if len(s.free) > 1 {
					s.coords[r][axis] = te.let(s.prefix+"at", x, s.free[axis]-1)
				}
			}
		}
	}
}

// multiplyLoaded loads a thread's operands of one step and accumulates their products.
func (te *tileEmitter) multiplyLoaded(step scalar.Expr) {
	k := scalar.Add(scalar.Mul(te.part, loop.Int(te.steps)), step)
	k = scalar.Mul(te.let("k", k, te.parts*te.steps-1), loop.Int(te.t.k))
	var regs [2][][]scalar.Expr
	for i := range te.side {
		regs[i] = te.loadRegisters(&te.side[i], k)
	}
	for kk := range te.t.k {
		for i, a := range regs[0] {
			for j, b := range regs[1] {
				acc := te.acc(i*te.t.rn + j)
				sum := scalar.Add(scalar.FreeVar(acc, ir.F32), scalar.Mul(a[kk], b[kk]))
				te.Body = append(te.Body, &loop.Assign{Name: acc, Value: sum})
			}
		}
	}
}

// loadRegisters returns the operand of a thread's free positions at the contracted positions from k
// on, [free][contracted], by vectors along the axis on which it is contiguous where it can.
func (te *tileEmitter) loadRegisters(s *side, k scalar.Expr) [][]scalar.Expr {
	factor, out := te.factors(), make([][]scalar.Expr, s.reg)
	for r := range out {
		out[r] = make([]scalar.Expr, te.t.k)
	}
	for first := range s.reg * te.t.k / emit.VectorWidth {
		values, at := make([]scalar.Expr, emit.VectorWidth), make([][2]int, emit.VectorWidth)
		for j := range values {
			at[j] = [2]int{first/te.t.k*emit.VectorWidth + j, first % te.t.k}
			if s.kFast {
				at[j] = [2]int{first, j}
			}
			values[j] = factor(s, s.coords[at[j][0]], scalar.Add(k, loop.Int(at[j][1])))
		}
		if !s.vectors || !te.loadVector(values) {
			te.Body = append(te.Body, te.NameAll(values)...)
		}
		for j, x := range values {
			out[at[j][0]][at[j][1]] = x
		}
	}
	return out
}
