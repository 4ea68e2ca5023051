package autodiff_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// gradientsOf returns the gradients of Σ f by all its operands, in order.
func gradientsOf(t *testing.T, f func(b *ir.Builder, in []ir.Value) ir.Value, in ...*ir.Array) []*ir.Array {
	t.Helper()
	named, names := values{}, []string{}
	g := build(t, func(b *ir.Builder) {
		var ports []ir.Value
		for i, a := range in {
			name := string(rune('a' + i))
			named[name] = a
			ports = append(ports, b.Port(ir.InputPort, name, a.Type()))
			if a.DType.IsFloat() {
				names = append(names, name)
			}
		}
		y := f(b, ports)
		b.Output("y", ops.ReduceSum(b, ops.Reshape(b, y, y.Shape().Size()), 0))
	})
	d, err := autodiff.Grad(g, "y", names...)
	got := eval(t, must(t, d, err), named)
	var out []*ir.Array
	for _, name := range names {
		out = append(out, got[autodiff.GradName(name)])
	}
	return out
}

func roundHasOneSlope(t *testing.T) {
	checkFunctions(t, []function{
		{"round", ops.Round, at(1.3), fixed(1, 0, 0, 0)},
		{"round_ste", ops.RoundSTE, at(1.3), fixed(1, 1, 0, 0)},
	})
}

func tiesShareAMaximum(t *testing.T) {
	largest := func(b *ir.Builder, in []ir.Value) ir.Value { return ops.ReduceMax(b, in[0]) }
	checkFloats(t, "a tie", gradientsOf(t, largest, vec(1, 3, 3, 2))[0], []float64{0, 0.5, 0.5, 0}, 0)
	nan := math.NaN()
	checkFloats(t, "a NaN", gradientsOf(t, largest, vec(3, nan, 3))[0], []float64{nan, nan, nan}, 0)
}

func powersAreRightAtZero(t *testing.T) {
	kinksOf("zeroth power at 0", "first power at 0", "square by pow at 0", "cube by pow at 0", "x to the 1.5 at 0", "0 to the x")(t)
	smoothOf("negative base cubed")(t)
	aConstantExponentTakesNoLogarithm(t)
}

func pairsShareATie(t *testing.T) {
	kinksOf("max tie", "min tie", "max with itself")(t)
	for _, d := range []ir.DType{ir.BF16, ir.F16, ir.F32, ir.F64} {
		for _, f := range []func(b *ir.Builder, x, y ir.Value) ir.Value{ops.Max, ops.Min} {
			x := ir.Floats(d, []float64{2, 2}, 2)
			for _, g := range gradientsOf(t, func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0], in[1]) }, x, x) {
				checkFloats(t, d.String(), g, []float64{0.5, 0.5}, 0)
				if g.DType != d {
					t.Errorf("the gradient of %s is %s", d, g.DType)
				}
			}
		}
	}
}

func theBiasOfAttentionHasAGradient(t *testing.T) {
	// Of two keys with the values 0 and 1 the result is σ(b₁ − b₀), at no difference of
	// scores: by b₁ it changes by 1/4.
	g := gradientsOf(t, func(b *ir.Builder, in []ir.Value) ir.Value {
		same := ops.Ones(b, ir.F64, ir.Dims(2, 1)...)
		value := ops.Literal(b, ir.Floats(ir.F64, []float64{0, 1}, 2, 1))
		return ops.Attention(b, ops.Ones(b, ir.F64, ir.Dims(1, 1)...), same, value, in[0], ops.AttentionAttrs{})
	}, ir.Floats(ir.F64, []float64{0, 0}, 1, 2))
	checkFloats(t, "bias", g[0], []float64{-0.25, 0.25}, 1e-15)
}

func packedWeightsHaveGradients(t *testing.T) {
	d, _ := ir.Lookup(ops.OpQuantizedMatMul)
	g, in := sampleGraph(t, d.Op, d.Samples()[0])
	if err := gradcheck.Check(g, in, gradcheck.Options{Tol: tolerance(d.Samples()[0])}); err != nil {
		t.Error(err)
	}
	// (q − zero)·scale by scale, summed.
	got := gradientsOf(t, func(b *ir.Builder, in []ir.Value) ir.Value {
		q := ops.Literal(b, ir.Ints(ir.I8, []int64{-3, 7, 100}, 3))
		return ops.DequantizeLinear(b, q, in[0], ops.Literal(b, ir.Int(ir.I8, 2)), 0)
	}, ir.Float(ir.F32, 0.5))
	checkFloats(t, "scale", got[0], []float64{-5 + 5 + 98}, 0)
}

