package irtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Bounds of the relative error of sums of some 10⁵ positive terms in f32: of sums alone,
// of products, and of compositions.
const (
	sumBound      = 1e-6
	productBound  = 5e-6
	composedBound = 2e-6
)

// LongSum is a graph that adds many positive terms, which tests a device's order of
// summation: a serial sum of 10⁵ equal terms in f32 has an error of 10⁻⁴.
type LongSum struct {
	Graph  *ir.Graph
	Inputs map[string]*ir.Array
	bound  float64 // of the relative error of every element
	want   []float64
}

// Check returns an error unless the output "y" is within the bound.
func (s *LongSum) Check(got []float64) error {
	if len(got) != len(s.want) {
		return fmt.Errorf("%d elements; want %d", len(got), len(s.want))
	}
	worst, at := 0.0, 0
	for i, x := range got {
		if off := math.Abs(x-s.want[i]) / math.Abs(s.want[i]); !(off <= worst) {
			worst, at = off, i
		}
	}
	if !(worst <= s.bound) {
		return fmt.Errorf("element %d of %d is %v; want %v: off by %.2g, more than %.2g", at, len(got), got[at], s.want[at], worst, s.bound)
	}
	return nil
}

// input declares an input of the current float type.
type input = func(name string, dims ...int) ir.Value

// SumCase builds a long sum of a float type over inputs. It is for one goroutine.
type SumCase struct {
	Name string
	sum
	want map[bool][]float64 // results that Make has computed, by equal
}

type sum struct {
	name  string
	bound float64
	build func(b *ir.Builder, x input) ir.Value
}

// LongSums returns sums of n terms: alone, along every kind of axis, inside other ops, as
// scans, as products and as updates of one row.
func LongSums(n int) []SumCase {
	var all []SumCase
	for _, s := range slices.Concat(sums(n), runningSums(n), sumsInOps(n), sumsOfProducts(n)) {
		all = append(all, SumCase{s.name, s, map[bool][]float64{}})
	}
	return all
}

// Make builds the graph in f32 and computes its result in f64. Terms are equal, or spread
// from 1/2 to 1. A second call with equal terms, or with spread ones, computes no results.
func (c *SumCase) Make(equal bool) (*LongSum, error) {
	s := &LongSum{bound: c.bound, Inputs: map[string]*ir.Array{}}
	var err error
	if s.Graph, err = c.graph(ir.F32); err != nil {
		return nil, err
	}
	wide, err := c.graph(ir.F64)
	if err != nil {
		return nil, err
	}
	random, in := rand.New(rand.NewPCG(1, 2)), map[string]*ir.Array{}
	for _, p := range s.Graph.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a, exact := ir.NewArray(ir.F32, dims...), ir.NewArray(ir.F64, dims...)
		for i := range a.F {
			a.F[i] = 0.1
			if !equal {
				a.F[i] = 0.5 + random.Float64()/2
			}
		}
		a.Round()
		copy(exact.F, a.F)
		s.Inputs[p.Name], in[p.Name] = a, exact
	}
	if c.want[equal] == nil {
		want, err := ir.Eval(wide, in, ir.EvalOptions{})
		if err != nil {
			return nil, err
		}
		c.want[equal] = want[0].F
	}
	s.want = c.want[equal]
	return s, nil
}

func (c *SumCase) graph(d ir.DType) (*ir.Graph, error) {
	return ir.Build("sums", func(b *ir.Builder) {
		b.Output("y", c.build(b, func(name string, dims ...int) ir.Value { return b.Input(name, d, ir.Dims(dims...)...) }))
	})
}

