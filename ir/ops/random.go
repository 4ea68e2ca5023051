package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
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
		Eval:     evalRandomBits,
		NoGrad:   "integer result", NoTranspose: "not linear: integers",
		Batch: batchRandomBits,
		Lower: &ir.MapLowering{Element: randomBitsElement},
	})
	constraints := numbered("key is u32[2]", "the element type is a float type", generatorText)
	define(&ir.Def{
		Op: OpUniform,
		Doc: "Uniform numbers in [0, 1): multiples of 2^−m, for the m bits that the significand of the type " +
			"stores (52 for f64, from both words of a block).",
		Constraints: constraints, Operands: []string{"key"}, NewAttrs: newRandomFloatAttrs,
		Infer: inferRandomFloat,
		JVP:   flatJVP, NoTranspose: notLinear,
		Body: uniformBody,
	})
	define(&ir.Def{
		Op: OpNormal,
		Doc: "Standard normal numbers, √2·erfinv(u) for a uniform u in (−1, 1): those of jax.random.normal " +
			"up to the rounding of erfinv. In f32 they are bounded by 5.5. They are computed in f32 for narrower types.",
		Constraints: constraints, Operands: []string{"key"}, NewAttrs: newRandomFloatAttrs,
		Infer: inferRandomFloat,
		JVP:   flatJVP, NoTranspose: notLinear,
		Body: normalBody,
	})
	define(&ir.Def{
		Op:          OpBernoulli,
		Doc:         "True with probability p: where a uniform number in [0, 1) is below p.",
		Constraints: numbered("key is u32[2]", "the probability is f32 and of rank 0", generatorText),
		Operands:    []string{"key", "probability"},
		NewAttrs:    func() ir.Attrs { return &RandomAttrs{Generator: Threefry} },
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			if p := n.Input(1).Type(); !p.Equal(ir.TypeOf(ir.F32)) {
				return nil, ir.DTypef("p is %s, not f32[]", p)
			}
			return n.Attrs().(*RandomAttrs).types(ir.Bool, n.Input(0))
		},
		JVP: flatJVP, NoTranspose: notLinear,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a := n.Attrs().(*RandomAttrs)
			return []ir.Value{Lt(b, a.Generator.Uniform(b, in[0], ir.F32, a.Shape...), in[1])}
		},
	})
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
		return nil, ir.Attrf("pairs and halves are both true, of which one can be")
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
