package attention

import (
	"math"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// forward returns the kernel of attention. Each workgroup has a block of queries and makes one
// pass over the keys visible to them, with the running maximum and sum of the exponentials of
// each query (online softmax).
func (n *attention) forward() emit.Launch {
	a := n.overQueries(forwardKernel)
	none := scalar.FreeVar("none", ir.F32)
	a.e.Add(&loop.Let{Name: none.Name, Value: scalar.ConstF(ir.F32, math.Inf(-1))})
	queries := a.rowQueries()
	r := onlineSoftmax{a.registers.vars("greatest", none), a.registers.vars("total", scalar.ConstF(ir.F32, 0)), a.registers.accumulators("o", n.spec.Width)}
	a.columnBlocks(loop.Int(0), loop.Int(a.cols.blocks()), func() {
		scores := a.registers.zeros("s", a.cols.block)
		a.product(scores, a.q(), a.k())()
		a.eachScore(scores, queries, func(_, _ int, x element) scalar.Expr { return scalar.Select(x.visible, x.score, none) })
		a.rescale(scores, r)
		a.accumulate(r.out, scores, a.v())()
	})
	a.storeForward(r, none)
	return a.launch(n.prefix)
}

// overQueries returns the emitter of a kernel whose workgroups have one block of queries each.
// Those with the most visible keys come first.
func (n *attention) overQueries(kind kernelKind) *kernel {
	a := n.newKernel(kind)
	blocks := a.rows.blocks()
	workgroup := a.workgroups(fusion.Product(n.spec.Heads) * blocks)
	block := scalar.Mod(workgroup, loop.Int(blocks))
	if n.spec.Causal || emit.WithMma && a.maskBounds().end != nil {
		block = scalar.Sub(loop.Int(blocks-1), block)
	}
	a.rows.setBlock(block)
	a.heads.set(scalar.FloorDiv(workgroup, loop.Int(blocks)))
	return a
}

// onlineSoftmax is the online softmax of a thread's rows: the maximum scores, the thread's part
// of the sums of exponentials, and the accumulated values.
type onlineSoftmax struct {
	maxima, total []string
	out           fragment
}

// rescale replaces the scores of a block by their exponentials and adds them to the total. It
// rescales the total and the accumulators to the new maximum.
func (a *kernel) rescale(scores fragment, r onlineSoftmax) {
	local, next := make([]scalar.Expr, scores.rows), make([]string, scores.rows)
	for i := range local {
		local[i] = scores.at(i, 0)
		for c := 1; c < scores.columns; c++ {
			local[i] = a.maxScore(local[i], scores.at(i, c))
		}
		next[i] = a.e.Name("next")
		a.e.Add(&loop.Var{Name: next[i], Init: scalar.FreeVar(r.maxima[i], ir.F32)})
	}
	a.fold(next, local, a.maxScore)
	for i := range next {
		greatest, total := scalar.FreeVar(r.maxima[i], ir.F32), scalar.FreeVar(r.total[i], ir.F32)
		a.whenGreater(scalar.FreeVar(next[i], ir.F32), greatest, func() {
			top := a.exponent(finiteOrZero(scalar.FreeVar(next[i], ir.F32)))
			factor := a.e.Let("factor", a.exponential(scalar.Sub(a.exponent(greatest), top)))
			a.e.Set(greatest, scalar.FreeVar(next[i], ir.F32))
			a.e.Set(total, scalar.Mul(total, factor))
			for c := range r.out.columns {
				a.registers.assign(r.out, i, c, scalar.Mul(r.out.at(i, c), factor))
			}
		})
		top := a.e.Let("top", a.exponent(finiteOrZero(greatest)))
		for c := range scores.columns {
			a.registers.assign(scores, i, c, a.exponential(scalar.Sub(a.exponent(scores.at(i, c)), top)))
			a.e.Set(total, scalar.Add(total, scores.at(i, c)))
		}
	}
}

// maxExponent is the maximum growth of exponents before the running maximum is updated. Powers
// of 2 up to 2⁸ are as exact as smaller ones, and fit f16.
const maxExponent = 8

// whenGreater runs body for a row whose maximum has changed. With multiply-adds, where rescaling
// would take much of the time, small changes are skipped: the exponents' offset need not be the
// maximum.
func (a *kernel) whenGreater(next, greatest scalar.Expr, body func()) {
	if !a.mma {
		body()
		return
	}
	a.e.When(scalar.Gt(a.exponent(next), scalar.Add(a.exponent(greatest), scalar.ConstF(ir.F32, maxExponent))), body)
}

// maxScore returns the greater of two scores. Its result for NaN does not matter: the exponential
// of such a score is NaN whatever is subtracted from it.
func (n *attention) maxScore(a, b scalar.Expr) scalar.Expr {
	if n.mma {
		return scalar.Max(a, b) // one instruction there
	}
	return scalar.Select(scalar.Lt(a, b), b, a)
}

// storeForward stores the requested results.
func (a *kernel) storeForward(r onlineSoftmax, none scalar.Expr) {
	zero := scalar.ConstF(ir.F32, 0)
	names := a.registers.vars("sum", zero)
	a.fold(names, floats(r.total), scalar.Add)
	sums := floats(names)
	if t := a.m.Store[0]; t != nil {
		one := scalar.ConstF(ir.F32, 1)
		factors := make([]scalar.Expr, len(sums)) // without visible keys the accumulators are 0 too
		for i := range factors {
			factors[i] = a.e.Let("factor", scalar.Div(one, scalar.Select(scalar.Eq(sums[i], zero), one, sums[i])))
		}
		a.storeSums(t, a.heads.query, a.spec.Width, func(i, c int) scalar.Expr { return scalar.Mul(r.out.at(i, c), factors[i]) })
	}
	if t := a.m.Store[1]; t != nil {
		a.storeRows(t, a.heads.query, func(i int) scalar.Expr {
			lse := scalar.Add(a.scaledScore(finiteOrZero(scalar.FreeVar(r.maxima[i], ir.F32))), scalar.Log(sums[i]))
			return scalar.Select(scalar.Eq(sums[i], zero), none, lse)
		})
	}
}
