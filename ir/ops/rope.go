package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// along returns a coordinate for computing positions along an axis of the given size, as
// I64 if they do not fit in I32.
func along(size int, at scalar.Expr) scalar.Expr {
	if size > loop.MaxElements {
		return loop.Long(at)
	}
	return at
}

// both returns the conjunction of two conditions; nil is a condition that always holds.
func both(p, q scalar.Expr) scalar.Expr {
	switch {
	case p == nil:
		return q
	case q == nil:
		return p
	}
	return scalar.And(p, q)
}

// strided divides a position by a step: it returns x/step and the condition that x is a
// multiple of step with a quotient in [0, size), nil if it always holds. x lies in [lo,
// hi]. The quotient is 0 where the condition fails, so that loads stay in bounds; for size
// 0 the condition is false.
func strided(x scalar.Expr, step, size, lo, hi int) (scalar.Expr, scalar.Expr) {
	if size == 0 {
		return loop.Int(0), scalar.ConstBool(false)
	}
	var valid scalar.Expr
	if lo < 0 {
		valid = scalar.Ge(x, loop.Int(0))
	}
	if hi > (size-1)*step {
		valid = both(valid, scalar.Le(x, loop.Int((size-1)*step)))
	}
	quotient := x
	if step > 1 {
		valid = both(valid, scalar.Eq(scalar.Rem(x, loop.Int(step)), loop.Int(0)))
		quotient = scalar.Div(x, loop.Int(step))
	}
	if valid == nil {
		return quotient, nil
	}
	return scalar.Select(valid, quotient, loop.Int(0)), valid
}

// loadWhere returns the element of an operand at a position, which is always in bounds,
// where valid holds (nil: everywhere), and zero elsewhere.
func loadWhere(n *ir.Node, load ir.Load, operand int, at ir.Index, valid scalar.Expr) scalar.Expr {
	zero := scalar.Const(n.Input(operand).DType(), 0)
	if valid == nil {
		return load(operand, at)
	}
	if v, ok := valid.IntConst(); ok && v == 0 {
		return zero
	}
	return scalar.Select(valid, load(operand, at), zero)
}

// Rotary position embeddings.
const (
	OpRope      ir.Op = "rope"
	OpRopeTable ir.Op = "rope_table"
	OpAxialRope ir.Op = "axial_rope"
)

// RopeAttrs choose the pairs: neighbours, as in GPT-J, if Interleaved, and otherwise
// element i and element i + r of 2·r rotated ones, as in GPT-NeoX.
type RopeAttrs struct{ Interleaved bool }

// Visit shows the attributes.
func (a *RopeAttrs) Visit(v ir.AttrVisitor) { v.Bool("interleaved", &a.Interleaved) }

// RopeTableAttrs hold the number of rotated elements and the base of the frequencies
// base^(−2·i/size).
type RopeTableAttrs struct {
	Size int
	Base float64
}

// Visit shows the attributes.
func (a *RopeTableAttrs) Visit(v ir.AttrVisitor) {
	v.Int("size", &a.Size)
	v.Float("base", &a.Base)
}

// AxialRopeAttrs hold the number of columns of the position grid, and the base.
type AxialRopeAttrs struct {
	Width int
	Base  float64
}

// Visit shows the attributes.
func (a *AxialRopeAttrs) Visit(v ir.AttrVisitor) {
	v.Int("width", &a.Width)
	v.Float("base", &a.Base)
}

const defaultRopeBase = 10000

