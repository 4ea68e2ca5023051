package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
)

// classes are graphs of each class of shapes with code of its own, just above the bounds.
var classes = []job{
	over("axes on both sides", ir.F32, ops.ReduceSum, []int{1, 3}, 6, 50, 5, 7),
	over("maxima on both sides", ir.F32, ops.ReduceMax, []int{0, 2}, 41, 31, 9),
	over("narrow rows", ir.F32, ops.ReduceSum, []int{0}, 5003, 3),
	over("narrow rows of batches", ir.I32, ops.ReduceMax, []int{1}, 2, 1500, 5),
	of("variance on both sides", variance(1, 3), 3, 70, 11, 5),
	of("groups of channels", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.GroupNorm(b, x, b.Input("scale", ir.F32, ir.N(30)), b.Input("bias", ir.F32, ir.N(30)), 5, 1e-5)
	}, 2, 13, 17, 30),
	of("channels outside", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Var(b, ops.Transpose(b, x, 0, 2, 1), 0, 1, 2)
	}, 9, 7, 150),
	of("argmax of rows", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 1) }, 50, 203),
	of("argmin of columns", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMin(b, x, 0) }, 203, 50),
	multiplied("integers", ir.I32, 1, 21, 37, 50, false), multiplied("tiny", ir.F32, 40, 4, 5, 3, false),
	multiplied("wide integers", ir.I64, 2, 9, 35, 18, false),
	of("reversed", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, 0, 2) }, 5, 40, 33),
	of("reversed operands", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sub(b, x, ops.Reverse(b, x, 1)) }, 90, 101),
	typed("reversed halves", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, 1) }, 90, 101),
	typed("reversed bytes", ir.I8, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, 1) }, 90, 101),
	of("short and reversed", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, 0) }, 3000, 3),
	of("every other", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Slice(b, x, ir.Dims(1, 1), ir.Dims(40, 100), []int{1, 2})
	}, 41, 201),
	of("every third", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Slice(b, x, ir.Dims(1, 1), ir.Dims(40, 67), []int{1, 3})
	}, 41, 201),
	of("channels to planes", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 0, 2, 1) }, 2, 101, 3),
	of("repeated", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Repeat(b, x, 1, 3) }, 300, 7),
	of("repeated often", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Repeat(b, x, 1, 11) }, 30, 7),
	typed("repeated pairs of doubles", ir.C128, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Repeat(b, x, 1, 11) }, 30, 7),
	typed("reversed pairs of doubles", ir.C128, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, 1) }, 90, 101),
	typed("repeated bytes", ir.I8, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Repeat(b, x, 1, 11) }, 30, 7),
	typed("a row by halves", ir.BF16, rowsByHalves(300, 40), 1, 300), typed("two rows by halves", ir.BF16, rowsByHalves(301, 41), 2, 301),
	typed("pixels", ir.U8, func(b *ir.Builder, x ir.Value) ir.Value {
		x = ops.Mul(b, ops.Convert(b, x, ir.F32), ops.Const(b, ir.F32, 0.25))
		return ops.Div(b, ops.Sub(b, x, b.Input("mean", ir.F32, ir.N(3))), ops.Add(b, b.Input("deviation", ir.F32, ir.N(3)), ops.Const(b, ir.F32, 2)))
	}, 2, 60, 140, 3),
	pair("column and row", ir.F32, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.Einsum(b, "i,j->ij", x, y) }, []int{37}, []int{50}),
	pair("products of rows", ir.F32, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.Einsum(b, "ij,ij->i", x, y) }, []int{37, 50}, []int{37, 50}),
	pair("products of columns", ir.F32, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.Einsum(b, "ij,ij->j", x, y) }, []int{37, 50}, []int{37, 50}),
	of("tiles", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Tile(b, x, 3, 2) }, 30, 70),
	of("padded", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Pad(b, x, ops.Const(b, ir.F32, 7), []int{1, 2, 0}, []int{0, 1, 3}, []int{0, 0, 0})
	}, 5, 6, 31),
	of("cut and padded", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Pad(b, x, ops.Const(b, ir.F32, 7), []int{-1, 2, -3}, []int{2, -2, 1}, []int{0, 0, 0})
	}, 5, 6, 31),
	of("norm of parts", func(b *ir.Builder, x ir.Value) ir.Value {
		x = ops.Concatenate(b, 1, x, b.Input("y", ir.F32, ir.Dims(300, 19)...), ops.Sin(b, b.Input("z", ir.F32, ir.Dims(300, 3)...)))
		return ops.Div(b, ops.Sub(b, x, ops.Mean(b, x, 0)), ops.Sqrt(b, ops.Add(b, ops.Var(b, x, 0, 0), ops.Const(b, ir.F32, 0.1))))
	}, 300, 32),
	of("windows of parts", func(b *ir.Builder, x ir.Value) ir.Value {
		x = ops.Concatenate(b, 3, x, b.Input("y", ir.F32, ir.Dims(4, 16, 16, 7)...))
		return ops.AvgPool(b, x, ops.AvgPoolAttrs{PoolAttrs: ops.PoolAttrs{Sizes: []int{3, 3}, PadLo: []int{1, 1}, PadHi: []int{1, 1}}})
	}, 4, 16, 16, 18),
	of("norm of planes", normOfPlanes, 3, 20, 11, 9),
	of("running sums", running(ops.CumSum, 1), 20, 103),
	of("running sums from the end", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.CumSum(b, ops.Mul(b, x, x), ops.CumSumAttrs{Axis: 1, Reverse: true, Exclusive: true})
	}, 20, 103),
	typed("running sums of doubles", ir.F64, running(ops.CumSum, 1), 3, 50),
	typed("running sums of integers", ir.I32, running(ops.CumSum, 1), 20, 103),
	of("transforms", func(b *ir.Builder, x ir.Value) ir.Value {
		re, im := ops.DFT(b, x, ir.Value{}, false)
		return ops.Sub(b, re, im)
	}, 300, 15),
	of("rows of odd length", softmax(1), 300, 50),
	typed("words of bytes", ir.I8, func(b *ir.Builder, x ir.Value) ir.Value {
		y := ops.Reverse(b, x, 0)
		return ops.Select(b, ops.Lt(b, x, y), ops.Sub(b, x, y), ops.Add(b, ops.Not(b, x), ops.Xor(b, y, ops.ConstLike(b, y, -7))))
	}, 41, 101),
	pair("sums of bytes", ir.I8, ops.Add, []int{41, 101}, []int{41, 101}), pair("differences of bytes", ir.U8, ops.Sub, []int{4096}, []int{4096}),
	of("words of truths", func(b *ir.Builder, x ir.Value) ir.Value {
		input := func(name string) ir.Value { return b.Input(name, ir.Bool, ir.Dims(41, 101)...) }
		p, q, r := input("p"), input("q"), input("r")
		either := ops.Select(b, p, ops.Xor(b, q, r), ops.Not(b, ops.And(b, q, r)))
		return ops.Or(b, ops.Eq(b, either, ops.Ne(b, p, q)), ops.And(b, p, r))
	}, 1),
	typed("complex products", ir.C64, complexProducts, 7, 65), typed("complex products of doubles", ir.C128, complexProducts, 7, 65),
	typed("complex sums", ir.C64, complexSums, 5, 37, 19), typed("complex sums of doubles", ir.C128, complexSums, 5, 37, 19),
	typed("complex matrices", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.MatMul(b, x, ops.Conj(b, x)) }, 2, 33, 33),
	typed("complex rows of loops", ir.C64, complexRows, 6, 130), typed("complex doubles of loops", ir.C128, complexRows, 6, 130),
	typed("complex parts joined", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Concatenate(b, 0, ops.Mul(b, x, x), ops.Neg(b, x), ops.Div(b, x, ops.Add(b, x, ops.OnesLike(b, x))))
	}, 50, 33),
	typed("doubles to long integers", ir.F64, scaledTo(ir.I64), 41, 101), of("numbers to long integers", scaledTo(ir.I64), 41, 101),
	typed("doubles to integers", ir.F64, scaledTo(ir.I32), 41, 101),
	typed("argmax of doubles", ir.F64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 1) }, 50, 203),
	pair("equal long integers", ir.I64, ops.Eq, []int{41, 101}, []int{41, 101}),
	of("long rows by their index", func(b *ir.Builder, x ir.Value) ir.Value {
		hit := ops.Gt(b, ops.Iota(b, ir.I32, 1, x.Shape()...), ops.Const(b, ir.I32, 4500, x.Shape()...))
		return ops.ReduceSum(b, ops.Select(b, hit, x, ops.ZerosLike(b, x)), 1)
	}, 3, 5003),
	of("images resized", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Resize(b, x, ops.ResizeAttrs{Sizes: []int{9, 30}, Mode: ops.ResizeLinear})
	}, 2, 5, 17, 32),
	of("sums at constant places", func(b *ir.Builder, x ir.Value) ir.Value {
		places := ops.Literal(b, ir.Ints(ir.I32, []int64{3, 0, 3, 9, -1, 2, 3, 0}, 8, 1))
		return ops.ScatterAdd(b, ops.Ones(b, ir.F32, ir.Dims(6, 5, 40)...), places, x, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{1}, Outside: ops.OutsideDrop}})
	}, 8, 6, 40),
	pair("numbers added at pairs of places", ir.F32, func(b *ir.Builder, x, y ir.Value) ir.Value {
		index := ops.Convert(b, ops.Mul(b, y, ops.ConstLike(b, y, 100)), ir.I32)
		return ops.ScatterAdd(b, x, index, ops.Squeeze(b, ops.SliceAxis(b, y, 1, ir.N(0), ir.N(1)), 1), ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 1}}})
	}, []int{50, 50}, []int{300, 2}),
	typed("counts", ir.I32, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Bincount(b, x, 40) }, 1001),
	typed("counts in a loop", ir.I32, func(b *ir.Builder, x ir.Value) ir.Value {
		_, ys := ops.Scan(b, ops.Loop{Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, _, xs []ir.Value) (next, ys []ir.Value) {
			return nil, []ir.Value{ops.Bincount(b, xs[0], 30)}
		}})
		return ys[0]
	}, 5, 203),
	pair("images at positions, some outside", ir.F32, func(b *ir.Builder, x, y ir.Value) ir.Value {
		return image.GridSample(b, x, ops.Mul(b, y, ops.ConstLike(b, y, 3)))
	}, []int{2, 9, 11, 32}, []int{2, 40, 3, 2}),
	of("a histogram", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Histogram(b, x, 40, -0.3, 0.4) }, 1001),
}

