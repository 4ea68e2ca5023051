package cpu

import (
	"maps"
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Factors in bf16 are multiplied in f32 below these numbers of multiplications, where packing pairs costs
// more than it saves, and of rows or columns.
const (
	minPairWork = 1 << 14
	minPairSide = 4
)

// pairFactors makes the factors of a product of numbers of bf16 pairs of neighbours along a summed axis,
// as words of 32 bits, where the processor multiplies those. It reports whether it did.
func pairFactors(c *compiler, k *fusion.ContractionCode) bool {
	m, n := product(k.M), product(k.N)
	if !simd.MultipliesPairs() || !jit.Available() || k.Sum.Type != ir.F32 || !isBF16(k.A) || !isBF16(k.B) || min(m, n) < minPairSide || m*n*product(k.K) < minPairWork {
		return false
	}
	axis := pairedAxis(k)
	if axis < 0 {
		return false
	}
	v, size := k.KAt[axis], k.K[axis]
	half := (size + 1) / 2
	first := scalar.Mul(coordinateOf(v, half), loop.Int(2))
	second := scalar.Add(first, loop.Int(1))
	inside := scalar.ConstBool(true)
	if size%2 == 1 {
		inside = scalar.Lt(second, loop.Int(size))
		second = scalar.Select(inside, second, loop.Int(0))
	}
	read := map[int]bool{}
	pair := func(e scalar.Expr) scalar.Expr {
		at := func(place scalar.Expr) scalar.Expr {
			return scalar.Simplify(scalar.SubstituteVars(e, map[string]scalar.Expr{v.Name: place}))
		}
		return pairOf(c, at(first), scalar.Simplify(scalar.Select(inside, at(second), scalar.Const(ir.F32, 0))), read)
	}
	k.A, k.B = pair(k.A), pair(k.B)
	k.K, k.KAt = slices.Clone(k.K), slices.Clone(k.KAt)
	k.K[axis], k.KAt[axis] = half, coordinateOf(v, half)
	for _, ref := range slices.Sorted(maps.Keys(read)) {
		c.add(&wordsStep{c.buffers[ref], c.buffers[c.pairs[ref]]})
	}
	return true
}

// pairOf returns the pair of two values: neighbours in memory are one load of the tensor as pairs, whose
// ID it adds to read.
func pairOf(c *compiler, x, y scalar.Expr, read map[int]bool) scalar.Expr {
	switch {
	case x.Op == scalar.OpSelect && y.Op == scalar.OpSelect && scalar.Equal(x.Args[0], y.Args[0]):
		return scalar.Select(x.Args[0], pairOf(c, x.Args[1], y.Args[1], read), pairOf(c, x.Args[2], y.Args[2], read))
	case x.Op == scalar.OpConst && y.Op == scalar.OpConst:
		return scalar.Const(ir.F32, 0)
	case x.Op == scalar.OpConvert && y.Op == scalar.OpConvert && x.Args[0].Op == scalar.OpLoad && y.Args[0].Op == scalar.OpLoad && x.Args[0].Ref == y.Args[0].Ref:
		at, next := x.Args[0].Args[0], y.Args[0].Args[0]
		sum, step := affineOf(at), affineOf(scalar.Simplify(scalar.Sub(next, at)))
		ref := x.Args[0].Ref
		if from := c.buffers[ref]; from != nil && at.Type == ir.I32 && len(step.terms) == 0 && step.constant == 1 && sum.divides(2) && sum.constant%2 == 0 {
			id, known := c.pairs[ref]
			if !known {
				id = c.bufferID(&buffer{dtype: ir.F32, elems: from.elems / 2})
				c.pairs[ref] = id
			}
			read[ref] = true
			return scalar.LoadAt(id, ir.F32, sum.quotient(2).expr())
		}
	}
	const bits = 16
	low := scalar.Shr(scalar.Bitcast(x, ir.U32), scalar.ConstI(ir.U32, bits))
	return scalar.Bitcast(scalar.Or(low, scalar.Bitcast(y, ir.U32)), ir.F32)
}

// wordsStep makes the memory of a tensor that of its pairs. Runs may change it.
type wordsStep struct{ from, pairs *buffer }

func (s *wordsStep) run(*runner) { s.pairs.data = s.from.data }

// pairedAxis returns the longest summed axis of even size, or else one of odd size, whose last pair is half
// empty; -1 for none.
func pairedAxis(k *fusion.ContractionCode) int {
	const long = 8
	best := -1
	for i, size := range k.K {
		even := size%2 == 0
		if k.KAt[i].Op != scalar.OpVar || !even && size < long {
			continue
		}
		if best < 0 || even && k.K[best]%2 == 1 || even == (k.K[best]%2 == 0) && size >= k.K[best] {
			best = i
		}
	}
	return best
}

// isBF16 reports whether a value in f32 is one of bf16.
func isBF16(e scalar.Expr) bool {
	switch e.Op {
	case scalar.OpConvert:
		return e.Args[0].Type == ir.BF16
	case scalar.OpSelect:
		return isBF16(e.Args[1]) && isBF16(e.Args[2])
	case scalar.OpConst:
		c, ok := e.Value()
		return ok && c.F == 0
	}
	return false
}
