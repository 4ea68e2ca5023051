package cpu_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

type (
	unaryOp  = func(b *ir.Builder, x ir.Value) ir.Value
	binaryOp = func(b *ir.Builder, x, y ir.Value) ir.Value
)

// wideSizes are the numbers of elements of the inputs of wide jobs.
var wideSizes = []int{1 << 10, 1 << 16, 1 << 20}

var (
	wideFloats   = []ir.DType{ir.F32, ir.F64, ir.BF16}
	wideNumbers  = []ir.DType{ir.F32, ir.F64, ir.BF16, ir.I32}
	wideIntegers = []ir.DType{ir.I32, ir.I64}
	wideDoubles  = []ir.DType{ir.F32, ir.F64}
)

// wideUnary are functions of one number, by PyTorch's names.
var wideUnary = map[string]unaryOp{
	"neg": ops.Neg, "abs": ops.Abs, "exp": ops.Exp, "expm1": ops.Expm1, "exp2": ops.Exp2, "log": ops.Log, "log1p": ops.Log1p,
	"log2": ops.Log2, "log10": ops.Log10, "sqrt": ops.Sqrt, "rsqrt": ops.Rsqrt, "reciprocal": ops.Reciprocal, "sin": ops.Sin,
	"cos": ops.Cos, "tan": ops.Tan, "asin": ops.Asin, "acos": ops.Acos, "atan": ops.Atan, "sinh": ops.Sinh, "cosh": ops.Cosh,
	"tanh": ops.Tanh, "asinh": ops.Asinh, "atanh": ops.Atanh, "sigmoid": ops.Sigmoid, "erf": ops.Erf, "erfc": ops.Erfc,
	"erfinv": ops.Erfinv, "lgamma": ops.Lgamma, "digamma": ops.Digamma, "floor": ops.Floor, "round": ops.Round, "sign": ops.Sign,
	"gelu": ops.Gelu, "silu": ops.Silu, "softplus": ops.Softplus, "relu": ops.Relu, "mish": ops.Mish, "logsigmoid": ops.LogSigmoid,
}

// wideBinary are functions of two numbers, wideWhole those of integers.
var (
	wideBinary = map[string]binaryOp{
		"add": ops.Add, "mul": ops.Mul, "div": ops.Div, "pow": ops.Pow, "atan2": ops.Atan2, "maximum": ops.Max, "fmod": ops.Rem,
		"remainder": ops.Mod, "floor_divide": ops.FloorDivide, "hypot": ops.Hypot, "logaddexp": ops.LogAddExp, "lt": ops.Lt,
	}
	wideWhole = map[string]binaryOp{
		"add": ops.Add, "mul": ops.Mul, "maximum": ops.Max, "fmod": ops.Rem, "remainder": ops.Mod, "floor_divide": ops.FloorDivide,
		"bitwise_and": ops.And, "lt": ops.Lt,
	}
)

func reduceOver(f func(b *ir.Builder, x ir.Value, axes ...int) ir.Value, axes ...int) unaryOp {
	return func(b *ir.Builder, x ir.Value) ir.Value { return f(b, x, axes...) }
}

func along(f func(b *ir.Builder, x ir.Value, axis int) ir.Value, axis int) unaryOp {
	return func(b *ir.Builder, x ir.Value) ir.Value { return f(b, x, axis) }
}

