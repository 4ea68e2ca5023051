package emit

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Piece is 16 contiguous bytes of an operand in memory. If Valid is not nil and is false, its
// elements are zero.
type Piece struct {
	Array int         // the tensor's ID
	At    scalar.Expr // the first element
	Valid scalar.Expr // nil if always
}

// PieceOf returns the piece of the elements of type d that element returns by number, or false
// if they are not contiguous and aligned.
func (e *Emitter) PieceOf(d ir.DType, element func(j int) scalar.Expr) (p Piece, ok bool) {
	for j := range loop.ChunkElements(d) {
		q, stored := StoredAt(d, e.Simplify(element(j)))
		switch {
		case !stored:
			return p, false
		case j == 0:
			p = q
			continue
		}
		apart, known := e.Simplify(scalar.Sub(q.At, p.At)).IntConst()
		same := (p.Valid == nil) == (q.Valid == nil) && (p.Valid == nil || scalar.Equal(p.Valid, q.Valid))
		if !known || apart != int64(j) || q.Array != p.Array || !same {
			return p, false
		}
	}
	rest, known := e.Simplify(scalar.Mod(p.At, loop.Int(loop.ChunkElements(d)))).IntConst()
	return p, known && rest == 0
}

// StoredAt returns the location of an element that is read as stored, or is zero under a
// condition.
func StoredAt(d ir.DType, x scalar.Expr) (p Piece, ok bool) {
	if x.Op == scalar.OpSelect {
		if zero, is := x.Args[2].Value(); !is || zero.F != 0 {
			return p, false
		}
		p.Valid, x = x.Args[0], x.Args[1]
	}
	if x.Op == scalar.OpConvert {
		x = x.Args[0]
	}
	if x.Op != scalar.OpLoad || x.Type != d {
		return p, false
	}
	p.Array, p.At = x.Ref, x.Args[0]
	return p, true
}

// Both returns the conjunction of two conditions; nil is true.
func Both(a, b scalar.Expr) scalar.Expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return scalar.And(a, b)
}

// Writes reports whether a group stores to a tensor.
func Writes(g *fusion.Group, id int) bool {
	for _, m := range g.Members {
		for _, t := range m.Store {
			if t != nil && t.Root().ID == id {
				return true
			}
		}
	}
	return false
}

// LinearTerms adds the coefficients of the variables in x, times factor, to of, and the
// constant term under "" unless it is 0. It reports whether x is linear.
func LinearTerms(x scalar.Expr, factor int, of map[string]int) bool {
	if n, ok := x.IntConst(); ok {
		if of[""] += factor * int(n); of[""] == 0 {
			delete(of, "")
		}
		return true
	}
	switch x.Op {
	case scalar.OpVar:
		of[x.Name] += factor
		return true
	case scalar.OpAdd:
		return LinearTerms(x.Args[0], factor, of) && LinearTerms(x.Args[1], factor, of)
	case scalar.OpMul:
		for i, a := range x.Args {
			if n, ok := a.IntConst(); ok {
				return LinearTerms(x.Args[1-i], factor*int(n), of)
			}
		}
	}
	return false
}
