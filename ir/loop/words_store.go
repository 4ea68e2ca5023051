package loop

import (
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// storeRun stores the elements of one word.
func (w *worder) storeRun(stores []Stmt) []Stmt {
	first := stores[0].(*Store)
	e := &wordExpr{w, map[scalar.Expr]scalar.Expr{}}
	var parts []scalar.Expr
	for _, s := range stores {
		parts = append(parts, e.bits(s.(*Store).Value))
	}
	at := w.Simplify(scalar.FloorDiv(e.expr(first.At), Int(len(parts))))
	return w.storeWords(first.Array, at, []scalar.Expr{joined(parts)})
}

// storeWords stores whole words at an index of the array, which counts vectors
// where it has such.
func (w *worder) storeWords(array int, at scalar.Expr, values []scalar.Expr) []Stmt {
	switch {
	case !w.isShared(array) && len(values) == 1 && w.arrays[array].Width == 1:
		return []Stmt{&Store{array, at, values[0]}}
	case !w.isShared(array):
		return []Stmt{&StoreVec{array, at, values}}
	}
	var out []Stmt
	for i, v := range values {
		place := w.Simplify(scalar.Add(scalar.Mul(at, Int(len(values))), Int(i)))
		out = append(out, w.replace(array, place, v, Int(0), 0xffffffff)...)
	}
	return out
}

// joined puts the bits of the elements of a word together.
func joined(parts []scalar.Expr) scalar.Expr {
	size := 32 / len(parts)
	word := parts[0]
	for i, p := range parts[1:] {
		word = scalar.Or(word, scalar.Shl(p, number((i+1)*size)))
	}
	return word
}

func number(n int) scalar.Expr { return scalar.ConstI(dtype.U32, int64(n)) }

// add changes one element of an array.
func (w *worder) add(array int, at, bits scalar.Expr) []Stmt {
	n := w.perWord(array)
	place := w.Simplify(scalar.FloorDiv(at, Int(n)))
	return w.replace(array, place, bits, w.shift(array, at), 1<<(32/n)-1)
}

// shift is where in its word an element lies.
func (w *worder) shift(array int, at scalar.Expr) scalar.Expr {
	n := w.perWord(array)
	in := w.Simplify(scalar.Mod(at, Int(n)))
	return scalar.Convert(scalar.Mul(in, Int(32/n)), dtype.U32)
}

// replace changes the bits of a word under a mask that is shifted.
func (w *worder) replace(array int, place, bits, shift scalar.Expr, mask uint32) []Stmt {
	if shift.Type == dtype.I32 {
		shift = scalar.Convert(shift, dtype.U32)
	}
	old := w.name("old")
	now := scalar.And(scalar.Shr(scalar.LoadAt(array, dtype.U32, place), shift), scalar.ConstI(dtype.U32, int64(mask)))
	change := scalar.Shl(scalar.Sub(bits, scalar.FreeVar(old, dtype.U32)), shift)
	return []Stmt{&Let{old, now}, &AtomicOp{Op: scalar.OpAdd, Array: array, At: place, Value: change}}
}

func (w *worder) storeVector(s *StoreVec, e *wordExpr) []Stmt {
	n, at := w.perWord(s.Array), e.expr(s.At)
	if len(s.Values) < n {
		var out []Stmt
		for i, v := range s.Values {
			place := w.Simplify(scalar.Add(scalar.Mul(at, Int(len(s.Values))), Int(i)))
			out = append(out, w.add(s.Array, place, e.bits(v))...)
		}
		return out
	}
	var values []scalar.Expr
	for part := range slices.Chunk(s.Values, n) {
		bits := make([]scalar.Expr, n)
		for i, v := range part {
			bits[i] = e.bits(v)
		}
		values = append(values, joined(bits))
	}
	return w.storeWords(s.Array, at, values)
}