func scaledTo(t ir.DType) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Convert(b, ops.Mul(b, x, ops.ConstLike(b, x, 1e9)), t)
	}
}

// rowsByHalves multiplies a few rows by weights in 16 bits, with results in f32.
func rowsByHalves(k, n int) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value {
		w := b.Input("w", ir.BF16, ir.Dims(k, n)...)
		return ops.MatMul(b, ops.Convert(b, x, ir.F32), ops.Convert(b, w, ir.F32))
	}
}

func complexProducts(b *ir.Builder, x ir.Value) ir.Value {
	y := ops.Sub(b, ops.Mul(b, x, ops.Conj(b, ops.Reverse(b, x, 1))), ops.Neg(b, x))
	isSmall := ops.Lt(b, ops.Real(b, y), ops.ZerosLike(b, ops.Real(b, y)))
	return ops.Select(b, isSmall, ops.Mul(b, y, y), ops.Complex(b, ops.Imag(b, x), ops.Real(b, y)))
}

// complexSums centers numbers by their mean, and returns the products with their conjugates, summed.
func complexSums(b *ir.Builder, x ir.Value) ir.Value {
	centered := ops.Sub(b, x, ops.KeepDims(b, ops.Mean, x, 1))
	return ops.ReduceSum(b, ops.Mul(b, centered, ops.Add(b, ops.Conj(b, x), centered)), 1)
}

