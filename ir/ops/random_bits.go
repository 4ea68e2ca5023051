package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// rotations are those of Threefry-2x32: four rounds with one row, then four
// with the other.
var rotations = [2][4]int{{13, 15, 26, 6}, {17, 29, 16, 24}}

// parity is the constant that the key schedule mixes in.
const parity = 0x1bd11bda

// threefry is written once for host words and for expressions.
func threefry[T any](k0, k1, x0, x1 T, add, xor func(x, y T) T, rotate func(x T, by int) T, constant func(uint32) T) (T, T) {
	keys := [3]T{k0, k1, xor(xor(k0, k1), constant(parity))}
	x0, x1 = add(x0, keys[0]), add(x1, keys[1])
	for i := range 5 {
		for _, by := range rotations[i%2] {
			x0 = add(x0, x1)
			x1 = xor(rotate(x1, by), x0)
		}
		x0 = add(x0, keys[(i+1)%3])
		x1 = add(x1, add(keys[(i+2)%3], constant(uint32(i+1)))) // the same for all counters
	}
	return x0, x1
}

// threefryWords returns the two words for a key and a counter.
func threefryWords(k0, k1 uint32, counter uint64) (uint32, uint32) {
	return threefry(k0, k1, uint32(counter>>32), uint32(counter),
		func(x, y uint32) uint32 { return x + y },
		func(x, y uint32) uint32 { return x ^ y },
		func(x uint32, by int) uint32 { return x<<by | x>>(32-by) },
		func(c uint32) uint32 { return c })
}

func evalRandomBits(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a := n.Attrs().(*RandomBitsAttrs)
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	keys, each := in[0].Len()/2, 1
	for _, d := range sizes(a.Shape) {
		each *= d
	}
	for k := range keys {
		offset := uint64(0)
		if len(in) > 1 {
			offset = uint64(in[1].I[k])
		}
		for i := range each {
			counter, at := offset+uint64(i), k*each+i
			if a.Halves {
				counter = offset + uint64(i/4)
			}
			x, y := threefryWords(uint32(in[0].I[2*k]), uint32(in[0].I[2*k+1]), counter)
			switch {
			case a.Pairs:
				out.I[2*at], out.I[2*at+1] = int64(x), int64(y)
			case a.Halves:
				out.I[at] = int64([4]uint32{x & 0xffff, x >> 16, y & 0xffff, y >> 16}[i%4])
			default:
				out.I[at] = int64(x ^ y)
			}
		}
	}
	return []*ir.Array{out}, nil
}

// batchRandomBits gives every operand the batch axis in front: each member
// draws by its own key.
func batchRandomBits(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	front := make([]ir.Value, len(in))
	for i, v := range in {
		front[i] = BatchAt(b, v, axes[i], 0, size)
	}
	return b.Add(OpRandomBits, n.Attrs(), front...), []int{0}
}

func randomBitsElement(n *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
	a := n.Attrs().(*RandomBitsAttrs)
	keys := n.Input(0).Rank() - 1
	key, place := at[:keys], at[keys:keys+len(a.Shape)]
	word := func(i int) scalar.Expr { return load(0, slices.Concat(key, ir.Index{loop.Int(i)})) }
	constant := func(c uint32) scalar.Expr { return scalar.ConstI(ir.U32, int64(c)) }
	number := flatten(sizes(a.Shape), place)
	quarter := scalar.Mod(number, loop.Int(4))
	if a.Halves {
		number = scalar.FloorDiv(number, loop.Int(4))
	}
	low, high := scalar.Convert(number, ir.U32), constant(0)
	if number.Type == ir.I64 {
		high = scalar.Convert(scalar.Shr(number, scalar.ConstI(ir.I64, 32)), ir.U32)
	}
	if len(n.Inputs()) > 1 {
		sum := scalar.Add(low, load(1, key))
		high = scalar.Add(high, scalar.Convert(scalar.Lt(sum, low), ir.U32)) // the carry
		low = sum
	}
	x, y := threefry(word(0), word(1), high, low, scalar.Add, scalar.Xor,
		func(x scalar.Expr, by int) scalar.Expr {
			return scalar.Or(scalar.Shl(x, constant(uint32(by))), scalar.Shr(x, constant(uint32(32-by))))
		}, constant)
	switch {
	case a.Halves:
		word := scalar.Select(scalar.Lt(quarter, loop.Int(2)), x, y)
		low := scalar.Eq(scalar.Mod(quarter, loop.Int(2)), loop.Int(0))
		return scalar.Select(low, scalar.And(word, constant(0xffff)), scalar.Shr(word, constant(16)))
	case !a.Pairs:
		return scalar.Xor(x, y)
	}
	second := scalar.Ne(at[len(at)-1], loop.Int(0))
	return scalar.Select(second, y, x)
}
