package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Random numbers from counters.
const (
	OpRandomBits ir.Op = "random_bits"
	OpUniform    ir.Op = "random_uniform"
	OpNormal     ir.Op = "random_normal"
	OpBernoulli  ir.Op = "random_bernoulli"
)

// RandomAttrs are the shape of what is drawn for each key.
type RandomAttrs struct{ Shape []ir.Dim }

// Visit shows the attributes.
func (a *RandomAttrs) Visit(v ir.AttrVisitor) { v.Dims("shape", &a.Shape) }

// RandomBitsAttrs say, beyond the shape, whether both words of each block are
// wanted, or each block serves four elements with 16 bits each.
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

// RandomFloatAttrs say, beyond the shape, which float type is drawn.
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
		Doc: "Uniform 32-bit words: the element at place i of the shape, in row-major order, is the exclusive or of the " +
			"two words of Threefry-2x32 with 20 rounds (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3) " +
			"for the key and the counter i + offset, high word first. With pairs both words are given, along a last axis " +
			"of size 2. The words depend on nothing else, so neither tiling nor device changes them; they are those " +
			"of jax.random.bits with jax_threefry_partitionable, and the pairs are the keys of its split and fold_in. " +
			"With halves a block serves four elements: that at place i is 16 bits, as a number below 65536, of the block " +
			"for the counter i/4 + offset: for i mod 4 of 0 to 3 the low and the high half of the first word, then of the second.",
		Constraints: numbered(
			"key is u32, its last axis has size 2; the axes before it are keys of their own, each of which counts from 0",
			"offset, which may be left out, is u32 and has the axes of the keys",
			"the result has the axes of the keys, then those of shape, then the one of the pairs",
			"there are no halves of pairs",
		),
		Operands: []string{"key", "offset"}, Optional: 1,
		NewAttrs: func() ir.Attrs { return &RandomBitsAttrs{} },
		Infer:    inferRandomBits,
		Eval:     evalRandomBits,
		NoGrad:   "integer result", NoTranspose: "not linear: integers",
		Batch:   batchRandomBits,
		Lower:   &ir.MapLowering{Element: randomBitsElement},
		Samples: randomBitsSamples,
	})
	newAttrs := func() ir.Attrs { return &RandomFloatAttrs{DType: ir.F32} }
	constraints := numbered("key is u32[2]", "the element type is a float type")
	define(&ir.Def{
		Op: OpUniform,
		Doc: "Uniform numbers in [0, 1): multiples of 2 to the power -m, for the m bits that the significand of the type " +
			"stores (52 for f64, from both words of a block).",
		Constraints: constraints, Operands: []string{"key"}, NewAttrs: newAttrs,
		Infer: inferRandomFloat,
		JVP:   flatJVP, NoTranspose: notLinear,
		Body:    uniformBody,
		Samples: randomFloatSamples,
	})
	define(&ir.Def{
		Op: OpNormal,
		Doc: "Standard normal numbers by the method of Box and Muller, √(-2·log u)·cos(2π·v), with u in (0, 1] and v in " +
			"[0, 1) from the upper 24 bits of the two words of a block. None is further than 5.8 from zero. They are " +
			"computed in f32 for narrower types.",
		Constraints: constraints, Operands: []string{"key"}, NewAttrs: newAttrs,
		Infer: inferRandomFloat,
		JVP:   flatJVP, NoTranspose: notLinear,
		Body:    normalBody,
		Samples: randomFloatSamples,
	})
	define(&ir.Def{
		Op:          OpBernoulli,
		Doc:         "True with a probability: where a uniform number in [0, 1) is below it.",
		Constraints: numbered("key is u32[2]", "the probability is f32 and of rank 0"),
		Operands:    []string{"key", "probability"},
		NewAttrs:    func() ir.Attrs { return &RandomAttrs{} },
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			if p := n.Input(1).Type(); !p.Equal(ir.TypeOf(ir.F32)) {
				return nil, ir.DTypef("the probability is %s, not f32[]", p)
			}
			return []ir.Type{{DType: ir.Bool, Shape: n.Attrs().(*RandomAttrs).Shape}}, checkKey(n.Input(0).Type())
		},
		JVP: flatJVP, NoTranspose: notLinear,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			return []ir.Value{Lt(b, Uniform(b, in[0], ir.F32, n.Attrs().(*RandomAttrs).Shape...), in[1])}
		},
		Samples: bernoulliSamples,
	})
}