func init() {
	defineComposite(composite{
		op: OpRope, operands: []string{"x", "cos", "sin"}, types: floats, newAttrs: func() ir.Attrs { return &RopeAttrs{} },
		doc: "Rotates pairs of elements along the last axis of x by angles given as cosines and sines (Su et al., RoFormer): (u, v) becomes " +
			"(u·cos − v·sin, v·cos + u·sin). With tables [..., r] the first 2·r elements of x are rotated, the others are unchanged. " +
			"It is computed in f32 for narrower types.",
		constraints: []string{"all operands have one element type; x has rank 1 or more", "cos and sin have one shape, [..., r] with 2·r at most the last axis of x, and broadcast to [..., r] of x"},
		check:       checkRope,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return rotated(b, in[0], wide(b, in[1]), wide(b, in[2]), n.Attrs().(*RopeAttrs).Interleaved)
		},
	})
	defineComposite(composite{
		op: OpRopeTable, operands: []string{"positions"}, types: reals,
		doc:         "The cosines and sines of position·base^(−2·i/size) for i in [0, size/2), along a new last axis: the tables of rope, in f32.",
		newAttrs:    func() ir.Attrs { return &RopeTableAttrs{Base: defaultRopeBase} },
		constraints: []string{"size is positive, even and at most 2²⁰, base is positive"},
		check: func(n *ir.Node) error {
			if a := n.Attrs().(*RopeTableAttrs); a.Size < 2 || a.Size > maxRope || a.Size%2 != 0 || !(a.Base > 0) {
				return ir.Attrf("size is %d and base %v: size must be even and in [2, %d], and base positive", a.Size, a.Base, maxRope)
			}
			return nil
		},
		bodies: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a := n.Attrs().(*RopeTableAttrs)
			angles := Mul(b, ExpandDims(b, Convert(b, in[0], ir.F32), -1), frequencies(b, a.Size/2, a.Size, a.Base))
			return []ir.Value{Cos(b, angles), Sin(b, angles)}
		},
	})
	defineComposite(composite{
		op: OpAxialRope, types: floats,
		doc: "Rotary embedding of [..., positions, d] for positions in a row-major grid of width columns: the first half of the pairs of neighbours is rotated by " +
			"the column, the second half by the row, pair i of a half by coordinate·base^(−4·i/d), as in the image encoder of SAM 2.",
		newAttrs:    func() ir.Attrs { return &AxialRopeAttrs{Base: defaultRopeBase} },
		constraints: []string{"x has rank 2 or more, its last axis is a multiple of 4", "width and base are positive"},
		check: func(n *ir.Node) error {
			a, x := n.Attrs().(*AxialRopeAttrs), n.Input(0)
			if d, ok := x.Dim(-1).Const(); x.Rank() < 2 || !ok || d > maxRope || d%4 != 0 {
				return ir.Shapef("%s is not [..., positions, d] with a multiple of 4 for d", x.Type())
			}
			if a.Width < 1 || !(a.Base > 0) {
				return ir.Attrf("width is %d and base %v: they must be positive", a.Width, a.Base)
			}
			return nil
		},
		body: axialRope,
	})
}

func checkRope(n *ir.Node) error {
	if err := oneDType(n); err != nil {
		return err
	}
	x, table := n.Input(0), n.Input(1).Shape()
	if !n.Input(2).Shape().Equal(table) || x.Rank() == 0 || len(table) == 0 {
		return ir.Shapef("cos is %s and sin %s for x %s", table, n.Input(2).Shape(), x.Shape())
	}
	half := table[len(table)-1]
	pairs := append(x.Shape()[:x.Rank()-1].Clone(), half)
	if !x.Dim(-1).Sub(half.Mul(ir.N(2))).Valid() {
		return ir.Shapef("x has %s elements along the last axis, fewer than the tables of %s pairs rotate", x.Dim(-1), half)
	}
	if s, err := BroadcastShapes(table, pairs); err != nil || !s.Equal(pairs) {
		return ir.Shapef("tables %s do not broadcast to the pairs %s", table, pairs)
	}
	return nil
}

