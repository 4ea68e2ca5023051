package ops_test

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// pattern is the array that the golden values were computed for: element i is
// ((37·i + 11 + 5·seed) mod 23 - 11) / 8.
func pattern(seed int, dims []int) *ir.Array {
	a := ir.NewArray(ir.F64, dims...)
	for i := range a.F {
		a.F[i] = float64((i*37+11+seed*5)%23-11) / 8
	}
	return a
}

// digest is the sum of all elements, the element at place i times
// ((29·i + 5) mod 17 - 8) / 4.
func digest(a *ir.Array) float64 {
	sum := 0.0
	for i, x := range a.F {
		sum += x * float64((i*29+5)%17-8) / 4
	}
	return sum
}

type (
	values = []ir.Value
	shapes = [][]int
)

func indices(b *ir.Builder, list []int64, dims ...int) ir.Value {
	return ops.Literal(b, ir.Ints(ir.I32, list, dims...))
}

type goldenCase struct {
	in    shapes
	build func(b *ir.Builder, in values) ir.Value
	dims  []int
	want  float64
}

// golden holds, for patterns of the given shapes, the shape and the digest of
// the result in float64, by NumPy 2, jax.lax 0.10.2 (dot_general,
// conv_general_dilated, cumsum, take, softmax and relatives) and PyTorch 2.15
// (the rest; unfold and fold for windows and overlap_add).
var golden = map[string]goldenCase{
	"vector matrix":     {shapes{{4}, {4, 3}}, matMul, []int{3}, 1.3125},
	"matrix vector":     {shapes{{3, 4}, {4}}, matMul, []int{3}, -1.03125},
	"vector vector":     {shapes{{5}, {5}}, matMul, nil, 0.046875},
	"vector batch":      {shapes{{4}, {2, 4, 3}}, matMul, []int{2, 3}, -1.08984375},
	"batch vector":      {shapes{{2, 3, 4}, {4}}, matMul, []int{2, 3}, 5.43359375},
	"batch matrix":      {shapes{{2, 3, 4}, {4, 5}}, matMul, []int{2, 3, 5}, 4.6171875},
	"broadcast batches": {shapes{{2, 1, 3, 4}, {5, 4, 2}}, matMul, []int{2, 5, 3, 2}, -1.0078125},
	"matrix batch":      {shapes{{3, 4}, {2, 4, 5}}, matMul, []int{2, 3, 5}, 4.25},
	"dot_general": {
		shapes{{3, 4, 2, 5}, {4, 2, 6, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.DotGeneral(b, in[0], in[1], ops.DotAttrs{LhsContract: []int{0}, RhsContract: []int{3}, LhsBatch: []int{2, 1}, RhsBatch: []int{1, 0}})
		},
		[]int{2, 4, 5, 6},
		1.1953125,
	},
	"conv plain": {shapes{{2, 3, 5, 6}, {4, 3, 3, 2}}, conv(ops.ConvAttrs{}), []int{2, 4, 3, 5}, -87.73828125},
	"conv with strides, padding, dilations and groups": {
		shapes{{2, 4, 5, 4}, {6, 2, 2, 3}},
		conv(ops.ConvAttrs{
			Strides: []int{2, 1}, PadLo: []int{1, 0}, PadHi: []int{2, 3}, LhsDilation: []int{3, 2}, RhsDilation: []int{2, 3},
			FeatureGroups: ir.N(2),
		}),
		[]int{2, 6, 7, 4},
		-32.9453125,
	},
	"conv with negative padding": {
		shapes{{1, 2, 9}, {3, 2, 2}},
		conv(ops.ConvAttrs{Strides: []int{2}, PadLo: []int{-2}, PadHi: []int{-1}}),
		[]int{1, 3, 3},
		0.234375,
	},
	"conv with negative padding of dilated elements": {
		shapes{{1, 2, 4}, {3, 2, 2}},
		conv(ops.ConvAttrs{PadLo: []int{-1}, PadHi: []int{2}, LhsDilation: []int{2}}),
		[]int{1, 3, 7},
		-2.80859375,
	},
	"conv with batch groups": {
		shapes{{6, 2, 5}, {9, 2, 3}},
		conv(ops.ConvAttrs{PadLo: []int{1}, PadHi: []int{0}, BatchGroups: ir.N(3)}),
		[]int{2, 9, 4},
		12.328125,
	},
	"conv with another layout": {
		shapes{{5, 2, 3}, {2, 3, 4}},
		conv(ops.ConvAttrs{Lhs: []int{1, 2, 0}, Rhs: []int{2, 1, 0}, Out: []int{2, 0, 1}}),
		[]int{4, 4, 2},
		-8.8671875,
	},
	"conv of three axes": {shapes{{1, 2, 3, 4, 3}, {2, 2, 2, 2, 2}}, conv(ops.ConvAttrs{}), []int{1, 2, 2, 3, 2}, 15.2109375},
	"windows": {
		shapes{{2, 3, 6, 7}},
		func(b *ir.Builder, in values) ir.Value {
			w := ops.Windows(b, in[0], ops.WindowsAttrs{Axes: []int{2, 3}, Sizes: []int{2, 3}, Strides: []int{1, 2}, Dilations: []int{2, 1}})
			return ops.Transpose(b, w, 0, 2, 3, 1, 4, 5)
		},
		[]int{2, 4, 3, 3, 2, 3},
		-2.03125,
	},
	"overlap_add": {
		shapes{{2, 3, 2, 3, 4, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.OverlapAdd(b, ops.Transpose(b, in[0], 0, 4, 5, 1, 2, 3), ops.OverlapAddAttrs{
				Axes: []int{1, 2}, Strides: []int{1, 2}, Dilations: []int{2, 1}, Dims: ir.Dims(6, 7),
			})
		},
		[]int{2, 6, 7, 3},
		4.0625,
	},
	"take": {
		shapes{{3, 5, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Take(b, in[0], indices(b, []int64{4, 0, 2, 2}, 2, 2), 1, ops.OutsideFill)
		},
		[]int{3, 2, 2, 2},
		2.4375,
	},
	"take_along_axis": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.TakeAlongAxis(b, in[0], indices(b, []int64{4, 0, 2, 2, 1, 3}, 3, 2), -1, ops.OutsideFill)
		},
		[]int{3, 2},
		1.46875,
	},
	"cumsum": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.CumSum(b, in[0], ops.CumSumAttrs{Axis: -1}) },
		[]int{3, 5},
		2.78125,
	},
	"cumsum from the end": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.CumSum(b, in[0], ops.CumSumAttrs{Reverse: true}) },
		[]int{3, 5},
		7.09375,
	},
	"softmax": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Softmax(b, in[0], 0) },
		[]int{3, 5},
		-1.1591216622594893,
	},
	"log_softmax": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.LogSoftmax(b, in[0], -1) },
		[]int{3, 5},
		5.3080261717747845,
	},
	"logsumexp": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.LogSumExp(b, in[0], 1) },
		[]int{3},
		-4.0999754265142885,
	},
	"cross_entropy": {
		shapes{{4, 5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.CrossEntropy(b, in[0], indices(b, []int64{4, 0, 2, 2}, 4))
		},
		[]int{4},
		-2.7383672233781535,
	},
	"cross_entropy mean": {
		shapes{{4, 5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.CrossEntropyMean(b, in[0], indices(b, []int64{4, 0, 2, 2}, 4))
		},
		nil, -1.969292369928036,
	},
	"gelu":      {shapes{{23}}, unary(ops.Gelu), []int{23}, 1.1652389450019907},
	"gelu_tanh": {shapes{{23}}, unary(ops.GeluTanh), []int{23}, 1.1648573100377992},
	"silu":      {shapes{{23}}, unary(ops.Silu), []int{23}, 0.9762875905092694},
	"relu":      {shapes{{23}}, unary(ops.Relu), []int{23}, 1.03125},
	"max_pool": {
		shapes{{2, 7, 6, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.MaxPool(b, in[0], ops.PoolAttrs{Sizes: []int{3, 2}, Strides: []int{2, 1}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
		},
		[]int{2, 4, 7, 3},
		-1.15625,
	},
	"max_pool, dilated": {
		shapes{{2, 7, 6, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.MaxPool(b, in[0], ops.PoolAttrs{Sizes: []int{2, 3}, Strides: []int{1, 1}, Dilations: []int{3, 1}})
		},
		[]int{2, 4, 4, 3},
		-4.34375,
	},
	"avg_pool counting padding":     {shapes{{2, 7, 6, 3}}, avgPool(true), []int{2, 4, 7, 3}, -2.781250000000001},
	"avg_pool not counting padding": {shapes{{2, 7, 6, 3}}, avgPool(false), []int{2, 4, 7, 3}, 0.2317708333333337},
	"conv2d": {
		shapes{{2, 7, 6, 4}, {3, 2, 2, 4}, {4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Conv2D(b, in[0], in[1], in[2], ops.Conv2DAttrs{
				Strides: []int{2, 1}, Dilations: []int{1, 2}, PadLo: []int{1, 2}, PadHi: []int{1, 2}, Groups: 2,
			})
		},
		[]int{2, 4, 8, 4},
		-57.92578125,
	},
	"standardize": {
		shapes{{2, 3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.Standardize(b, in[0], 1e-5, 0, 2) },
		[]int{2, 3, 4},
		0.8264944298612379,
	},
	"layer_norm": {
		shapes{{2, 3, 4}, {3, 4}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.LayerNorm(b, in[0], in[1], in[2], 1e-5) },
		[]int{2, 3, 4},
		-3.262424753641252,
	},
	"rms_norm": {
		shapes{{2, 3, 4}, {4}},
		func(b *ir.Builder, in values) ir.Value { return ops.RMSNorm(b, in[0], in[1], 1e-6) },
		[]int{2, 3, 4},
		1.4373003015678658,
	},
	"linear": {
		shapes{{2, 3}, {3, 5}, {5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Linear(b, in[0], in[1], in[2]) },
		[]int{2, 5},
		-4.046875,
	},
	"embedding": {
		shapes{{7, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Embedding(b, in[0], indices(b, []int64{6, 0, 3, 3}, 2, 2))
		},
		[]int{2, 2, 3},
		2.21875,
	},
	"attention":              {qkv, attention(ops.AttentionAttrs{}), []int{2, 4, 5, 7}, 5.2706693726535585},
	"attention with a bias":  {append(slices.Clone(qkv), []int{4, 1, 6}), attention(ops.AttentionAttrs{Scale: 0.3}), []int{2, 4, 5, 7}, 1.1668978959579306},
	"attention with softcap": {qkv, attention(ops.AttentionAttrs{Scale: 0.3, Softcap: 2}), []int{2, 4, 5, 7}, 3.7044395928473697},
	"causal attention": {
		shapes{{2, 4, 5, 3}},
		func(b *ir.Builder, in values) ir.Value {
			q := in[0]
			k, v := ops.Mul(b, q, ops.ConstLike(b, q, 0.5)), ops.Add(b, q, ops.OnesLike(b, q))
			return ops.Attention(b, q, k, v, ir.Value{}, ops.AttentionAttrs{Causal: true})
		},
		[]int{2, 4, 5, 3},
		12.051874200549754,
	},
	"attention with a boolean mask": {
		append(slices.Clone(qkv), nil, []int{5, 6}),
		func(b *ir.Builder, in values) ir.Value {
			// The first key is seen by all, others where the pattern is positive.
			first := ops.Eq(b, ops.Iota(b, ir.I32, 1, ir.Dims(5, 6)...), ops.Const(b, ir.I32, 0))
			mask := ops.Or(b, first, ops.Gt(b, in[4], ops.ZerosLike(b, in[4])))
			return ops.Attention(b, in[0], in[1], in[2], mask, ops.AttentionAttrs{})
		},
		[]int{2, 4, 5, 7},
		5.191887736849026,
	},
	"attention with grouped queries": {
		shapes{{2, 6, 5, 3}, {2, 3, 5, 3}, {2, 3, 5, 4}},
		attention(ops.AttentionAttrs{Causal: true}),
		[]int{2, 6, 5, 4},
		-15.464837791230917,
	},
	"attention's log-sum-exp": {
		qkv,
		func(b *ir.Builder, in values) ir.Value {
			_, lse := ops.AttentionForward(b, in[0], in[1], in[2], ir.Value{}, ops.AttentionAttrs{Scale: 0.3, Softcap: 2})
			return lse
		},
		[]int{2, 4, 5},
		-3.9979329943028032,
	},
}

var qkv = shapes{{2, 4, 5, 3}, {2, 4, 6, 3}, {2, 4, 6, 7}}

func matMul(b *ir.Builder, in values) ir.Value { return ops.MatMul(b, in[0], in[1]) }

func unary(f func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder, in values) ir.Value {
	return func(b *ir.Builder, in values) ir.Value { return f(b, in[0]) }
}

func conv(a ops.ConvAttrs) func(b *ir.Builder, in values) ir.Value {
	return func(b *ir.Builder, in values) ir.Value { return ops.ConvGeneral(b, in[0], in[1], a) }
}

func avgPool(counted bool) func(b *ir.Builder, in values) ir.Value {
	return func(b *ir.Builder, in values) ir.Value {
		return ops.AvgPool(b, in[0], ops.AvgPoolAttrs{
			PoolAttrs:       ops.PoolAttrs{Sizes: []int{3, 2}, Strides: []int{2, 1}, PadLo: []int{1, 1}, PadHi: []int{1, 1}},
			CountIncludePad: counted,
		})
	}
}

func attention(a ops.AttentionAttrs) func(b *ir.Builder, in values) ir.Value {
	return func(b *ir.Builder, in values) ir.Value {
		mask := ir.Value{}
		if len(in) > 3 {
			mask = in[3]
		}
		return ops.Attention(b, in[0], in[1], in[2], mask, a)
	}
}

func TestResultsAgreeWithOtherSystems(t *testing.T) {
	for name, c := range golden {
		inputs := map[string]*ir.Array{}
		g, err := ir.Build("g", func(b *ir.Builder) {
			var in values
			for i, dims := range c.in {
				port := "x" + strconv.Itoa(i)
				inputs[port] = pattern(i+1, dims)
				in = append(in, b.Input(port, ir.F64, ir.Dims(dims...)...))
			}
			b.Output("y", c.build(b, in))
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out, err := evalHeld(g, inputs, ir.EvalOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(out[0].Dims, c.dims) {
			t.Errorf("%s: the shape is %v, want %v", name, out[0].Dims, c.dims)
		}
		if got := digest(out[0]); !(math.Abs(got-c.want) <= 1e-10) {
			t.Errorf("%s: the digest is %v, want %v", name, got, c.want)
		}
	}
}