// complexRows recurs over rows from the last: y[i] = x[i]·a + x[i]ᴴ of the state a, which a sum of products moves.
func complexRows(b *ir.Builder, x ir.Value) ir.Value {
	first := ops.Squeeze(b, ops.SliceAxis(b, x, 0, ir.N(0), ir.N(1)), 0)
	carry, ys := ops.Scan(b, ops.Loop{Carries: []ir.Value{first}, Xs: []ir.Value{x}, Reverse: true, Body: func(b *ir.Builder, _, c, xs []ir.Value) (next, ys []ir.Value) {
		y := ops.Add(b, ops.Mul(b, xs[0], c[0]), ops.Conj(b, xs[0]))
		sum := ops.KeepDims(b, ops.Mean, ops.Mul(b, y, xs[0]), 0)
		return []ir.Value{ops.Sub(b, c[0], ops.Mul(b, sum, xs[0]))}, []ir.Value{y}
	}})
	return ops.Add(b, ys[0], carry[0])
}

// TestClassesOfShapes compares the classes with the reference implementation.
func TestClassesOfShapes(t *testing.T) {
	type one struct {
		name string
		in   map[string]native.Tensor
		want *ir.Array
	}
	var entries []ir.Entry
	var list []one
	for _, j := range classes {
		g := j.graph(t)
		in, values := map[string]native.Tensor{}, map[string]*ir.Array{}
		for _, p := range g.Ports() {
			dims, _ := p.Value.Shape().Ints()
			a := ir.NewArray(p.Value.DType(), dims...)
			for i, x := range random(max(len(a.F), len(a.I), len(a.C))) {
				switch {
				case len(a.F) > 0:
					a.F[i] = float64(x)
				case a.DType.IsBool():
					a.I[i] = int64(x*200) % 2
				case len(a.C) > 0:
					a.C[i] = complex(float64(x), 0.5-float64(x*x))
				default:
					a.I[i] = int64(x * 200)
				}
			}
			a.Round()
			in[p.Name], values[p.Name] = native.FromArray(a), a
		}
		want, err := ir.Eval(g, values, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		entries, list = append(entries, ir.Entry{Name: j.name, Graph: g}), append(list, one{j.name, in, want[0]})
	}
	everyLevel(t, func(t *testing.T) {
		p := compileGraphs(t, entries...)
		for _, x := range list {
			r, err := p.Run(t.Context(), x.name, x.in)
			if err != nil {
				t.Fatal(err)
			}
			out, err := r.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range out {
				if text := backendtest.Compare(got, x.want, irtest.Tolerance{Abs: 1e-5, Rel: 1e-5}); text != "" {
					t.Errorf("%s: %s", x.name, text)
				}
			}
		}
	})
}