// rotated rotates the first 2·r elements of x for tables of r elements.
func rotated(b *ir.Builder, x, cos, sin ir.Value, interleaved bool) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	d, half := x.DType(), cos.Dim(-1)
	x = wide(b, x)
	whole := half.Mul(ir.N(2))
	rotated, rest := SliceAxis(b, x, -1, ir.N(0), whole), SliceAxis(b, x, -1, whole, x.Dim(-1).Sub(whole))
	var u, v ir.Value
	if interleaved {
		pairs := Reshape(b, rotated, append(x.Shape()[:x.Rank()-1].Clone(), half, ir.N(2))...)
		part := func(i int) ir.Value { return Squeeze(b, SliceAxis(b, pairs, -1, ir.N(i), ir.N(1)), -1) }
		u, v = part(0), part(1)
	} else {
		u, v = SliceAxis(b, rotated, -1, ir.N(0), half), SliceAxis(b, rotated, -1, half, half)
	}
	p := Sub(b, Mul(b, u, cos), Mul(b, v, sin))
	q := Add(b, Mul(b, v, cos), Mul(b, u, sin))
	if interleaved {
		rotated = Reshape(b, Stack(b, -1, p, q), rotated.Shape()...)
	} else {
		rotated = Concatenate(b, -1, p, q)
	}
	if !rest.Dim(-1).Is(0) {
		rotated = Concatenate(b, -1, rotated, rest)
	}
	return Convert(b, rotated, d)
}

// maxRope bounds the number of rotated elements: the frequencies are a literal in the
// graph.
const maxRope = 1 << 20

// frequencies returns base^(−2·i/of) for i in [0, n), in f32. It is a literal, so that all
// devices use the same values.
func frequencies(b *ir.Builder, n, of int, base float64) ir.Value {
	a := ir.NewArray(ir.F32, n)
	for i := range a.F {
		a.F[i] = math.Pow(base, -2*float64(i)/float64(of))
	}
	a.Round()
	return Literal(b, a)
}

func axialRope(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	a, x := n.Attrs().(*AxialRopeAttrs), in[0]
	d, _ := x.Dim(-1).Const()
	place := Iota(b, ir.I32, 0, x.Dim(-2))
	width := ConstLike(b, place, float64(a.Width))
	speed := frequencies(b, d/4, d/2, a.Base)
	angle := func(at ir.Value) ir.Value { return Mul(b, ExpandDims(b, Convert(b, at, ir.F32), -1), speed) }
	angles := Concatenate(b, -1, angle(Rem(b, place, width)), angle(Div(b, place, width)))
	table := Convert(b, angles, sumType(x.DType()))
	return rotated(b, x, Cos(b, table), Sin(b, table), true)
}

// Rope rotates pairs of elements along the last axis of x by angles given as cosines and
// sines: (u, v) becomes (u·cos − v·sin, v·cos + u·sin) (Su et al., RoFormer). cos and sin,
// [..., r], have the type of x and broadcast to its leading axes; the elements of x after
// the first 2·r are unchanged.
func Rope(b *ir.Builder, x, cos, sin ir.Value, a RopeAttrs) ir.Value {
	return b.Add1(OpRope, &a, x, cos, sin)
}

// RopeTable returns the cosines and sines, f32[..., size/2], of
// positions·base^(−2·i/size), the tables of [Rope] for integer or float positions [...].
// size is even; a base of 0 means 10,000.
func RopeTable(b *ir.Builder, positions ir.Value, size int, base float64) (cos, sin ir.Value) {
	if base == 0 {
		base = defaultRopeBase
	}
	return two(b.Add(OpRopeTable, &RopeTableAttrs{size, base}, positions))
}

// AxialRope applies the rotary embedding of SAM 2's image encoder to x, [..., positions,
// d], with positions in a row-major grid of width columns: half of the pairs is rotated by
// the column, half by the row. d is a multiple of 4; a base of 0 means 10,000.
func AxialRope(b *ir.Builder, x ir.Value, width int, base float64) ir.Value {
	if base == 0 {
		base = defaultRopeBase
	}
	return b.Add1(OpAxialRope, &AxialRopeAttrs{width, base}, x)
}