// RandomBits returns random words for a key, u32[2].
func RandomBits(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return b.Add1(OpRandomBits, &RandomBitsAttrs{RandomAttrs: RandomAttrs{shape}}, key)
}

// SplitKey returns n keys made of one, u32[n,2]. They are as independent of each
// other as of the key, which should not be used again.
func SplitKey(b *ir.Builder, key ir.Value, n ir.Dim) ir.Value {
	return b.Add1(OpRandomBits, &RandomBitsAttrs{RandomAttrs: RandomAttrs{[]ir.Dim{n}}, Pairs: true}, key)
}

// FoldIn returns a key made of one and a number, u32[]: a step count or the
// place of a layer, say.
func FoldIn(b *ir.Builder, key, number ir.Value) ir.Value {
	return b.Add1(OpRandomBits, &RandomBitsAttrs{Pairs: true}, key, number)
}

// Key returns the key of a seed: its upper and lower 32 bits.
func Key(b *ir.Builder, seed uint64) ir.Value {
	return Literal(b, ir.Ints(ir.U32, []int64{int64(seed >> 32), int64(seed & math.MaxUint32)}, 2))
}

// Uniform returns uniform numbers in [0, 1).
func Uniform(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpUniform, &RandomFloatAttrs{RandomAttrs{shape}, d}, key)
}

// Normal returns standard normal numbers.
func Normal(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpNormal, &RandomFloatAttrs{RandomAttrs{shape}, d}, key)
}

// Bernoulli returns booleans that are true with the probability p, f32[].
func Bernoulli(b *ir.Builder, key, p ir.Value, shape ...ir.Dim) ir.Value {
	return b.Add1(OpBernoulli, &RandomAttrs{shape}, key, p)
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
	return []ir.Type{{DType: a.DType, Shape: a.Shape}}, checkKey(n.Input(0).Type())
}

func inferRandomBits(n *ir.Node) ([]ir.Type, error) {
	a, key := n.Attrs().(*RandomBitsAttrs), n.Input(0).Type()
	if a.Pairs && a.Halves {
		return nil, ir.Attrf("both pairs and halves are asked for")
	}
	last := len(key.Shape) - 1
	if key.DType != ir.U32 || last < 0 || !key.Shape[last].Is(2) {
		return nil, ir.DTypef("the key is %s, not u32 with a last axis of size 2", key)
	}
	if len(n.Inputs()) > 1 {
		if want := (ir.Type{DType: ir.U32, Shape: key.Shape[:last]}); !n.Input(1).Type().Equal(want) {
			return nil, ir.Shapef("the offset is %s, not %s", n.Input(1).Type(), want)
		}
	}
	shape := slices.Concat(key.Shape[:last], a.Shape)
	if a.Pairs {
		shape = append(shape, ir.N(2))
	}
	return []ir.Type{{DType: ir.U32, Shape: shape}}, nil
}

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
		x1 = add(add(x1, keys[(i+2)%3]), constant(uint32(i+1)))
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
	word := func(i int) scalar.Expr { return load(0, slices.Concat(key, ir.Index{int32Const(i)})) }
	constant := func(c uint32) scalar.Expr { return scalar.ConstI(ir.U32, int64(c)) }
	number := flatten(sizes(a.Shape), place)
	quarter := scalar.Mod(number, int32Const(4))
	if a.Halves {
		number = scalar.FloorDiv(number, int32Const(4))
	}
	low, high := scalar.Convert(number, ir.U32), constant(0)
	if len(n.Inputs()) > 1 {
		sum := scalar.Add(low, load(1, key))
		high = scalar.Convert(scalar.Lt(sum, low), ir.U32) // the carry
		low = sum
	}
	x, y := threefry(word(0), word(1), high, low, scalar.Add, scalar.Xor,
		func(x scalar.Expr, by int) scalar.Expr {
			return scalar.Or(scalar.Shl(x, constant(uint32(by))), scalar.Shr(x, constant(uint32(32-by))))
		}, constant)
	switch {
	case a.Halves:
		word := scalar.Select(scalar.Lt(quarter, int32Const(2)), x, y)
		low := scalar.Eq(scalar.Mod(quarter, int32Const(2)), int32Const(0))
		return scalar.Select(low, scalar.And(word, constant(0xffff)), scalar.Shr(word, constant(16)))
	case !a.Pairs:
		return scalar.Xor(x, y)
	}
	second := scalar.Ne(at[len(at)-1], int32Const(0))
	return scalar.Select(second, y, x)
}

