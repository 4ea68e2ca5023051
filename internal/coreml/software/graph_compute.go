package software

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	for kind, f := range map[string]func(b *ir.Builder, x ir.Value, axes ...int) ir.Value{
		"reduce_sum": ops.ReduceSum, "reduce_max": ops.ReduceMax, "reduce_min": ops.ReduceMin, "reduce_prod": ops.ReduceProd, "reduce_mean": ops.Mean,
	} {
		implementations[kind] = func(c *call) ir.Value { return c.reshaped(f(c.Builder, c.x(), c.axes(c.x())...)) }
	}
	for kind, f := range map[string]func(b *ir.Builder, x ir.Value, axis int) ir.Value{"reduce_argmax": ops.ArgMax, "reduce_argmin": ops.ArgMin} {
		implementations[kind] = func(c *call) ir.Value { return c.reshaped(f(c.Builder, c.x(), c.axis(c.x(), -1))) }
	}
	implementations["cumsum"] = func(c *call) ir.Value {
		return ops.CumSum(c.Builder, c.x(), ops.CumSumAttrs{Axis: c.axis(c.x(), 0), Exclusive: c.flag("exclusive"), Reverse: c.flag("reverse")})
	}
	implementations["argsort"] = func(c *call) ir.Value {
		return ops.ArgSort(c.Builder, c.x(), ops.SortAttrs{Axis: c.axis(c.x(), -1), Descending: !c.flag("ascending")})
	}
	implementations["softmax"] = func(c *call) ir.Value { return ops.Softmax(c.Builder, c.x(), c.axis(c.x(), -1)) }
	implementations["layer_norm"] = layerNorm
	implementations["matmul"] = matMul
	implementations["conv"] = conv
	implementations["max_pool"] = func(c *call) ir.Value {
		return c.pooled(func(x ir.Value, a ops.PoolAttrs) ir.Value { return ops.MaxPool(c.Builder, x, a) })
	}
	implementations["avg_pool"] = func(c *call) ir.Value {
		return c.pooled(func(x ir.Value, a ops.PoolAttrs) ir.Value {
			return ops.AvgPool(c.Builder, x, ops.AvgPoolAttrs{PoolAttrs: a, CountIncludePad: !c.flag("exclude_padding_from_average")})
		})
	}
	implementations["scaled_dot_product_attention"] = func(c *call) ir.Value {
		mask := ir.Value{}
		if c.has("attn_mask") {
			mask = c.arg("attn_mask")
		}
		return ops.Attention(c.Builder, c.arg("query"), c.arg("key"), c.arg("value"), mask, ops.AttentionAttrs{})
	}
	implementations["constexpr_blockwise_shift_scale"] = blockwise
}

// blockwise multiplies integers by the scale of their block, after subtracting its offset.
func blockwise(c *call) ir.Value {
	data, scale := c.constants[c.name("data")], c.arg("scale")
	a := ir.NewArray(scale.DType(), data.Type.Dims...)
	for i := range a.Len() {
		a.F[i] = data.Number(i)
	}
	numbers := ops.Literal(c.Builder, a)
	each := func(x ir.Value) ir.Value {
		for axis, d := range data.Type.Dims {
			n, _ := x.Dim(axis).Const()
			x = ops.Repeat(c.Builder, x, axis, d/n)
		}
		return x
	}
	if c.has("offset") {
		numbers = ops.Sub(c.Builder, numbers, each(c.arg("offset")))
	}
	return ops.Mul(c.Builder, numbers, each(scale))
}

// reshaped returns a value with the declared sizes of the result.
func (c *call) reshaped(v ir.Value) ir.Value { return ops.Reshape(c.Builder, v, c.dims()...) }

// layerNorm normalises over the last axes, the only ones that rlx writes.
func layerNorm(c *call) ir.Value {
	x, b := c.x(), c.Builder
	axes := c.axes(x)
	mean := ops.ExpandDims(b, ops.Mean(b, x, axes...), axes...)
	centred := ops.Sub(b, x, mean)
	variance := ops.ExpandDims(b, ops.Mean(b, ops.Mul(b, centred, centred), axes...), axes...)
	y := ops.Div(b, centred, ops.Sqrt(b, ops.Add(b, variance, c.like(x, c.number("epsilon", 1e-5)))))
	if c.has("gamma") {
		y = ops.Mul(b, y, c.arg("gamma"))
	}
	if c.has("beta") {
		y = ops.Add(b, y, c.arg("beta"))
	}
	return y
}

func matMul(c *call) ir.Value {
	swapped := func(v ir.Value, swap bool) ir.Value {
		if !swap {
			return v
		}
		return ops.SwapAxes(c.Builder, v, -1, -2)
	}
	return ops.MatMul(c.Builder, swapped(c.x(), c.flag("transpose_x")), swapped(c.y(), c.flag("transpose_y")))
}

// padding returns the padding before and after each of n spatial axes.
func (c *call) padding(n int) (low, high []int) {
	low, high = make([]int, n), make([]int, n)
	if c.word("pad_type") == "custom" {
		for i, p := range c.ints("pad", make([]int, 2*n)...) {
			if i%2 == 0 {
				low[i/2] = p
			} else {
				high[i/2] = p
			}
		}
	}
	return low, high
}

func conv(c *call) ir.Value {
	n := c.x().Rank() - 2
	ones := slices.Repeat([]int{1}, n)
	low, high := c.padding(n)
	return ops.ConvGeneral(c.Builder, c.x(), c.arg("weight"), ops.ConvAttrs{
		Strides: c.ints("strides", ones...), RhsDilation: c.ints("dilations", ones...), PadLo: low, PadHi: high,
		FeatureGroups: ir.N(c.ints("groups", 1)[0]),
	})
}

// pooled moves the channels to the end, as the ops for pools require, and back.
func (c *call) pooled(pool func(x ir.Value, a ops.PoolAttrs) ir.Value) ir.Value {
	rank := c.x().Rank()
	n := rank - 2
	back, forth := []int{0, rank - 1}, []int{0}
	for i := range n {
		back, forth = append(back, i+1), append(forth, i+2)
	}
	low, high := c.padding(n)
	y := pool(ops.Transpose(c.Builder, c.x(), append(forth, 1)...), ops.PoolAttrs{
		Sizes: c.ints("kernel_sizes"), Strides: c.ints("strides", slices.Repeat([]int{1}, n)...), PadLo: low, PadHi: high,
	})
	return ops.Transpose(c.Builder, y, back...)
}
