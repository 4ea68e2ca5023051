package ops_test

import (
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

func f32s(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }

func i32s(x ...int64) *ir.Array { return ir.Ints(ir.I32, x, len(x)) }

func bools(x ...int64) *ir.Array { return ir.Ints(ir.Bool, x, len(x)) }

func matrix(rows, cols int, x ...float64) *ir.Array { return ir.Floats(ir.F32, x, rows, cols) }

// apply evaluates what f builds from values of the given arrays.
func apply(f func(b *ir.Builder, in []ir.Value) ir.Value, in ...*ir.Array) (*ir.Array, error) {
	named := map[string]*ir.Array{}
	g, err := ir.Build("f", func(b *ir.Builder) {
		values := make([]ir.Value, len(in))
		for i, a := range in {
			name := "x" + strconv.Itoa(i)
			named[name] = a
			values[i] = b.Input(name, a.DType, a.Type().Shape...)
		}
		b.Output("y", f(b, values))
	})
	if err != nil {
		return nil, err
	}
	out, err := evalHeld(g, named, ir.EvalOptions{})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func of1(f func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder, in []ir.Value) ir.Value {
	return func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0]) }
}

func of2(f func(b *ir.Builder, x, y ir.Value) ir.Value) func(b *ir.Builder, in []ir.Value) ir.Value {
	return func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0], in[1]) }
}

// evalCase is an application of an op with its result, worked out by hand or
// taken from tables of constants.
type evalCase struct {
	name string
	f    func(b *ir.Builder, in []ir.Value) ir.Value
	in   []*ir.Array
	want *ir.Array
}

func runEvalCases(t *testing.T, cases []evalCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := apply(c.f, c.in...)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Type().Equal(c.want.Type()) {
				t.Fatalf("got %s, want %s", got.Type(), c.want.Type())
			}
			if at, ok := firstDifference(c.want, got, c.want.DType.Epsilon()); !ok {
				t.Errorf("element %d is %v, want %v", at, text(got, at), text(c.want, at))
			}
		})
	}
}

// The numbers are NumPy's.
func TestQuantilesOfInfinities(t *testing.T) {
	inf := math.Inf(1)
	at := func(q float64) func(b *ir.Builder, x ir.Value) ir.Value {
		return func(b *ir.Builder, x ir.Value) ir.Value { return ops.Quantile(b, x, q, 0) }
	}
	runEvalCases(t, []evalCase{
		{"median", of1(at(0.5)), []*ir.Array{f32s(inf, 1, inf)}, ir.Float(ir.F32, inf)},
		{"median of negative ones", of1(at(0.5)), []*ir.Array{f32s(-inf, 1, -inf, -inf, 7)}, ir.Float(ir.F32, -inf)},
		{"between two", of1(at(0.25)), []*ir.Array{f32s(-inf, -inf, 1)}, ir.Float(ir.F32, -inf)},
		{"largest", of1(at(1)), []*ir.Array{f32s(2, inf)}, ir.Float(ir.F32, inf)},
		{"of one", of1(at(0.3)), []*ir.Array{f32s(inf)}, ir.Float(ir.F32, inf)},
	})
}

func TestFunctionsHaveKnownValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	one := func(name string, f func(b *ir.Builder, x ir.Value) ir.Value, at, want []float64) evalCase {
		return evalCase{name, of1(f), []*ir.Array{f32s(at...)}, f32s(want...)}
	}
	runEvalCases(t, []evalCase{
		one("neg", ops.Neg, []float64{2, -inf}, []float64{-2, inf}),
		one("abs", ops.Abs, []float64{-2, 0, inf}, []float64{2, 0, inf}),
		one("sign", ops.Sign, []float64{-2, 0, 3, nan}, []float64{-1, 0, 1, nan}),
		one("sqrt", ops.Sqrt, []float64{2, 0, -1}, []float64{1.4142135623730951, 0, nan}),
		one("rsqrt", ops.Rsqrt, []float64{2, 0, inf}, []float64{0.7071067811865476, inf, 0}),
		one("exp", ops.Exp, []float64{1, 0, -inf, 89}, []float64{2.718281828459045, 1, 0, inf}),
		one("expm1", ops.Expm1, []float64{1e-8, 1}, []float64{1e-8, 1.718281828459045}),
		one("log", ops.Log, []float64{10, 0, -1}, []float64{2.302585092994046, -inf, nan}),
		one("log1p", ops.Log1p, []float64{1e-8, 1, -1}, []float64{1e-8, 0.6931471805599453, -inf}),
		one("sin", ops.Sin, []float64{math.Pi / 6, 1, inf}, []float64{0.5, 0.8414709848078965, nan}),
		one("cos", ops.Cos, []float64{math.Pi / 3, 1}, []float64{0.5, 0.5403023058681398}),
		one("tan", ops.Tan, []float64{math.Pi / 4, 1}, []float64{1, 1.5574077246549023}),
		one("asin", ops.Asin, []float64{0.5, 1, 2}, []float64{math.Pi / 6, math.Pi / 2, nan}),
		one("acos", ops.Acos, []float64{0.5, 1, 2}, []float64{math.Pi / 3, 0, nan}),
		one("atan", ops.Atan, []float64{1, -inf}, []float64{math.Pi / 4, -math.Pi / 2}),
		one("sinh", ops.Sinh, []float64{1}, []float64{1.1752011936438014}),
		one("cosh", ops.Cosh, []float64{1}, []float64{1.543080634815244}),
		one("tanh", ops.Tanh, []float64{1, 100, -inf}, []float64{0.7615941559557649, 1, -1}),
		one("sigmoid", ops.Sigmoid, []float64{0, 1, -1000, 1000}, []float64{0.5, 0.7310585786300049, 0, 1}),
		one("erf", ops.Erf, []float64{0.5, 1, inf}, []float64{0.5204998778130465, 0.8427007929497149, 1}),
		one("floor", ops.Floor, []float64{-1.5, 1.5}, []float64{-2, 1}),
		one("ceil", ops.Ceil, []float64{-1.5, 1.5}, []float64{-1, 2}),
		one("round", ops.Round, []float64{-1.5, 0.5, 2.5, 2.6}, []float64{-2, 0, 2, 3}),
		one("trunc", ops.Trunc, []float64{-1.5, 1.5}, []float64{-1, 1}),
		{"is_finite", of1(ops.IsFinite), []*ir.Array{f32s(1, inf, -inf, nan)}, bools(1, 0, 0, 0)},
		{"pow", of2(ops.Pow), []*ir.Array{f32s(2, 0, 0, -2, -2, 4), f32s(10, 0, -1, 3, 0.5, -0.5)}, f32s(1024, 1, inf, -8, nan, 0.5)},
		{"atan2", of2(ops.Atan2), []*ir.Array{f32s(1, -1, 0, 1), f32s(0, -1, -1, 1)}, f32s(math.Pi/2, -3*math.Pi/4, math.Pi, math.Pi/4)},
		{"rem", of2(ops.Rem), []*ir.Array{f32s(5.5, -5.5, 1), f32s(2, 2, 0)}, f32s(1.5, -1.5, nan)},
		{"div", of2(ops.Div), []*ir.Array{f32s(1, -1, 0), f32s(0, 0, 0)}, f32s(inf, -inf, nan)},
		{"max", of2(ops.Max), []*ir.Array{f32s(1, nan, 3, inf, nan), f32s(2, 1, nan, nan, inf)}, f32s(2, nan, nan, nan, nan)},
		{"min", of2(ops.Min), []*ir.Array{f32s(1, nan, -inf, nan), f32s(2, 1, nan, -inf)}, f32s(1, nan, nan, nan)},
		one("reduce_max", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.ReduceMax(b, ops.Reshape(b, x, ir.N(2), ir.N(1)), 0)
		}, []float64{inf, nan}, []float64{nan}),
		{"mul_zero", of2(ops.MulZero), []*ir.Array{f32s(0, inf, 2), f32s(nan, 0, 3)}, f32s(0, 0, 6)},
	})
}