// groupedProductsCopyNoWeights looks for a value as large as a matrix for each row.
func groupedProductsCopyNoWeights(t *testing.T) {
	const rows, k, n = 256, 16, 16
	g := build(t, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F64, ir.Dims(rows, k)...), b.Param("w", ir.F64, ir.Dims(3, k, n)...)
		b.Output("y", ops.ReduceSum(b, ops.GroupedMatMul(b, x, w, b.Input("groups", ir.I32, ir.N(rows)))))
	})
	d, err := autodiff.Grad(g, "y", "x", "w")
	for _, node := range must(t, d, err).Nodes() {
		for _, v := range node.Types() {
			if size, _ := v.Shape.Size().Const(); size >= rows*k*n {
				t.Errorf("%s makes %s", node.Op(), v)
			}
		}
	}
	x, groups := wave(1, rows, k), ir.NewArray(ir.I32, rows)
	want := make([]float64, 3*k*n)
	for i := range rows {
		groups.I[i] = int64(i % 3)
		for j := range k {
			for c := range n {
				want[(i%3*k+j)*n+c] += x.F[i*k+j]
			}
		}
	}
	got := eval(t, d, values{"x": x, "w": wave(2, 3, k, n), "groups": groups})
	checkFloats(t, "weights", got["grad/w"], want, 1e-12)
}

func quantizationPassesTheGradientOn(t *testing.T) {
	got := gradientsOf(t, func(b *ir.Builder, in []ir.Value) ir.Value {
		y, _ := ops.FakeQuant(b, in[0], ops.Const(b, ir.F64, 700), ops.FakeQuantAttrs{Bits: 8, STE: ops.STEIdentity, Scale: ops.ScaleFixed})
		return y
	}, vec(-300, 0, 12, 650))
	checkFloats(t, "gradient", got[0], []float64{1, 1, 1, 1}, 0)
}

func convolutionsHaveMixedSecondDerivatives(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F64, ir.Dims(1, 4, 4, 2)...), b.Param("w", ir.F64, ir.Dims(3, 3, 2, 2)...)
		b.Output("y", ops.ReduceSum(b, ops.Conv2D(b, x, w, ir.Value{}, ops.Conv2DAttrs{})))
	})
	// y is linear in each: its mixed derivative along u and v is y(u, v) itself.
	u, v := wave(1, 1, 4, 4, 2), wave(2, 3, 3, 2, 2)
	h, err := autodiff.HVP(g, "y", "x", "w")
	got := eval(t, must(t, h, err), values{
		"x": wave(3, 1, 4, 4, 2), "w": wave(4, 3, 3, 2, 2),
		"tangent/x": ir.NewArray(ir.F64, 1, 4, 4, 2), "tangent/w": v,
	})
	sum := 0.0
	for i, x := range got["hvp/x"].F {
		sum += x * u.F[i]
	}
	checkFloats(t, "mixed", num(sum), eval(t, g, values{"x": u, "w": v})["y"].F, 1e-13)
	if math.Abs(sum) < 0.1 {
		t.Errorf("the mixed derivative %v says nothing", sum)
	}
}

// everyOperandHasAGradient takes the first sample of each op: its gradients are not 0,
// and those of differences.
func everyOperandHasAGradient(names ...ir.Op) func(t *testing.T) {
	return func(t *testing.T) {
		for _, op := range names {
			d, _ := ir.Lookup(op)
			s := d.Samples()[0]
			g, in := sampleGraph(t, op, s)
			if err := gradcheck.Check(g, in, gradcheck.Options{Tol: tolerance(s)}); err != nil {
				t.Error(err)
			}
			for _, o := range g.Outputs() {
				in[autodiff.CotangentName(o.Name)] = eval(t, g, onlyPorts(g, in))[o.Name]
			}
			v, err := autodiff.VJP(g)
			got := eval(t, must(t, v, err), onlyPorts(v, in))
			for _, name := range floatPorts(g) {
				if !(magnitude(got[autodiff.GradName(name)]) > 1e-3) {
					t.Errorf("%s: operand %s has no gradient", op, name)
				}
			}
		}
	}
}

