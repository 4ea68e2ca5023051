package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// TransposeAttrs hold the permutation: axis i of the result is axis Perm[i] of the
// operand.
type TransposeAttrs struct {
	Perm []int
}

// Visit shows the attributes.
func (a *TransposeAttrs) Visit(v ir.AttrVisitor) { v.Ints("perm", &a.Perm) }

func defineTranspose() {
	defineMove(move{
		op: OpTranspose, doc: "x with its axes permuted: axis i of the result is axis perm[i] of x.",
		constraints: []string{"perm holds every axis of x once"},
		newAttrs:    func() ir.Attrs { return &TransposeAttrs{} },
		shape: func(n *ir.Node) (ir.Shape, error) {
			perm, x := n.Attrs().(*TransposeAttrs).Perm, n.Input(0).Shape()
			if len(perm) != len(x) {
				return nil, ir.Attrf("perm has %d entries, not one for each of %d axes", len(perm), len(x))
			}
			if err := checkAxes(perm, len(x)); err != nil {
				return nil, err
			}
			return pick(x, perm), nil
		},
		source: func(n *ir.Node, at, from []int) []int {
			for i, a := range n.Attrs().(*TransposeAttrs).Perm {
				from[a] = at[i]
			}
			return from
		},
		index: func(n *ir.Node, at ir.Index) ir.Index {
			return pick(at, inverse(n.Attrs().(*TransposeAttrs).Perm))
		},
		transpose: func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value {
			return Transpose(b, ct, inverse(n.Attrs().(*TransposeAttrs).Perm)...)
		},
		batch: func(b *ir.Builder, n *ir.Node, x ir.Value, _ ir.Dim) ir.Value {
			return Transpose(b, x, slices.Insert(shifted(n.Attrs().(*TransposeAttrs).Perm, 0), 0, 0)...)
		},
	})
}

// inverse returns the inverse permutation.
func inverse(perm []int) []int {
	out := make([]int, len(perm))
	for i, a := range perm {
		out[a] = i
	}
	return out
}

// SwapAxes returns x with axes i and j swapped.
func SwapAxes(b *ir.Builder, x ir.Value, i, j int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	ends := fromFront([]int{i, j}, x.Rank())
	for _, end := range ends {
		if err := checkAxes([]int{end}, x.Rank()); err != nil {
			b.Failf(OpTranspose, []ir.Value{x}, err)
			return ir.Value{}
		}
	}
	perm := counting(0, x.Rank())
	perm[ends[0]], perm[ends[1]] = perm[ends[1]], perm[ends[0]]
	return Transpose(b, x, perm...)
}

// Transpose returns x with its axes permuted: axis i of the result is axis perm[i] of x.
// With no perm the order is reversed.
func Transpose(b *ir.Builder, x ir.Value, perm ...int) ir.Value {
	p := fromFront(perm, x.Rank())
	if len(perm) == 0 {
		p = counting(0, x.Rank())
		slices.Reverse(p)
	}
	if x.Valid() && slices.Equal(p, counting(0, x.Rank())) {
		return x
	}
	return b.Add1(OpTranspose, &TransposeAttrs{p}, x)
}

// MoveAxis returns x with axis from moved to position to; the others keep their order.
func MoveAxis(b *ir.Builder, x ir.Value, from, to int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	ends := fromFront([]int{from, to}, x.Rank())
	for _, end := range ends {
		if err := checkAxes([]int{end}, x.Rank()); err != nil {
			b.Failf(OpTranspose, []ir.Value{x}, err)
			return ir.Value{}
		}
	}
	if x.Rank() == 1 {
		return x
	}
	perm := slices.Insert(otherAxes(x.Rank(), ends[:1]), ends[1], ends[0])
	return Transpose(b, x, perm...)
}