// uniformBody takes as many of the upper bits as the significand stores, which
// makes the product exact.
func uniformBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	a := n.Attrs().(*RandomFloatAttrs)
	if a.DType == ir.F64 {
		x, y := wordPair(b, in[0], a.Shape, 0, 12)
		high := Mul(b, Convert(b, x, ir.F64), Const(b, ir.F64, 0x1p-32))
		return []ir.Value{Add(b, high, Mul(b, Convert(b, y, ir.F64), Const(b, ir.F64, 0x1p-52)))}
	}
	stored := -math.Ilogb(a.DType.Epsilon())
	words := upperBits(b, RandomBits(b, in[0], a.Shape...), 32-stored)
	scaled := Mul(b, Convert(b, words, ir.F32), Const(b, ir.F32, math.Ldexp(1, -stored)))
	return []ir.Value{Convert(b, scaled, a.DType)}
}

func normalBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	a := n.Attrs().(*RandomFloatAttrs)
	d := sumType(a.DType)
	x, y := wordPair(b, in[0], a.Shape, 8, 8)
	unit := Const(b, d, 0x1p-24)
	u := Mul(b, Add(b, Convert(b, x, d), Const(b, d, 1)), unit)
	v := Mul(b, Convert(b, y, d), Const(b, d, 0x1p-24*2*math.Pi))
	radius := Sqrt(b, Mul(b, Log(b, u), Const(b, d, -2)))
	return []ir.Value{Convert(b, Mul(b, radius, Cos(b, v)), a.DType)}
}

// wordPair returns the two words of the block of each element, shifted down.
func wordPair(b *ir.Builder, key ir.Value, shape []ir.Dim, dropFirst, dropSecond int) (x, y ir.Value) {
	pairs := b.Add1(OpRandomBits, &RandomBitsAttrs{RandomAttrs: RandomAttrs{shape}, Pairs: true}, key)
	word := func(i, drop int) ir.Value {
		return upperBits(b, Squeeze(b, SliceAxis(b, pairs, -1, ir.N(i), ir.N(1)), -1), drop)
	}
	return word(0, dropFirst), word(1, dropSecond)
}

// upperBits returns words without their lowest bits.
func upperBits(b *ir.Builder, words ir.Value, drop int) ir.Value {
	if drop == 0 {
		return words
	}
	return ShiftRight(b, words, Const(b, ir.U32, float64(drop)))
}

func randomBitsSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	key := ir.Ints(ir.U32, []int64{0x13198a2e, 0x03707344})
	keys := ir.Ints(ir.U32, []int64{0, 42, 1, 2, math.MaxUint32, 7}, 3, 2)
	sample := func(name string, pairs bool, shape []int, in ...*ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &RandomBitsAttrs{RandomAttrs{ir.Dims(shape...)}, pairs, false}, In: in}
	}
	return []ir.Sample{
		sample("matrix", false, []int{5, 67}, key),
		sample("pairs", true, []int{3, 4}, key),
		sample("scalar", false, nil, key),
		sample("empty", false, []int{0, 2}, key),
		sample("offset that carries", false, []int{4}, key, ir.Int(ir.U32, math.MaxUint32-1)),
		sample("many keys", true, []int{3}, keys, ir.Ints(ir.U32, []int64{0, 5, math.MaxUint32})),
		{Name: "halves", Attrs: &RandomBitsAttrs{RandomAttrs{ir.Dims(3, 7)}, false, true}, In: []*ir.Array{key}},
	}
}

func randomFloatSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	var out []ir.Sample
	for _, d := range typesIn(floats) {
		out = append(out, ir.Sample{
			Name: d.String(), Attrs: &RandomFloatAttrs{RandomAttrs{ir.Dims(3, 5)}, d},
			In: []*ir.Array{ir.Ints(ir.U32, []int64{3, 1415926535})},
		})
	}
	return out
}

func bernoulliSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	key := ir.Ints(ir.U32, []int64{2, 718281828})
	sample := func(name string, p float64) ir.Sample {
		return ir.Sample{
			Name: name, Attrs: &RandomAttrs{ir.Dims(7, 3)}, In: []*ir.Array{key, ir.Float(ir.F32, p)},
			NoGrad: "the result is a boolean",
		}
	}
	return []ir.Sample{sample("never", 0), sample("sometimes", 0.3), sample("always", 1)}
}
