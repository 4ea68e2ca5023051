package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Counter-based random numbers.
const (
	OpRandomBits ir.Op = "random_bits"
	OpUniform    ir.Op = "random_uniform"
	OpNormal     ir.Op = "random_normal"
	OpBernoulli  ir.Op = "random_bernoulli"
)

// RandomAttrs hold the shape drawn for each key, and the generator.
type RandomAttrs struct {
	Shape     []ir.Dim
	Generator Generator // Threefry where empty
}

// Visit shows the attributes.
func (a *RandomAttrs) Visit(v ir.AttrVisitor) {
	v.Dims("shape", &a.Shape)
	v.Text("generator", (*string)(&a.Generator))
}

// RandomBitsAttrs add Pairs, for both words of each block, and Halves, for four 16-bit
// elements of each block.
type RandomBitsAttrs struct {
	RandomAttrs
	Pairs  bool
	Halves bool
}

// Visit shows the attributes.
func (a *RandomBitsAttrs) Visit(v ir.AttrVisitor) {
	a.RandomAttrs.Visit(v)
	v.Bool("pairs", &a.Pairs)
	v.Bool("halves", &a.Halves)
}

// serves returns the number of elements of a block.
func (a *RandomBitsAttrs) serves() int {
	switch {
	case a.Pairs:
		return 1
	case a.Halves:
		return 4
	}
	return a.Generator.serves()
}

// RandomFloatAttrs add the float type.
type RandomFloatAttrs struct {
	RandomAttrs
	DType ir.DType
}

// Visit shows the attributes.
func (a *RandomFloatAttrs) Visit(v ir.AttrVisitor) {
	a.RandomAttrs.Visit(v)
	v.DType("dtype", &a.DType)
}

func init() {
	define(&ir.Def{
		Op: OpRandomBits,
		Doc: "Uniform 32-bit words: element i of the shape, in row-major order, is the exclusive or of the " +
			"two words of Threefry-2x32 with 20 rounds (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3) " +
			"for the key and the counter i + offset, high word first. With pairs both words are returned, along a last axis " +
			"of size 2. The words depend on nothing else, so neither tiling nor device changes them; they are those " +
			"of jax.random.bits with jax_threefry_partitionable, and the pairs are the keys of its split and fold_in. " +
			"With halves a block serves four elements: element i is 16 bits, as a number below 65536, of the block " +
			"for the counter i/4 + offset: for i mod 4 of 0 to 3 the low and the high half of the first word, then of the second. " +
			"The generator threefry_both has a block for two elements, the words of the counter i/2 + offset: the words of pairs, flattened, for half " +
			"the arithmetic on a GPU; threefry_both_13 also has blocks of 13 rounds.",
		Constraints: numbered(
			"key is u32[..., 2]; the leading axes are independent keys, each with a counter from 0",
			"offset, which may be left out, is u32 and has the axes of the keys",
			"the result has the axes of the keys, those of shape, and with pairs one more of size 2",
			"pairs and halves exclude each other",
			generatorText,
		),
		Operands: []string{"key", "offset"}, Optional: 1,
		NewAttrs: func() ir.Attrs { return &RandomBitsAttrs{RandomAttrs: RandomAttrs{Generator: Threefry}} },
		Infer:    inferRandomBits,
		Eval:     evalResult(evalRandomBits),
		NoGrad:   "integer result",
		Batch:    batchFirst, // each member draws by its own key
		Lower:    &ir.MapLowering{Element: randomBitsElement},
	})
	constraints := numbered("key is u32[2]", "the element type is a float type", generatorText)
	define(&ir.Def{
		Op: OpUniform,
		Doc: "Uniform numbers in [0, 1): multiples of 2^−m, for the m bits that the significand of the type " +
			"stores (52 for f64, from both words of a block).",
		Constraints: constraints, Operands: []string{"key"}, NewAttrs: newRandomFloatAttrs,
		Infer: inferRandomFloat,
		JVP:   flatJVP,
		Body:  uniformBody,
	})
	define(&ir.Def{
		Op: OpNormal,
		Doc: "Standard normal numbers, √2·erfinv(u) for a uniform u in (−1, 1): those of jax.random.normal " +
			"up to the rounding of erfinv. In f32 they are bounded by 5.5. They are computed in f32 for narrower types.",
		Constraints: constraints, Operands: []string{"key"}, NewAttrs: newRandomFloatAttrs,
		Infer: inferRandomFloat,
		JVP:   flatJVP,
		Body:  normalBody,
	})
	define(&ir.Def{
		Op:          OpBernoulli,
		Doc:         "True with probability p: where a uniform number in [0, 1) is below p.",
		Constraints: numbered("key is u32[2]", "the probability is f32 and of rank 0", generatorText),
		Operands:    []string{"key", "probability"},
		NewAttrs:    func() ir.Attrs { return &RandomAttrs{Generator: Threefry} },
		Infer:       inferBernoulli,
		JVP:         flatJVP,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a := n.Attrs().(*RandomAttrs)
			return []ir.Value{Lt(b, a.Generator.Uniform(b, in[0], ir.F32, a.Shape...), in[1])}
		},
	})
}

