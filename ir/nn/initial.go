package nn

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Constant sets all elements to x.
func Constant(x float64) ir.Initial { return rule("constant", x) }

// Normal draws from a normal distribution with the given mean and standard deviation.
func Normal(mean, deviation float64) ir.Initial { return rule("normal", mean, deviation) }

// Uniform draws from [low, high).
func Uniform(low, high float64) ir.Initial { return rule("uniform", low, high) }

// TruncatedNormal draws from a normal distribution with the given mean and standard deviation,
// restricted to [low, high], as torch.nn.init.trunc_normal_.
func TruncatedNormal(mean, deviation, low, high float64) ir.Initial {
	return rule("truncated_normal", mean, deviation, low, high)
}

// GlorotUniform draws from [−a, a) with a = √(6/(fan in + fan out)), after Glorot and Bengio 2010.
// Weights are [window..., in, out]: the fan out is the last axis times the window, the fan in the
// axis before it times the window.
func GlorotUniform() ir.Initial { return rule("glorot_uniform") }

// GlorotNormal draws from a normal distribution with mean 0 and variance 2/(fan in + fan out),
// after Glorot and Bengio 2010. See [GlorotUniform] for the fans.
func GlorotNormal() ir.Initial { return rule("glorot_normal") }

// HeUniform draws from [−a, a) with a = √(6/(fan in)), after He et al. 2015, as
// torch.nn.init.kaiming_uniform_ does for ReLU. See [GlorotUniform] for the fan.
func HeUniform() ir.Initial { return rule("he_uniform") }

// HeNormal draws from a normal distribution with mean 0 and variance 2/(fan in), after He et al.
// 2015. See [GlorotUniform] for the fan.
func HeNormal() ir.Initial { return rule("he_normal") }

// LeCunUniform draws from [−a, a) with a = √(3/(fan in)), after LeCun et al. 1998, Efficient
// BackProp. See [GlorotUniform] for the fan.
func LeCunUniform() ir.Initial { return rule("lecun_uniform") }

// LeCunNormal draws from a normal distribution with mean 0 and variance 1/(fan in), after LeCun et
// al. 1998, as self-normalising networks need. See [GlorotUniform] for the fan.
func LeCunNormal() ir.Initial { return rule("lecun_normal") }

// Orthogonal draws a matrix with orthonormal rows or columns, uniformly distributed, times gain,
// after Saxe et al. 2013. All axes but the last are the rows.
func Orthogonal(gain float64) ir.Initial { return rule("orthogonal", gain, 0) }

func rule(name string, args ...float64) ir.Initial { return ir.Initial{Rule: name, Args: args} }

// Draw adds the initial value of a parameter of type t. key is a random key, u32[2], unique to the
// parameter. Errors are recorded in b: of kind [ir.ErrAttr] for the zero Initial or an unknown rule
// and [ir.ErrShape] for a type that the rule cannot give.
func Draw(b *ir.Builder, i ir.Initial, key ir.Value, t ir.Type) ir.Value {
	if err := i.Check(); err != nil {
		b.Fail(err)
		return ir.Value{}
	}
	a := i.Args
	switch i.Rule {
	case "constant":
		return ops.Const(b, t.DType, a[0], t.Shape...)
	case "normal":
		return affine(b, ops.Normal(b, key, t.DType, t.Shape...), a[1], a[0])
	case "uniform":
		return drawUniform(b, key, t, a[0], a[1])
	case "truncated_normal":
		if a[1] == 0 {
			return ops.Const(b, t.DType, a[0], t.Shape...)
		}
		z := ops.TruncatedNormal(b, key, (a[2]-a[0])/a[1], (a[3]-a[0])/a[1], t.DType, t.Shape...)
		return affine(b, z, a[1], a[0])
	case "orthogonal":
		return drawOrthogonal(b, key, t, a[0], int(a[1]))
	case "log_range":
		return ops.Log(b, ops.Add(b, ops.Iota(b, t.DType, t.Shape.Rank()-1, t.Shape...), ops.Ones(b, t.DType, t.Shape...)))
	case "softplus_inverse":
		x := ops.Exp(b, drawUniform(b, key, t, math.Log(a[0]), math.Log(a[1])))
		return ops.Add(b, x, ops.Log(b, ops.Neg(b, ops.Expm1(b, ops.Neg(b, x)))))
	case "key":
		return key
	}
	if resolved := Resolve(i, t); !resolved.Equal(i) {
		return Draw(b, resolved, key, t)
	}
	b.Fail(ir.Attrf("the initial rule is empty: it must be one of those of ir.Initial"))
	return ir.Value{}
}