func TestIntegersWrapAndDivideAsStated(t *testing.T) {
	const lowest = math.MinInt32
	u64 := func(x ...uint64) *ir.Array {
		a := ir.NewArray(ir.U64, len(x))
		for i, v := range x {
			a.I[i] = int64(v)
		}
		return a
	}
	u8 := func(x ...int64) *ir.Array { return ir.Ints(ir.U8, x, len(x)) }
	runEvalCases(t, []evalCase{
		{"add wraps", of2(ops.Add), []*ir.Array{u8(200, 1), u8(100, 2)}, u8(44, 3)},
		{"sub wraps", of2(ops.Sub), []*ir.Array{u8(1), u8(2)}, u8(255)},
		{"mul wraps", of2(ops.Mul), []*ir.Array{i32s(1 << 20), i32s(1 << 13)}, i32s(0)},
		{"div truncates", of2(ops.Div), []*ir.Array{i32s(7, -7, 7, lowest), i32s(2, 2, 0, -1)}, i32s(3, -3, 7, lowest)},
		{"rem", of2(ops.Rem), []*ir.Array{i32s(7, -7, 7, lowest), i32s(2, 2, 0, -1)}, i32s(1, -1, 0, 0)},
		{"div of u64", of2(ops.Div), []*ir.Array{u64(1<<63 + 2), u64(2)}, u64(1<<62 + 1)},
		{"lt of u64", of2(ops.Lt), []*ir.Array{u64(1, 1<<63), u64(1<<63, 1)}, bools(1, 0)},
		{"max of u64", of2(ops.Max), []*ir.Array{u64(1, 1<<63), u64(1<<63, 1)}, u64(1<<63, 1<<63)},
		{"abs of the lowest", of1(ops.Abs), []*ir.Array{i32s(lowest, -5)}, i32s(lowest, 5)},
		{"sign", of1(ops.Sign), []*ir.Array{i32s(-9, 0, 9)}, i32s(-1, 0, 1)},
		{"shift modulo the width", of2(ops.ShiftLeft), []*ir.Array{i32s(1, 1), i32s(33, 31)}, i32s(2, lowest)},
		{"shift right keeps the sign", of2(ops.ShiftRight), []*ir.Array{i32s(-8), i32s(1)}, i32s(-4)},
		{"shift right of u64", of2(ops.ShiftRight), []*ir.Array{u64(1 << 63), u64(63)}, u64(1)},
		{"not", of1(ops.Not), []*ir.Array{u8(0, 0xf0)}, u8(255, 0x0f)},
		{"not of bools", of1(ops.Not), []*ir.Array{bools(0, 1)}, bools(1, 0)},
		{"xor", of2(ops.Xor), []*ir.Array{u8(0b1100), u8(0b1010)}, u8(0b0110)},
		{
			"floats saturate", func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Convert(b, in[0], ir.I32) },
			[]*ir.Array{f32s(1.9, -1.9, 3e9, math.Inf(-1), math.NaN())},
			i32s(1, -1, math.MaxInt32, lowest, 0),
		},
		{
			"integers wrap", func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Convert(b, in[0], ir.U8) },
			[]*ir.Array{i32s(-1, 300)},
			u8(255, 44),
		},
		{
			"bits of floats", func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Bitcast(b, in[0], ir.I32) },
			[]*ir.Array{f32s(1, -2)},
			i32s(0x3f800000, -0x40000000),
		},
	})
}

func TestViewsMoveElementsToTheirIndices(t *testing.T) {
	x := matrix(2, 3, 1, 2, 3, 4, 5, 6)
	with := func(f func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder, in []ir.Value) ir.Value {
		return of1(f)
	}
	one := []*ir.Array{x}
	runEvalCases(t, []evalCase{
		{"reshape", with(func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reshape(b, x, ir.Dims(3, 2)...) }), one, matrix(3, 2, 1, 2, 3, 4, 5, 6)},
		{"transpose", with(func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x) }), one, matrix(3, 2, 1, 4, 2, 5, 3, 6)},
		{
			"broadcast", with(func(b *ir.Builder, x ir.Value) ir.Value { return ops.BroadcastTo(b, x, ir.Dims(2, 2)) }),
			[]*ir.Array{matrix(2, 1, 7, 8)},
			matrix(2, 2, 7, 7, 8, 8),
		},
		{
			"broadcast along new axes", with(func(b *ir.Builder, x ir.Value) ir.Value { return ops.BroadcastInDim(b, x, ir.Dims(2, 2), []int{0}) }),
			[]*ir.Array{f32s(7, 8)},
			matrix(2, 2, 7, 7, 8, 8),
		},
		{"slice", with(func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Slice(b, x, ir.Dims(1, 0), ir.Dims(1, 2), []int{1, 2})
		}), one, matrix(1, 2, 4, 6)},
		{"pad", with(func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Pad(b, x, ops.Const(b, ir.F32, 9), []int{1, -1}, []int{0, 1}, []int{0, 1})
		}), one, matrix(3, 5, 9, 9, 9, 9, 9, 9, 2, 9, 3, 9, 9, 5, 9, 6, 9)},
		{
			"concatenate", func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Concatenate(b, -1, in...) },
			[]*ir.Array{x, matrix(2, 1, 7, 8)},
			matrix(2, 4, 1, 2, 3, 7, 4, 5, 6, 8),
		},
		{"reverse", with(func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, -1) }), one, matrix(2, 3, 3, 2, 1, 6, 5, 4)},
		{"move an axis", with(func(b *ir.Builder, x ir.Value) ir.Value { return ops.MoveAxis(b, x, 0, -1) }), one, matrix(3, 2, 1, 4, 2, 5, 3, 6)},
		{"expand", with(func(b *ir.Builder, x ir.Value) ir.Value { return ops.ExpandDims(b, x, 0, -1) }), []*ir.Array{f32s(1, 2)}, ir.Floats(ir.F32, []float64{1, 2}, 1, 2, 1)},
		{"squeeze", with(func(b *ir.Builder, x ir.Value) ir.Value { return ops.Squeeze(b, x, 1) }), []*ir.Array{matrix(2, 1, 7, 8)}, f32s(7, 8)},
		{"iota", func(b *ir.Builder, _ []ir.Value) ir.Value { return ops.Iota(b, ir.F32, 1, ir.Dims(2, 3)...) }, nil, matrix(2, 3, 0, 1, 2, 0, 1, 2)},
		{
			"select", func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Select(b, in[0], in[1], in[2]) },
			[]*ir.Array{bools(1, 0), f32s(1, math.NaN()), f32s(math.NaN(), 2)},
			f32s(1, 2),
		},
		{
			"clamp", func(b *ir.Builder, in []ir.Value) ir.Value { return ops.Clamp(b, in[0], in[1], in[2]) },
			[]*ir.Array{f32s(-5, 0.5, 5, 0), ir.Float(ir.F32, -1), ir.Float(ir.F32, 1)},
			f32s(-1, 0.5, 1, 0),
		},
	})
}