func inferBernoulli(n *ir.Node) ([]ir.Type, error) {
	if p := n.Input(1).Type(); !p.Equal(ir.TypeOf(ir.F32)) {
		return nil, ir.DTypef("p is %s, not f32[]", p)
	}
	return n.Attrs().(*RandomAttrs).types(ir.Bool, n.Input(0))
}

// RandomBits returns uniform 32-bit words, u32 of the given shape, for a key, u32[2]. The
// result is a function of the key: jax.random.bits with jax_threefry_partitionable.
func RandomBits(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return Threefry.Bits(b, key, shape...)
}

// SplitKey returns n independent keys derived from key, u32[n, 2]. key should not be used
// again.
func SplitKey(b *ir.Builder, key ir.Value, n ir.Dim) ir.Value {
	return b.Add1(OpRandomBits, &RandomBitsAttrs{RandomAttrs: RandomAttrs{[]ir.Dim{n}, Threefry}, Pairs: true}, key)
}

// FoldIn returns a key derived from key and a number, u32[]: a step count or a layer
// index, for example.
func FoldIn(b *ir.Builder, key, number ir.Value) ir.Value {
	return b.Add1(OpRandomBits, &RandomBitsAttrs{RandomAttrs: RandomAttrs{Generator: Threefry}, Pairs: true}, key, number)
}

// Key returns the key of a seed: its upper and lower 32 bits.
func Key(b *ir.Builder, seed uint64) ir.Value {
	return Literal(b, ir.Ints(ir.U32, []int64{int64(seed >> 32), int64(seed & math.MaxUint32)}, 2))
}

// Uniform returns uniform numbers in [0, 1) of float type d and the given shape. The
// result is a function of the key, u32[2].
func Uniform(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return Threefry.Uniform(b, key, d, shape...)
}

// Normal returns standard normal numbers of float type d and the given shape. The result
// is a function of the key, u32[2].
func Normal(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return Threefry.Normal(b, key, d, shape...)
}

// Bernoulli returns booleans of the given shape that are true with probability p, f32[].
func Bernoulli(b *ir.Builder, key, p ir.Value, shape ...ir.Dim) ir.Value {
	return Threefry.Bernoulli(b, key, p, shape...)
}

func checkKey(key ir.Type) error {
	if !key.Equal(ir.TypeOf(ir.U32, ir.N(2))) {
		return ir.DTypef("the key is %s, not u32[2]", key)
	}
	return nil
}

func inferRandomFloat(n *ir.Node) ([]ir.Type, error) {
	a := n.Attrs().(*RandomFloatAttrs)
	if err := floats.check(a.DType); err != nil {
		return nil, err
	}
	return a.types(a.DType, n.Input(0))
}

// types returns the type drawn for each key.
func (a *RandomAttrs) types(d ir.DType, key ir.Value) ([]ir.Type, error) {
	if err := checkKey(key.Type()); err != nil {
		return nil, err
	}
	return []ir.Type{{DType: d, Shape: a.Shape}}, a.Generator.check()
}

// newRandomFloatAttrs returns the defaults of ops that draw floats.
func newRandomFloatAttrs() ir.Attrs {
	return &RandomFloatAttrs{RandomAttrs{Generator: Threefry}, ir.F32}
}

func inferRandomBits(n *ir.Node) ([]ir.Type, error) {
	a, key := n.Attrs().(*RandomBitsAttrs), n.Input(0).Type()
	if a.Pairs && a.Halves {
		return nil, ir.Attrf("pairs and halves are both true; one of them must be false")
	}
	if err := a.Generator.check(); err != nil {
		return nil, err
	}
	last := len(key.Shape) - 1
	if key.DType != ir.U32 || last < 0 || !key.Shape[last].Is(2) {
		return nil, ir.DTypef("the key is %s, not u32 with a last axis of size 2", key)
	}
	if len(n.Inputs()) > 1 {
		offset, want := n.Input(1).Type(), ir.Type{DType: ir.U32, Shape: key.Shape[:last]}
		if offset.DType != want.DType {
			return nil, ir.DTypef("the offset, or number, is %s, not %s", offset, want)
		}
		if !offset.Equal(want) {
			return nil, ir.Shapef("the offset, or number, is %s, not %s", offset, want)
		}
	}
	shape := slices.Concat(key.Shape[:last], a.Shape)
	if a.Pairs {
		shape = append(shape, ir.N(2))
	}
	return []ir.Type{{DType: ir.U32, Shape: shape}}, nil
}