// sums are sums alone, along every kind of axis, and inside norms.
func sums(n int) []sum {
	// scaled multiplies every other term by three, so that terms do not vanish when a mean
	// is subtracted.
	scaled := func(b *ir.Builder, x ir.Value, axis int) ir.Value {
		odd := ops.Mod(b, ops.Iota(b, ir.I32, axis, x.Shape()...), ops.Const(b, ir.I32, 2))
		return ops.Mul(b, x, plusOne(b, times(b, ops.Convert(b, odd, x.DType()), 2)))
	}
	return []sum{
		{"all", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.ReduceSum(b, x("x", n)) }},
		{"all of two axes", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.ReduceSum(b, x("x", n/40, 40)) }},
		{"all of many", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.SumAll(b, x("x", n), x("y", n/2)) }},
		{"rows", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.ReduceSum(b, x("x", 3, n), 1) }},
		{"columns", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.ReduceSum(b, x("x", n, 3), 0) }},
		{"many columns", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.ReduceSum(b, x("x", n, 20), 0) }},
		{"middle axis", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.ReduceSum(b, x("x", 2, n, 2), 1) }},
		{"outer axes", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.ReduceSum(b, x("x", n/50, 3, 50), 0, 2) }},
		{"function of terms", sumBound, func(b *ir.Builder, x input) ir.Value {
			v := x("x", 2, n)
			return ops.ReduceSum(b, ops.Mul(b, v, v), 1)
		}},
		{"columns of functions", sumBound, func(b *ir.Builder, x input) ir.Value {
			v := x("x", n, 3)
			return ops.ReduceSum(b, ops.Exp(b, v), 0)
		}},
		{"mean", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.Mean(b, x("x", 2, n), 1) }},
		{"mean of columns", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.Mean(b, x("x", n, 2), 0) }},
		{"variance", composedBound, func(b *ir.Builder, x input) ir.Value { return ops.Var(b, scaled(b, x("x", 2, n), 1), 0, 1) }},
		{"variance of columns", composedBound, func(b *ir.Builder, x input) ir.Value { return ops.Var(b, scaled(b, x("x", n, 3), 0), 0, 0) }},
		{"norm", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.Norm(b, x("x", n), 2, 0) }},
		{"root mean square", composedBound, func(b *ir.Builder, x input) ir.Value {
			v := x("x", 2, n)
			return ops.RMSNorm(b, v, ops.Ones(b, v.DType(), ir.N(n)), 1e-6)
		}},
		{"layer norm", composedBound, func(b *ir.Builder, x input) ir.Value {
			v := scaled(b, x("x", 2, n), 1)
			y := ops.LayerNorm(b, v, ops.Ones(b, v.DType(), ir.N(n)), ops.Zeros(b, v.DType(), ir.N(n)), 1e-6)
			return plusOne(b, ops.Abs(b, y)) // nothing is near 0
		}},
		{"softmax", composedBound, func(b *ir.Builder, x input) ir.Value { return ops.Softmax(b, x("x", 2, n), 1) }},
		{"softmax of columns", composedBound, func(b *ir.Builder, x input) ir.Value { return ops.Softmax(b, x("x", n, 2), 0) }},
		{"logsumexp", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.LogSumExp(b, x("x", 2, n), 1) }},
	}
}

// runningSums are scans.
func runningSums(n int) []sum {
	return []sum{
		{"running sum", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.CumSum(b, x("x", 2, n), ops.CumSumAttrs{Axis: 1}) }},
		{"running sum of one", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.CumSum(b, x("x", n), ops.CumSumAttrs{}) }},
		{"running sum from the end", sumBound, func(b *ir.Builder, x input) ir.Value {
			return ops.CumSum(b, x("x", n+1), ops.CumSumAttrs{Reverse: true})
		}},
		{"running sum of columns", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.CumSum(b, x("x", n, 3), ops.CumSumAttrs{}) }},
		{"running sum of many columns", sumBound, func(b *ir.Builder, x input) ir.Value { return ops.CumSum(b, x("x", n, 9), ops.CumSumAttrs{}) }},
		{"running sum without its own", sumBound, func(b *ir.Builder, x input) ir.Value {
			return plusOne(b, ops.CumSum(b, x("x", n), ops.CumSumAttrs{Exclusive: true}))
		}},
		{"running sum of softmax", composedBound, func(b *ir.Builder, x input) ir.Value {
			return ops.CumSum(b, ops.Softmax(b, x("x", n), 0), ops.CumSumAttrs{})
		}},
		{"running logsumexp", sumBound, func(b *ir.Builder, x input) ir.Value {
			return ops.CumLogSumExp(b, plusOne(b, x("x", n)), ops.CumSumAttrs{})
		}},
	}
}

