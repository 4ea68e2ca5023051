package attention

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// A boolean mask that compares positions, as that of a cache does, hides all keys after one and before
// another. Blocks of such keys are not read.

// bounds are the keys that the mask shows to a query: those in [first, end), where both are the position of
// the query plus an offset. Either is nil where the mask has no such bound.
type bounds struct {
	first, end scalar.Expr // offsets
	all        bool        // the mask hides no other keys
}

// maskBounds returns the bounds of the mask for the current head. The compiler in a page does not ask for them, to stay small.
func (a *kernel) maskBounds() (b bounds) {
	if a.spec.Mask < 0 || !a.byQuery || !a.m.Node.Input(a.spec.Mask).DType().IsBool() {
		return b
	}
	if a.heads.query == nil { // bounds are asked for before there is a head
		a.heads.query = slices.Repeat(ir.Index{loop.Int(0)}, len(a.spec.Heads))
		defer func() { a.heads.query = nil }()
	}
	row := scalar.NewVar("row", ir.I32, 0, int64(a.spec.Queries-1))
	key := scalar.NewVar("key", ir.I32, 0, int64(a.spec.Keys-1))
	b.all = true
	for _, c := range scalar.Conjuncts(a.read(a.spec.Mask, a.heads.inMask(a.maskDims(), row, key))) {
		b.all = a.bound(&b, c, row, key) && b.all
	}
	return b
}

// bound adds the bound of a condition of two positions, and reports whether it is one.
func (a *kernel) bound(b *bounds, c, row, key scalar.Expr) bool {
	if len(c.Args) != 2 || c.Args[0].Type != ir.I32 {
		return false
	}
	less, more, strict := c.Args[0], c.Args[1], 0
	switch c.Op {
	case scalar.OpLe:
	case scalar.OpLt:
		strict = 1
	case scalar.OpGe:
		less, more = more, less
	case scalar.OpGt:
		less, more, strict = more, less, 1
	default:
		return false
	}
	room := &positions{row: row, key: key, rest: loop.Int(-strict)} // the condition is that it is not negative
	if !room.add(more, 1) || !room.add(less, -1) {
		return false
	}
	bound := loop.Int(a.spec.Keys + a.spec.Queries) // beyond which all keys are shown, or none
	offset := func(x scalar.Expr) scalar.Expr { return scalar.Clamp(x, scalar.Neg(bound), bound) }
	switch {
	case room.rows == 1 && room.keys == -1 && b.end == nil:
		b.end = offset(scalar.Add(room.rest, loop.Int(1)))
	case room.rows == -1 && room.keys == 1 && b.first == nil:
		b.first = offset(scalar.Neg(room.rest))
	default:
		return false
	}
	return true
}

// positions is rows·row + keys·key + rest.
type positions struct {
	row, key   scalar.Expr
	rows, keys int
	rest       scalar.Expr
}

// add adds a sum times 1 or -1, and reports whether it could: rest does not depend on the positions.
func (p *positions) add(x scalar.Expr, sign int) bool {
	is := func(v scalar.Expr) func(scalar.Expr) bool {
		return func(n scalar.Expr) bool { return n.Op == scalar.OpVar && n.Name == v.Name }
	}
	switch {
	case x.Op == scalar.OpAdd:
		return p.add(x.Args[0], sign) && p.add(x.Args[1], sign)
	case x.Op == scalar.OpSub:
		return p.add(x.Args[0], sign) && p.add(x.Args[1], -sign)
	case is(p.row)(x):
		p.rows += sign
	case is(p.key)(x):
		p.keys += sign
	case scalar.Any(x, is(p.row)) || scalar.Any(x, is(p.key)):
		return false
	case sign < 0:
		p.rest = scalar.Sub(p.rest, x)
	default:
		p.rest = scalar.Add(p.rest, x)
	}
	return true
}

// shown narrows [lo, hi) to the blocks that the mask shows to some of the current rows, and whole to those that
// it shows to all.
func (a *kernel) shown(b bounds, lo, hi scalar.Expr, whole [2]scalar.Expr) (first, end scalar.Expr, inner [2]scalar.Expr) {
	rows, cols := &a.rows, &a.cols
	block := func(row int, offset scalar.Expr, up int) scalar.Expr { // of the key at an offset from a row
		at := scalar.Clamp(scalar.Add(scalar.Add(rows.first, offset), loop.Int(row)), loop.Int(0), loop.Int(cols.count))
		return scalar.FloorDiv(scalar.Add(at, loop.Int(up)), loop.Int(cols.block))
	}
	if b.end != nil {
		offset := a.e.Let("offset", b.end)
		hi = scalar.Min(hi, block(rows.block-1, offset, cols.block-1))
		whole[1] = scalar.Min(whole[1], block(0, offset, 0))
	}
	if b.first != nil {
		offset := a.e.Let("offset", b.first)
		lo = scalar.Max(lo, scalar.Min(block(0, offset, 0), loop.Int(cols.blocks()-1)))
		whole[0] = scalar.Max(whole[0], block(rows.block-1, offset, cols.block-1))
	}
	return lo, hi, whole
}