// uniformBody takes the upper bits that the significand stores, so that scaling is exact.
func uniformBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	a := n.Attrs().(*RandomFloatAttrs)
	if a.DType == ir.F64 {
		x, y := wordPair(b, in[0], a.RandomAttrs, 0, 12)
		high := Mul(b, Convert(b, x, ir.F64), Const(b, ir.F64, 0x1p-32))
		return []ir.Value{Add(b, high, Mul(b, Convert(b, y, ir.F64), Const(b, ir.F64, 0x1p-52)))}
	}
	stored := -math.Ilogb(a.DType.Epsilon())
	words := upperBits(b, a.Generator.Bits(b, in[0], a.Shape...), 32-stored)
	scaled := Mul(b, Convert(b, words, ir.F32), Const(b, ir.F32, math.Ldexp(1, -stored)))
	return []ir.Value{Convert(b, scaled, a.DType)}
}

func normalBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	a := n.Attrs().(*RandomFloatAttrs)
	u := a.Generator.Uniform(b, in[0], sumType(a.DType), a.Shape...)
	return []ir.Value{Convert(b, normalOf(b, u, -1, 1), a.DType)}
}

// normalOf returns √2·erfinv(low + (high − low)·u). −1 is replaced by the next number,
// where erfinv is finite.
func normalOf(b *ir.Builder, u ir.Value, low, high float64) ir.Value {
	low = max(low, u.DType().Epsilon()/2-1)
	p := Add(b, Mul(b, u, ConstLike(b, u, high-low)), ConstLike(b, u, low))
	return Mul(b, Erfinv(b, p), ConstLike(b, u, math.Sqrt2))
}

// wordPair returns the two words of each element's block, shifted right.
func wordPair(b *ir.Builder, key ir.Value, a RandomAttrs, dropFirst, dropSecond int) (x, y ir.Value) {
	pairs := b.Add1(OpRandomBits, &RandomBitsAttrs{RandomAttrs: a, Pairs: true}, key)
	word := func(i, drop int) ir.Value {
		return upperBits(b, Squeeze(b, SliceAxis(b, pairs, -1, ir.N(i), ir.N(1)), -1), drop)
	}
	return word(0, dropFirst), word(1, dropSecond)
}

// upperBits shifts words right by drop bits.
func upperBits(b *ir.Builder, words ir.Value, drop int) ir.Value {
	if drop == 0 {
		return words
	}
	return ShiftRight(b, words, Const(b, ir.U32, float64(drop)))
}

// rotations are the rotation distances of Threefry-2x32, which alternate every four
// rounds.
var rotations = [2][4]int{{13, 15, 26, 6}, {17, 29, 16, 24}}

// parity is the constant of the key schedule.
const parity = 0x1bd11bda

// wordArithmetic is arithmetic of words of 32 bits, which wraps: of the host's, or of expressions.
type wordArithmetic[T any] struct {
	add, xor func(x, y T) T
	rotate   func(x T, by int) T // to the left
	constant func(uint32) T
}

// threefry returns the two words of Threefry-2x32 for a key and a counter, whose high word is first.
func (w wordArithmetic[T]) threefry(rounds int, key, counter [2]T) (T, T) {
	keys := [3]T{key[0], key[1], w.xor(w.xor(key[0], key[1]), w.constant(parity))}
	x0, x1 := w.add(counter[0], keys[0]), w.add(counter[1], keys[1])
	for i := range rounds {
		x0 = w.add(x0, x1)
		x1 = w.xor(w.rotate(x1, rotations[i/4%2][i%4]), x0)
		if n := i/4 + 1; i%4 == 3 {
			x0 = w.add(x0, keys[n%3])
			x1 = w.add(x1, w.add(keys[(n+1)%3], w.constant(uint32(n)))) // loop-invariant: it does not depend on the counter
		}
	}
	return x0, x1
}

// threefryWords returns the two words for a key and a counter.
func threefryWords(rounds int, k0, k1 uint32, counter uint64) (uint32, uint32) {
	return hostWords.threefry(rounds, [2]uint32{k0, k1}, [2]uint32{uint32(counter >> 32), uint32(counter)})
}

var hostWords = wordArithmetic[uint32]{
	add:      func(x, y uint32) uint32 { return x + y },
	xor:      func(x, y uint32) uint32 { return x ^ y },
	rotate:   func(x uint32, by int) uint32 { return x<<by | x>>(32-by) },
	constant: func(c uint32) uint32 { return c },
}