func TestReductionsOverAllAxesAndNone(t *testing.T) {
	x := matrix(2, 3, 1, 5, 3, 4, 2, 6)
	none := ir.NewArray(ir.F32, 0, 2)
	noInts := ir.NewArray(ir.I8, 0, 1)
	over := func(f func(b *ir.Builder, x ir.Value, axes ...int) ir.Value, axes ...int) func(b *ir.Builder, in []ir.Value) ir.Value {
		return func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0], axes...) }
	}
	at := func(f func(b *ir.Builder, x ir.Value, axis int) ir.Value, axis int) func(b *ir.Builder, in []ir.Value) ir.Value {
		return func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0], axis) }
	}
	inf, nan := math.Inf(1), math.NaN()
	one := []*ir.Array{x}
	runEvalCases(t, []evalCase{
		{"sum of all", over(ops.ReduceSum), one, ir.Float(ir.F32, 21)},
		{"sum of rows", over(ops.ReduceSum, -1), one, f32s(9, 12)},
		{"sum of columns", over(ops.ReduceSum, 0), one, f32s(5, 7, 9)},
		{"product", over(ops.ReduceProd, 1), one, f32s(15, 48)},
		{"largest", over(ops.ReduceMax, 1), one, f32s(5, 6)},
		{"smallest", over(ops.ReduceMin, 0), one, f32s(1, 2, 3)},
		{"mean", over(ops.Mean, 0), one, f32s(2.5, 3.5, 4.5)},
		{"sum of none", over(ops.ReduceSum, 0), []*ir.Array{none}, f32s(0, 0)},
		{"product of none", over(ops.ReduceProd, 0), []*ir.Array{none}, f32s(1, 1)},
		{"largest of none", over(ops.ReduceMax, 0), []*ir.Array{none}, f32s(-inf, -inf)},
		{"smallest of none", over(ops.ReduceMin, 0), []*ir.Array{none}, f32s(inf, inf)},
		{"largest of no integers", over(ops.ReduceMax, 0), []*ir.Array{noInts}, ir.Ints(ir.I8, []int64{-128}, 1)},
		{"smallest of no integers", over(ops.ReduceMin, 0), []*ir.Array{noInts}, ir.Ints(ir.I8, []int64{127}, 1)},
		{"mean of none", over(ops.Mean, 0), []*ir.Array{none}, f32s(nan, nan)},
		{"largest with NaN", over(ops.ReduceMax), []*ir.Array{f32s(1, nan, 3)}, ir.Float(ir.F32, nan)},
		{"integers wrap", over(ops.ReduceSum), []*ir.Array{ir.Ints(ir.U8, []int64{200, 100}, 2)}, ir.Int(ir.U8, 44)},
		{"first of ties", at(ops.ArgMax, 0), []*ir.Array{f32s(1, 3, 3)}, ir.Int(ir.I32, 1)},
		{"first NaN", at(ops.ArgMin, 0), []*ir.Array{f32s(1, nan, nan, -inf)}, ir.Int(ir.I32, 1)},
		{"position in rows", at(ops.ArgMax, -1), one, i32s(1, 2)},
	})
}