// Resolve returns the rule with the fans of a weight of type t replaced by numbers: he_normal of
// f32[8,4] is normal(0,0.5). Other rules are returned as they are. Symbolic sizes count as fans of
// 1.
func Resolve(i ir.Initial, t ir.Type) ir.Initial {
	in, out := fans(t)
	symmetric := func(bound float64) ir.Initial { return Uniform(-bound, bound) }
	switch i.Rule {
	case "glorot_uniform":
		return symmetric(math.Sqrt(6 / (in + out)))
	case "glorot_normal":
		return Normal(0, math.Sqrt(2/(in+out)))
	case "he_uniform":
		return symmetric(math.Sqrt(6 / in))
	case "he_normal":
		return Normal(0, math.Sqrt(2/in))
	case "lecun_uniform":
		return symmetric(math.Sqrt(3 / in))
	case "lecun_normal":
		return Normal(0, math.Sqrt(1/in))
	}
	return i
}

// affine returns x·scale + shift.
func affine(b *ir.Builder, x ir.Value, scale, shift float64) ir.Value {
	return ops.Add(b, ops.Mul(b, x, ops.ConstLike(b, x, scale)), ops.ConstLike(b, x, shift))
}

// drawUniform draws from [low, high). Around 0 it is (2u−1)·high with u in [0, 1): 2u−1 is exact,
// so devices with fused multiply-add give the same bits.
func drawUniform(b *ir.Builder, key ir.Value, t ir.Type, low, high float64) ir.Value {
	u := ops.Uniform(b, key, t.DType, t.Shape...)
	if low == -high {
		centred := ops.Sub(b, ops.Mul(b, u, ops.ConstLike(b, u, 2)), ops.OnesLike(b, u))
		return ops.Mul(b, centred, ops.ConstLike(b, u, high))
	}
	return affine(b, u, high-low, low)
}

// drawOrthogonal takes q of the QR factorisation of a normal matrix, with the signs of r's diagonal
// (Mezzadri 2007). The first batch axes are indices of matrices.
func drawOrthogonal(b *ir.Builder, key ir.Value, t ir.Type, gain float64, batch int) ir.Value {
	dims, ok := t.Shape.Ints()
	if !ok || len(dims) < batch+2 {
		b.Fail(ir.Shapef("an orthogonal weight is %s: it must have two axes or more and constant sizes", t))
		return ir.Value{}
	}
	rows, cols := 1, dims[len(dims)-1]
	for _, d := range dims[batch : len(dims)-1] {
		rows *= d
	}
	matrix := append(ir.Dims(dims[:batch]...), ir.N(max(rows, cols)), ir.N(min(rows, cols)))
	q, r := ops.QR(b, ops.Normal(b, key, ir.F32, matrix...), false)
	signs := ops.Sign(b, ops.Diagonal(b, r, 0))
	q = ops.Mul(b, q, ops.ExpandDims(b, signs, -2))
	if rows < cols {
		q = ops.SwapAxes(b, q, -2, -1)
	}
	q = ops.Mul(b, q, ops.ConstLike(b, q, gain))
	return ops.Convert(b, ops.Reshape(b, q, t.Shape...), t.DType)
}

// fans returns the fan in and fan out of a weight; 1 and 1 for symbolic sizes, which an executable
// graph does not have.
func fans(t ir.Type) (in, out float64) {
	dims, ok := t.Shape.Ints()
	if !ok || len(dims) == 0 {
		return 1, 1
	}
	window := 1
	for _, d := range dims[:max(len(dims)-2, 0)] {
		window *= d
	}
	last := dims[len(dims)-1]
	return float64(max(1, window*dims[max(len(dims)-2, 0)])), float64(max(1, window*last))
}

// stacked returns the rule of n weights of type t that lie along a new first axis, each drawn by
// the rule i.
func stacked(i ir.Initial, t ir.Type) ir.Initial {
	if i.Rule == "orthogonal" {
		return rule(i.Rule, i.Args[0], i.Args[1]+1)
	}
	return Resolve(i, t)
}