func evalRandomBits(n *ir.Node, in []*ir.Array, out *ir.Array) {
	a := n.Attrs().(*RandomBitsAttrs)
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
	words := wordArithmetic[scalar.Expr]{add: scalar.Add, xor: scalar.Xor, constant: constant, rotate: func(x scalar.Expr, by int) scalar.Expr {
		return scalar.Or(scalar.Shl(x, constant(uint32(by))), scalar.Shr(x, constant(uint32(32-by))))
	}}
	x, y := words.threefry(a.Generator.rounds(), [2]scalar.Expr{word(0), word(1)}, [2]scalar.Expr{high, low})
	switch {
	case a.Pairs:
		return scalar.Select(scalar.Ne(at[len(at)-1], loop.Int(0)), y, x)
	case a.serves() == 4:
		word := scalar.Select(scalar.Lt(part, loop.Int(2)), x, y)
		low := scalar.Eq(rest(part, 2), loop.Int(0))
		return scalar.Select(low, scalar.And(word, constant(0xffff)), scalar.Shr(word, constant(16)))
	case a.serves() == 2:
		return scalar.Select(scalar.Ne(part, loop.Int(0)), y, x)
	}
	return scalar.Xor(x, y)
}

// Generator names a scheme that derives random words from blocks of Threefry-2x32, which
// map a key and a counter to two words (Salmon et al., Parallel Random Numbers: As Easy as
// 1, 2, 3).
type Generator string

// The generators. A number depends on the key and the element's index alone, not on the
// device or the tiling.
const (
	// Threefry computes a block of 20 rounds for each element and takes the exclusive or
	// of its words: JAX's numbers with jax_threefry_partitionable.
	Threefry Generator = "threefry"
	// ThreefryBoth computes a block for two elements, which take one word each: of equal
	// quality, and half the arithmetic where a thread has several elements, as on a GPU.
	ThreefryBoth Generator = "threefry_both"
	// ThreefryBoth13 is ThreefryBoth with 13 rounds, the fewest that pass all statistical
	// tests according to Random123's documentation: it trades the safety margin for speed.
	ThreefryBoth13 Generator = "threefry_both_13"
)

// generatorText is the constraint on the attribute.
const generatorText = `generator is "threefry" (JAX's numbers, taken where none is given), "threefry_both" or "threefry_both_13"`

// check reports an error for an unknown generator.
func (g Generator) check() error {
	switch g {
	case "", Threefry, ThreefryBoth, ThreefryBoth13:
		return nil
	}
	return ir.Attrf("generator is %q, not one of %q, %q and %q", g, Threefry, ThreefryBoth, ThreefryBoth13)
}

// rounds returns the number of rounds of a block.
func (g Generator) rounds() int {
	if g == ThreefryBoth13 {
		return 13
	}
	return 20
}

// serves returns the number of 32-bit elements of a block.
func (g Generator) serves() int {
	if g == ThreefryBoth || g == ThreefryBoth13 {
		return 2
	}
	return 1
}

// Bits is [RandomBits] by the generator.
func (g Generator) Bits(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return b.Add1(OpRandomBits, &RandomBitsAttrs{RandomAttrs: RandomAttrs{shape, g}}, key)
}

// Uniform is [Uniform] by the generator.
func (g Generator) Uniform(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpUniform, &RandomFloatAttrs{RandomAttrs{shape, g}, d}, key)
}

// Normal is [Normal] by the generator.
func (g Generator) Normal(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpNormal, &RandomFloatAttrs{RandomAttrs{shape, g}, d}, key)
}

// Bernoulli is [Bernoulli] by the generator.
func (g Generator) Bernoulli(b *ir.Builder, key, p ir.Value, shape ...ir.Dim) ir.Value {
	return b.Add1(OpBernoulli, &RandomAttrs{shape, g}, key, p)
}

// Gumbel is [Gumbel] by the generator.
func (g Generator) Gumbel(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpGumbel, &RandomFloatAttrs{RandomAttrs{shape, g}, d}, key)
}

// Exponential is [Exponential] by the generator.
func (g Generator) Exponential(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpExponential, &RandomFloatAttrs{RandomAttrs{shape, g}, d}, key)
}

// TruncatedNormal is [TruncatedNormal] by the generator.
func (g Generator) TruncatedNormal(b *ir.Builder, key ir.Value, low, high float64, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpTruncatedNormal, &TruncatedAttrs{RandomFloatAttrs{RandomAttrs{shape, g}, d}, low, high}, key)
}