func TestIndexOutsideItsBoundIsAnError(t *testing.T) {
	check := func(b *ir.Builder, in []ir.Value) ir.Value { return ops.CheckIndex(b, in[0], ir.N(3), "label") }
	if out, err := apply(check, i32s(0, 2)); err != nil || out.I[1] != 2 {
		t.Errorf("indices inside: %v, %v", out, err)
	}
	for _, bad := range []int64{-1, 3} {
		_, err := apply(check, i32s(0, bad))
		var op *ir.OpError
		if !errors.Is(err, ir.ErrIndex) || !errors.As(err, &op) || op.Op != ops.OpCheckIndex {
			t.Errorf("index %d: %v", bad, err)
		}
		s := ir.Sample{Attrs: &ops.CheckIndexAttrs{Bound: ir.N(3), What: "label"}, In: []*ir.Array{i32s(0, bad)}}
		_, n, err := irtest.SampleGraph(ops.OpCheckIndex, s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := irtest.EvalLowering(n, s.In, nil); !errors.Is(err, ir.ErrIndex) {
			t.Errorf("index %d in the scalar body: %v", bad, err)
		}
	}
}

func TestShapesBroadcastAsNumPyDoes(t *testing.T) {
	n := ir.Sym("n")
	shape := func(d ...ir.Dim) ir.Shape { return d }
	for _, c := range []struct{ x, y, want ir.Shape }{
		{shape(), shape(n), shape(n)},
		{shape(n, ir.N(1)), shape(ir.N(3)), shape(n, ir.N(3))},
		{shape(ir.N(1)), shape(ir.N(0)), shape(ir.N(0))},
		{shape(n), shape(n), shape(n)},
		{shape(n), shape(ir.N(2)), nil},
		{shape(n), shape(ir.Sym("m")), nil},
		{shape(ir.N(2), ir.N(3)), shape(ir.N(2)), nil},
	} {
		got, err := ops.BroadcastShapes(c.x, c.y)
		if c.want == nil {
			if !errors.Is(err, ir.ErrShape) {
				t.Errorf("%s with %s: %s, %v", c.x, c.y, got, err)
			}
			continue
		}
		if err != nil || !got.Equal(c.want) {
			t.Errorf("%s with %s: %s, %v, want %s", c.x, c.y, got, err, c.want)
		}
	}
}

// TestEvalRefusesAbsurdSizes: each of the graphs is small, and its result is not.
func TestEvalRefusesAbsurdSizes(t *testing.T) {
	for _, size := range []int64{1<<30 + 1, 1 << 40, 1 << 46, 1 << 62} {
		if int64(int(size)) != size {
			continue // an int has 32 bits here
		}
		n := ir.N(int(size))
		for name, f := range map[string]func(b *ir.Builder) ir.Value{
			"iota":      func(b *ir.Builder) ir.Value { return ops.Iota(b, ir.I32, 0, n) },
			"constant":  func(b *ir.Builder) ir.Value { return ops.Const(b, ir.F32, 1, n) },
			"broadcast": func(b *ir.Builder) ir.Value { return ops.BroadcastTo(b, ops.Const(b, ir.F32, 1), ir.Shape{n, n}) },
			"random":    func(b *ir.Builder) ir.Value { return ops.Uniform(b, ops.Key(b, 1), ir.F32, n) },
			"one hot": func(b *ir.Builder) ir.Value {
				return ops.OneHot(b, ops.Const(b, ir.I32, 1, ir.N(2)), n, ir.F32)
			},
			"a sum of many": func(b *ir.Builder) ir.Value { return ops.ReduceSum(b, ops.Iota(b, ir.F32, 0, n)) },
		} {
			g, err := ir.Build("absurd", func(b *ir.Builder) { b.Output("y", f(b)) })
			if err != nil {
				continue // refused where it is written
			}
			if _, err := ir.Eval(g, nil, ir.EvalOptions{}); !errors.Is(err, ir.ErrUnsupported) {
				t.Errorf("%s of %d: %v, want %v", name, size, err, ir.ErrUnsupported)
			}
		}
	}
}