func fourOrdersAreThoseOfTheClosedForm(t *testing.T) {
	for _, f := range irtest.ClosedForms() {
		g := build(t, func(b *ir.Builder) { b.Output("y", f.F(b, b.Input("x", ir.F64))) })
		n, err := autodiff.NthOrder(g, "y", "x", 4)
		for _, x := range irtest.DerivativePoints {
			got, want := eval(t, must(t, n, err), values{"x": num(x)}), f.Of(x)
			for order, name := range []string{"y", "d1/y", "d2/y", "d3/y", "d4/y"} {
				checkFloats(t, f.Name+" "+name, got[name], want[order:order+1], 1e-10)
			}
		}
	}
}

// rmsNormHasTheGradientOfItsFormula: with y = x/r, r = √(mean x² + ε), the gradient of
// Σ c·y by x is (c − y·mean(c·y))/r.
func rmsNormHasTheGradientOfItsFormula(t *testing.T) {
	const epsilon = 0.1
	x, c := []float64{1, -2, 0.5}, []float64{3, 1, -2}
	got := gradientsOf(t, func(b *ir.Builder, in []ir.Value) ir.Value {
		return ops.Mul(b, ops.RMSNorm(b, in[0], ops.Ones(b, ir.F64, ir.N(3)), epsilon), ops.Literal(b, vec(c...)))
	}, vec(x...))
	square, along := 0.0, 0.0
	for _, v := range x {
		square += v * v / 3
	}
	r := math.Sqrt(square + epsilon)
	for i := range x {
		along += c[i] * x[i] / r / 3
	}
	var want []float64
	for i := range x {
		want = append(want, (c[i]-x[i]/r*along)/r)
	}
	checkFloats(t, "gradient", got[0], want, 1e-14)
}

// ropeTurnsByItsFormula: at position p pair i turns by p·base^(−2i/size).
func ropeTurnsByItsFormula(t *testing.T) {
	const size, base = 4, 100
	g := build(t, func(b *ir.Builder) {
		cos, sin := ops.RopeTable(b, b.Input("at", ir.I32, ir.N(2)), size, base)
		cos, sin = ops.Convert(b, cos, ir.F64), ops.Convert(b, sin, ir.F64)
		b.Output("y", ops.Rope(b, b.Input("x", ir.F64, ir.Dims(2, size)...), cos, sin, ops.RopeAttrs{}))
	})
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	got := eval(t, g, values{"at": ir.Ints(ir.I32, []int64{0, 3}, 2), "x": ir.Floats(ir.F64, x, 2, size)})
	want := append([]float64{}, x...)
	for i := range size / 2 {
		angle := 3 * math.Pow(base, -2*float64(i)/size)
		u, v := x[size+i], x[size+i+size/2]
		want[size+i], want[size+i+size/2] = u*math.Cos(angle)-v*math.Sin(angle), v*math.Cos(angle)+u*math.Sin(angle)
	}
	checkFloats(t, "turned", got["y"], want, 1e-6)
}

// longLoopsHaveDerivatives: of 300 iterations of x ← 0.99·x + x₀/300.
func longLoopsHaveDerivatives(t *testing.T) {
	const turns, factor = 300, 0.99
	got := gradientsOf(t, func(b *ir.Builder, in []ir.Value) ir.Value {
		next, _ := ops.Scan(b, ops.Loop{
			Consts: in, Carries: in, Length: ir.N(turns),
			Body: func(b *ir.Builder, consts, carries, _ []ir.Value) (next, ys []ir.Value) {
				share := ops.Mul(b, consts[0], ops.ConstLike(b, consts[0], 1./turns))
				return []ir.Value{ops.Add(b, ops.Mul(b, carries[0], ops.ConstLike(b, carries[0], factor)), share)}, nil
			},
		})
		return next[0]
	}, num(2))
	power := math.Pow(factor, turns)
	checkFloats(t, "gradient", got[0], []float64{power + (1-power)/(1-factor)/turns}, 1e-12)
}