// wideRows are functions of a square matrix.
var wideRows = map[string]unaryOp{
	"sum 0": reduceOver(ops.ReduceSum, 0), "sum 1": reduceOver(ops.ReduceSum, 1), "sum all": reduceOver(ops.ReduceSum, 0, 1),
	"amax 0": reduceOver(ops.ReduceMax, 0), "amax 1": reduceOver(ops.ReduceMax, 1), "amax all": reduceOver(ops.ReduceMax, 0, 1),
	"argmax 0": along(ops.ArgMax, 0), "argmax 1": along(ops.ArgMax, 1),
	"cumsum 0": running(ops.CumSum, 0), "cumsum 1": running(ops.CumSum, 1),
	"sort 0":    func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sort(b, ops.SortAttrs{Axis: 0}, x)[0] },
	"sort 1":    func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sort(b, ops.SortAttrs{Axis: 1}, x)[0] },
	"argsort 1": func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgSort(b, x, ops.SortAttrs{Axis: 1}) },
	"topk 1": func(b *ir.Builder, x ir.Value) ir.Value {
		y, _ := ops.TopK(b, x, ops.TopKAttrs{K: 10, Axis: 1})
		return y
	},
	"transpose": func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0) },
	"flip 1":    func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, 1) },
	"roll 1":    func(b *ir.Builder, x ir.Value) ir.Value { return ops.Roll(b, x, 1, 3) },
	"tril":      func(b *ir.Builder, x ir.Value) ir.Value { return ops.Tril(b, x, 0) },
	"cat 1":     func(b *ir.Builder, x ir.Value) ir.Value { return ops.Concatenate(b, 1, x, x) },
	"repeat 1":  func(b *ir.Builder, x ir.Value) ir.Value { return ops.Repeat(b, x, 1, 2) },
	"index_select 0": func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Take(b, x, scattered(b, x), 0, ops.OutsideClip)
	},
	"index_select 1": func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Take(b, x, scattered(b, x), 1, ops.OutsideClip)
	},
	"gather 1": func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.TakeAlongAxis(b, x, ops.BroadcastTo(b, scattered(b, x), x.Shape()), 1, ops.OutsideClip)
	},
	"index_add 0": func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.ScatterAdd(b, x, ops.ExpandDims(b, scattered(b, x), -1), x, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
	},
	"where": func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Select(b, ops.Lt(b, x, ops.Transpose(b, x, 1, 0)), x, ops.ConstLike(b, x, 1))
	},
	"broadcast add": func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Add(b, x, b.Input("y", x.DType(), ir.N(side(x))))
	},
}

// wideFloatRows are functions of a square matrix of floats.
var wideFloatRows = map[string]unaryOp{
	"mean 1": reduceOver(ops.Mean, 1), "prod 1": reduceOver(ops.ReduceProd, 1), "softmax 1": along(ops.Softmax, 1), "softmax 0": along(ops.Softmax, 0),
	"logsumexp 1": along(ops.LogSumExp, 1), "log_softmax 1": along(ops.LogSoftmax, 1),
	"var 0":     func(b *ir.Builder, x ir.Value) ir.Value { return ops.Var(b, x, 1, 0) },
	"var 1":     func(b *ir.Builder, x ir.Value) ir.Value { return ops.Var(b, x, 1, 1) },
	"norm 1":    func(b *ir.Builder, x ir.Value) ir.Value { return ops.Norm(b, x, 2, 1) },
	"median 1":  func(b *ir.Builder, x ir.Value) ir.Value { return ops.Median(b, x, 1) },
	"cumprod 1": running(ops.CumProd, 1), "cummax 1": running(ops.CumMax, 1), "logcumsumexp 1": running(ops.CumLogSumExp, 1),
	"max_pool": func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.MaxPool(b, imagesOf(b, x), ops.PoolAttrs{Sizes: []int{3, 3}, Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
	},
	"avg_pool": func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.AvgPool(b, imagesOf(b, x), ops.AvgPoolAttrs{PoolAttrs: ops.PoolAttrs{Sizes: []int{3, 3}, Strides: []int{1, 1}, PadLo: []int{1, 1}, PadHi: []int{1, 1}}, CountIncludePad: true})
	},
	"nearest":  resizedTwice(ops.ResizeNearest),
	"bilinear": resizedTwice(ops.ResizeLinear),
	"bicubic":  resizedTwice(ops.ResizeCubic),
}

