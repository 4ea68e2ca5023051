package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// rotations are the rotation distances of Threefry-2x32, which alternate every four
// rounds.
var rotations = [2][4]int{{13, 15, 26, 6}, {17, 29, 16, 24}}

// parity is the constant of the key schedule.
const parity = 0x1bd11bda

// threefry computes Threefry-2x32 for host words and for expressions.
func threefry[T any](rounds int, k0, k1, x0, x1 T, add, xor func(x, y T) T, rotate func(x T, by int) T, constant func(uint32) T) (T, T) {
	keys := [3]T{k0, k1, xor(xor(k0, k1), constant(parity))}
	x0, x1 = add(x0, keys[0]), add(x1, keys[1])
	for i := range rounds {
		x0 = add(x0, x1)
		x1 = xor(rotate(x1, rotations[i/4%2][i%4]), x0)
		if n := i/4 + 1; i%4 == 3 {
			x0 = add(x0, keys[n%3])
			x1 = add(x1, add(keys[(n+1)%3], constant(uint32(n)))) // loop-invariant: it does not depend on the counter
		}
	}
	return x0, x1
}

// threefryWords returns the two words for a key and a counter.
func threefryWords(rounds int, k0, k1 uint32, counter uint64) (uint32, uint32) {
	return threefry(rounds, k0, k1, uint32(counter>>32), uint32(counter),
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
	rounds, serves := a.Generator.rounds(), uint64(a.serves())
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
			at := k*each + i
			x, y := threefryWords(rounds, uint32(in[0].I[2*k]), uint32(in[0].I[2*k+1]), offset+uint64(i)/serves)
			switch {
			case a.Pairs:
				out.I[2*at], out.I[2*at+1] = int64(x), int64(y)
			case serves == 4:
				out.I[at] = int64([4]uint32{x & 0xffff, x >> 16, y & 0xffff, y >> 16}[i%4])
			case serves == 2:
				out.I[at] = int64([2]uint32{x, y}[i%2])
			default:
				out.I[at] = int64(x ^ y)
			}
		}
	}
	return []*ir.Array{out}, nil
}

// batchRandomBits gives every operand a leading batch axis: each member draws by its own
// key.
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
	number, serves := flatten(sizes(a.Shape), place), loop.Int(a.serves())
	part, block := scalar.Mod(number, serves), scalar.FloorDiv(number, serves) // the element within its block, and the block
	low, high := scalar.Convert(block, ir.U32), constant(0)
	if block.Type == ir.I64 {
		high = scalar.Convert(scalar.Shr(block, scalar.ConstI(ir.I64, 32)), ir.U32)
	}
	if len(n.Inputs()) > 1 {
		sum := scalar.Add(low, load(1, key))
		high = scalar.Add(high, scalar.Convert(scalar.Lt(sum, low), ir.U32)) // the carry
		low = sum
	}
	x, y := threefry(a.Generator.rounds(), word(0), word(1), high, low, scalar.Add, scalar.Xor,
		func(x scalar.Expr, by int) scalar.Expr {
			return scalar.Or(scalar.Shl(x, constant(uint32(by))), scalar.Shr(x, constant(uint32(32-by))))
		}, constant)
	switch {
	case a.Pairs:
		return scalar.Select(scalar.Ne(at[len(at)-1], loop.Int(0)), y, x)
	case a.serves() == 4:
		word := scalar.Select(scalar.Lt(part, loop.Int(2)), x, y)
		low := scalar.Eq(scalar.Mod(part, loop.Int(2)), loop.Int(0))
		return scalar.Select(low, scalar.And(word, constant(0xffff)), scalar.Shr(word, constant(16)))
	case a.serves() == 2:
		return scalar.Select(scalar.Ne(part, loop.Int(0)), y, x)
	}
	return scalar.Xor(x, y)
}
