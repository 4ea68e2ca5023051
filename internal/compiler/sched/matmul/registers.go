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

// registers writes the steps of a tile of registers.
type registers struct {
	te   *tileEmitter
	free [2][]ir.Index // coordinates of a thread's free positions along each side
}

// begin computes the free coordinates once, where these take divisions.
func (r *registers) begin() {
	for i := range r.te.side {
		s := &r.te.side[i]
		for position := range s.reg {
			at := r.te.freeAt(s, r.te.freePosition(s, position))
			for axis, x := range at {
				if len(s.free) > 1 {
					at[axis] = r.te.let(s.prefix+"at", x, s.free[axis]-1)
				}
			}
			r.free[i] = append(r.free[i], at)
		}
	}
}

// step loads a thread's operands of one step and accumulates their products.
func (r *registers) step(step scalar.Expr) {
	k := scalar.Add(scalar.Mul(r.te.part, loop.Int(r.te.steps)), step)
	k = scalar.Mul(r.te.let("k", k, r.te.parts*r.te.steps-1), loop.Int(r.te.t.k))
	var regs [2][][]scalar.Expr
	for i := range r.te.side {
		regs[i] = r.load(i, k)
	}
	for kk := range r.te.t.k {
		for i, a := range regs[0] {
			for j, b := range regs[1] {
				acc := r.te.acc(i*r.te.t.rn + j)
				sum := scalar.Add(scalar.FreeVar(acc, ir.F32), scalar.Mul(a[kk], b[kk]))
				r.te.Body = append(r.te.Body, &loop.Assign{Name: acc, Value: sum})
			}
		}
	}
}

// load returns the operand of a thread's free positions at the contracted positions from k
// on, [free][contracted], by vectors along the axis on which it is contiguous where it can.
func (r *registers) load(operand int, k scalar.Expr) [][]scalar.Expr {
	s := &r.te.side[operand]
	factor, out := r.te.factors(), make([][]scalar.Expr, s.reg)
	for position := range out {
		out[position] = make([]scalar.Expr, r.te.t.k)
	}
	loads := make([][]scalar.Expr, s.reg*r.te.t.k/emit.VectorWidth)
	at := func(load, j int) (position, kk int) {
		if s.kFast {
			return load, j
		}
		return load/r.te.t.k*emit.VectorWidth + j, load % r.te.t.k
	}
	for i := range loads {
		for j := range emit.VectorWidth {
			position, kk := at(i, j)
			loads[i] = append(loads[i], factor(s, r.free[operand][position], scalar.Add(k, loop.Int(kk))))
		}
	}
	r.te.decideVectors(s, loads)
	for i, values := range loads {
		if s.vectors {
			r.te.loadVector(values)
		} else {
			r.te.Body = append(r.te.Body, r.te.NameAll(values)...)
		}
		for j, x := range values {
			position, kk := at(i, j)
			out[position][kk] = x
		}
	}
	return out
}
