package reduce

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir/scalar"
)

// term is a part of a slice whose weights are scale·number + sign·offset; scale and offset may be
// missing.
type term struct {
	scale, offset scalar.Expr
	negative      bool
	numbers       []scalar.Expr
	elements      []int // of the slice, for each number
	// shifts, if not nil, are the positions of numbers that are subnormal: activations are scaled by them.
	// minus is the constant to subtract from each number.
	shifts []int
	minus  int64
	// quads, if not nil, are the numbers, four in a word, where activations are integers. They are of one block.
	quads []quad
	block int
}

// terms returns the weights of a row and a slice by their scales and offsets.
func (p *packedRows) terms(m *fusion.Member, row, slice scalar.Expr) (terms []term, ok bool) {
	type weight struct { // parts of expressions that p simplified, of which equal ones are one node
		scale, offset scalar.Expr
		block         int
	}
	found := map[weight]int{}
	for i := range p.split.elements() {
		_, w, ok := p.product(m, row, p.element(slice, i/p.split.run, i%p.split.run))
		if !ok {
			return nil, false
		}
		t := termOf(w)
		if emit.WithMma && p.rounding != nil {
			t.block = p.rounding.of[i]
		}
		key := weight{t.scale, t.offset, t.block}
		at, known := found[key]
		if !known {
			at, found[key] = len(terms), len(terms)
			terms = append(terms, t)
			terms[at].numbers = nil
		}
		terms[at].numbers = append(terms[at].numbers, t.numbers...)
		terms[at].elements = append(terms[at].elements, i)
	}
	return terms, true
}

func keyOf(x scalar.Expr) string {
	if x == nil {
		return ""
	}
	return scalar.Key(x)
}

// termOf splits a weight.
func termOf(w scalar.Expr) (t term) {
	if w.Op == scalar.OpAdd || w.Op == scalar.OpSub {
		t.negative = w.Op == scalar.OpSub
		t.offset, w = w.Args[1], w.Args[0]
	}
	t.numbers = []scalar.Expr{w}
	if w.Op != scalar.OpMul {
		return t
	}
	for i, number := range w.Args {
		if number.Op == scalar.OpConvert && number.Args[0].Type.IsInteger() {
			t.scale, t.numbers[0] = w.Args[1-i], number
		}
	}
	return t
}