// sumsInOps are those of losses, and of updates of one row.
func sumsInOps(n int) []sum {
	return []sum{
		{"cross entropy", composedBound, func(b *ir.Builder, x input) ir.Value {
			return ops.CrossEntropyMean(b, x("x", n, 5), ops.Zeros(b, ir.I32, ir.N(n)))
		}},
		{"mean squared error", composedBound, func(b *ir.Builder, x input) ir.Value {
			return ops.MSE(b, x("x", n), times(b, x("y", n), 3), "mean")
		}},
		{"bias gradient", sumBound, func(b *ir.Builder, x input) ir.Value {
			return ops.ReduceSum(b, times(b, x("x", n/10, 10, 4), 2), 0, 1)
		}},
		{"updates of one row", sumBound, func(b *ir.Builder, x input) ir.Value {
			v := x("x", n, 3)
			return ops.ScatterAdd(b, ops.Ones(b, v.DType(), ir.Dims(1, 3)...), ops.Zeros(b, ir.I32, ir.Dims(n, 1)...), v,
				ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
		}},
		{"updates of two rows", sumBound, func(b *ir.Builder, x input) ir.Value {
			v := x("x", 2*n)
			rows := ops.Mod(b, ops.Iota(b, ir.I32, 0, ir.N(2*n)), ops.Const(b, ir.I32, 2))
			return ops.ScatterAdd(b, ops.Ones(b, v.DType(), ir.N(2)), ops.Reshape(b, rows, ir.Dims(2*n, 1)...), v,
				ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
		}},
		{"segment", sumBound, func(b *ir.Builder, x input) ir.Value {
			return ops.SegmentReduce(b, x("x", n), ops.Zeros(b, ir.I32, ir.N(n)), ops.SegmentAttrs{Segments: ir.N(1), Reduction: "sum"})
		}},
	}
}

func times(b *ir.Builder, x ir.Value, by float64) ir.Value {
	return ops.Mul(b, x, ops.ConstLike(b, x, by))
}

func plusOne(b *ir.Builder, x ir.Value) ir.Value {
	return ops.Add(b, x, ops.OnesLike(b, x))
}

// sumsOfProducts are products with long sums.
func sumsOfProducts(n int) []sum {
	product := func(name string, x, y []int) sum {
		return sum{name, productBound, func(b *ir.Builder, in input) ir.Value { return ops.MatMul(b, in("x", x...), in("y", y...)) }}
	}
	return []sum{
		product("dot", []int{n}, []int{n}),
		product("row by matrix", []int{1, n}, []int{n, 5}),
		product("vector by matrix", []int{n}, []int{n, 20}),
		product("matrix by vector", []int{5, n}, []int{n}),
		product("matrix by column", []int{20, n}, []int{n, 1}),
		product("matrices", []int{3, n}, []int{n, 5}),
		product("larger matrices", []int{9, n}, []int{n, 10}),
		product("batch", []int{2, 3, n}, []int{2, n, 4}),
		{"weight gradient", productBound, func(b *ir.Builder, x input) ir.Value {
			return ops.MatMul(b, ops.Transpose(b, x("x", n, 5), 1, 0), x("y", n, 7))
		}},
		{"both transposed", productBound, func(b *ir.Builder, x input) ir.Value {
			return ops.MatMul(b, ops.Transpose(b, x("x", n, 5), 1, 0), ops.Transpose(b, x("y", 7, n), 1, 0))
		}},
		{"sum of two axes", productBound, func(b *ir.Builder, x input) ir.Value {
			return ops.Einsum(b, "abc,bcd->ad", x("x", 3, n/100, 100), x("y", n/100, 100, 5))
		}},
		{"attention", productBound, func(b *ir.Builder, x input) ir.Value {
			return ops.Attention(b, times(b, x("q", 1, 1, 2, 8), 0.01), x("k", 1, 1, n, 8), x("v", 1, 1, n, 8), ir.Value{}, ops.AttentionAttrs{Scale: 1})
		}},
		{"convolution gradient", productBound, func(b *ir.Builder, x input) ir.Value {
			return ops.Einsum(b, "nwc,nwd->cd", x("x", n/50, 50, 3), x("y", n/50, 50, 4))
		}},
	}
}