// wideProducts are products and factorisations of batches of matrices of 4 to 32 rows, and of one matrix.
var wideProducts = map[string]unaryOp{
	"matmul":   func(b *ir.Builder, x ir.Value) ir.Value { return ops.MatMul(b, x, x) },
	"cholesky": func(b *ir.Builder, x ir.Value) ir.Value { return ops.Cholesky(b, spread(b, x)) },
	"lu":       func(b *ir.Builder, x ir.Value) ir.Value { y, _, _ := ops.LU(b, spread(b, x)); return y },
	"qr": func(b *ir.Builder, x ir.Value) ir.Value {
		q, r := ops.QR(b, spread(b, x), false)
		return ops.Add(b, q, r)
	},
	"eigh": func(b *ir.Builder, x ir.Value) ir.Value {
		w, v := ops.Eigh(b, spread(b, x))
		return ops.Add(b, v, ops.ExpandDims(b, w, -1))
	},
	"svd": func(b *ir.Builder, x ir.Value) ir.Value {
		u, s, vt := ops.SVD(b, spread(b, x), false)
		return ops.Add(b, ops.Add(b, u, vt), ops.ExpandDims(b, s, -1))
	},
	"solve":            func(b *ir.Builder, x ir.Value) ir.Value { return ops.Solve(b, spread(b, x), x, ops.SolveAttrs{}) },
	"inv":              func(b *ir.Builder, x ir.Value) ir.Value { return ops.Inv(b, spread(b, x)) },
	"det":              func(b *ir.Builder, x ir.Value) ir.Value { return ops.Det(b, spread(b, x)) },
	"solve_triangular": func(b *ir.Builder, x ir.Value) ir.Value { return triangular(b, x, x) },
}

// side returns the number of columns.
func side(x ir.Value) int {
	dims, _ := x.Shape().Ints()
	return dims[len(dims)-1]
}

// scattered are as many indices as a matrix has columns, in an order that the compiler does not know.
func scattered(b *ir.Builder, x ir.Value) ir.Value {
	n := side(x)
	at := ops.Add(b, b.Input("ids", ir.I32, ir.N(n)), ops.Iota(b, ir.I32, 0, ir.N(n)))
	return ops.Rem(b, ops.Mul(b, at, ops.ConstLike(b, at, 7)), ops.ConstLike(b, at, float64(n)))
}

// imagesOf are images of 16 channels with the numbers of a matrix.
func imagesOf(b *ir.Builder, x ir.Value) ir.Value {
	n := side(x)
	return ops.Reshape(b, x, ir.Dims(1, n/4, n/4, 16)...)
}

func resizedTwice(mode string) unaryOp {
	return func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Resize(b, imagesOf(b, x), ops.ResizeAttrs{Sizes: []int{side(x) / 2, side(x) / 2}, Mode: mode})
	}
}

// spread makes the diagonal of matrices dominant.
func spread(b *ir.Builder, x ir.Value) ir.Value {
	n := side(x)
	return dominant(b, x, n, n)
}

// wide returns the jobs over all ops: each function, type and size.
func wide() []job {
	var jobs []job
	add := func(list map[string]unaryOp, types []ir.DType, dims func(n int) []int) {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			for _, t := range types {
				for _, n := range wideSizes {
					jobs = append(jobs, typed(fmt.Sprint(name, " ", t, " ", n), t, list[name], dims(n)...))
				}
			}
		}
	}
	of := func(list map[string]binaryOp) map[string]unaryOp {
		out := map[string]unaryOp{}
		for name, f := range list {
			out[name] = func(b *ir.Builder, x ir.Value) ir.Value { return f(b, x, b.Input("y", x.DType(), x.Shape()...)) }
		}
		return out
	}
	vector := func(n int) []int { return []int{n} }
	matrix := func(n int) []int { s := int(math.Sqrt(float64(n))); return []int{s, s} }
	add(wideUnary, wideFloats, vector)
	add(of(wideBinary), wideFloats, vector)
	add(of(wideWhole), wideIntegers, vector)
	add(wideRows, wideNumbers, matrix)
	add(wideFloatRows, wideFloats, matrix)
	for _, side := range []int{3, 8, 32, 128} {
		for _, name := range slices.Sorted(maps.Keys(wideProducts)) {
			for _, t := range wideDoubles {
				batch := max(1, 1<<18/(side*side*side))
				jobs = append(jobs, typed(fmt.Sprint(name, " ", side, " ", t, " ", batch), t, wideProducts[name], batch, side, side))
			}
		}
	}
	return jobs
}

// BenchmarkWide runs the wide jobs beside PyTorch's, as [BenchmarkSingles].
func BenchmarkWide(b *testing.B) { benchmarkPairs(b, wide(), "peers/wide.py") }

// TestWideJobsAreGraphs keeps the jobs valid between runs of the benchmark.
func TestWideJobsAreGraphs(t *testing.T) {
	for _, j := range wide() {
		if g := j.graph(t); len(g.Outputs()) == 0 {
			t.Errorf("%s computes nothing", j.name)
		}
	}
}
