package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// piece is 16 bytes of an operand as memory has them. Where valid is given and
// false, its elements are zero.
type piece struct {
	array     int
	at, valid scalar.Expr
}

// reading reads an operand of a contraction by pieces.
type reading struct {
	e       *emitter
	c       *fusion.Contraction
	d       ir.DType
	operand int
	batch   ir.Index
}

// pieceAt returns the elements from a free and a contracted position on, along
// one of the two, or reports that they do not lie side by side at a multiple of
// their size. The positions are inside their spaces.
func (r *reading) pieceAt(load ir.Load, free, k scalar.Expr, layout mmaLayout) (p piece, ok bool) {
	spaces := [2][]int{r.c.M, r.c.N}
	return r.e.pieceOf(r.d, func(j int) scalar.Expr {
		f, kk := free, k
		if layout == alongK {
			kk = scalar.Add(k, loop.Int(j))
		} else {
			f = scalar.Add(free, loop.Int(j))
		}
		fAt, kAt := r.e.unflatten(r.e.Simplify(f), spaces[r.operand]), r.e.unflatten(r.e.Simplify(kk), r.c.K)
		return r.c.Factor(r.operand, r.batch, fAt, kAt, load)
	})
}

// pieceOf returns the elements of type d that element gives by number, or reports
// that they do not lie side by side at a multiple of their size.
func (e *emitter) pieceOf(d ir.DType, element func(j int) scalar.Expr) (p piece, ok bool) {
	for j := range loop.PieceElements(d) {
		q, stored := storedAt(d, e.Simplify(element(j)))
		switch {
		case !stored:
			return p, false
		case j == 0:
			p = q
			continue
		}
		apart, known := e.Simplify(scalar.Sub(q.at, p.at)).IntConst()
		same := (p.valid == nil) == (q.valid == nil) && (p.valid == nil || scalar.Equal(p.valid, q.valid))
		if !known || apart != int64(j) || q.array != p.array || !same {
			return p, false
		}
	}
	rest, known := e.Simplify(scalar.Mod(p.at, loop.Int(loop.PieceElements(d)))).IntConst()
	return p, known && rest == 0
}

// storedAt returns where memory has an element, which may be zero under a condition.
func storedAt(d ir.DType, x scalar.Expr) (p piece, ok bool) {
	if x.Op == scalar.OpSelect {
		if zero, is := x.Args[2].Value(); !is || zero.F != 0 {
			return p, false
		}
		p.valid, x = x.Args[0], x.Args[1]
	}
	if x.Op == scalar.OpConvert {
		x = x.Args[0]
	}
	if x.Op != scalar.OpLoad || x.Type != d {
		return p, false
	}
	p.array, p.at = x.Ref, x.Args[0]
	return p, true
}

// layoutOf finds out how an operand lies in memory.
func layoutOf(e *emitter, g *fusion.Group, c *fusion.Contraction, d ir.DType, operand int) mmaLayout {
	r := &reading{e: e, c: c, d: d, operand: operand, batch: fusion.Coords("b", c.Batch)}
	free, k := fusion.Product([2][]int{c.M, c.N}[operand]), fusion.Product(c.K)
	each := loop.PieceElements(d)
	position := func(name string, n, step int) scalar.Expr {
		return scalar.Mul(scalar.NewVar(name, ir.I32, 0, int64(n/step-1)), loop.Int(step))
	}
	load := e.reader().Operand(c.Node)
	if k%each == 0 {
		if p, ok := r.pieceAt(load, position("f", free, 1), position("k", k, each), alongK); ok && !writes(e, g, p.array) {
			return alongK
		}
	}
	if free%each == 0 {
		if p, ok := r.pieceAt(load, position("f", free, each), position("k", k, 1), alongFree); ok && !writes(e, g, p.array) {
			return alongFree
		}
	}
	return staged
}

// writes reports whether a group stores to a tensor.
func writes(e *emitter, g *fusion.Group, id int) bool {
	for _, m := range g.Members {
		for _, t := range m.Store {
			if t != nil && t.Root().ID == id {
				return true
			}
		}
	}
	return false
}

// stagedLength is the contracted space of a staged operand: whole pieces.
func stagedLength(c *fusion.Contraction, d ir.DType) int {
	each := loop.PieceElements(d)
	return ceilDiv(fusion.Product(c.K), each) * each
}

// stageOperand computes an operand into memory, batch by batch and along k.
func stageOperand(e *emitter, g *fusion.Group, c *fusion.Contraction, p *mmaPlan, operand int) (Launch, *fusion.Tensor) {
	free := [2][]int{c.M, c.N}[operand]
	length := stagedLength(c, p.operand)
	name := [2]string{"left", "right"}[operand]
	dims := []int{fusion.Product(c.Batch), fusion.Product(free), length}
	t := e.p.Scratch(name, p.operand, dims...)
	w := e.another().writer(mapThreads)
	load := w.reader().Operand(c.Node)
	w.threads(t.Len(), func(i scalar.Expr) {
		at := w.unflatten(i, dims)
		k, inside := at[2], scalar.Expr(scalar.ConstBool(true))
		if length != fusion.Product(c.K) {
			inside = scalar.Lt(k, loop.Int(fusion.Product(c.K)))
			k = w.Simplify(scalar.Min(k, loop.Int(fusion.Product(c.K)-1)))
		}
		x := c.Factor(operand, w.unflatten(at[0], c.Batch), w.unflatten(at[1], free), w.unflatten(k, c.K), load)
		x = scalar.Select(inside, x, scalar.ConstF(ir.F32, 0))
		w.save(t, at, w.Simplify(scalar.Convert(x, p.operand)))
	})
	return w.launch(g.Name() + "_" + name), t
}
