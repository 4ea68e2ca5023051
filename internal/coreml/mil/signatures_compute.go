package mil

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
)

func init() {
	keep := may("keep_dims", bools)
	declare(CoreML5, inferReduce, []parameter{need("x", numbers), may("axes", ints), keep},
		"reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_mean")
	declare(CoreML5, inferArgReduce, []parameter{need("x", numbers), may("axis", ints), keep}, "reduce_argmax", "reduce_argmin")
	declare(CoreML5, inferAlongAxis, []parameter{need("x", numbers), may("axis", ints), may("exclusive", bools), may("reverse", bools)}, "cumsum")
	declare(CoreML5, inferArgSort, []parameter{need("x", numbers), may("axis", ints), may("ascending", bools)}, "argsort")
	declare(CoreML5, inferAlongAxis, []parameter{need("x", floats), may("axis", ints)}, "softmax")
	declare(CoreML5, inferLayerNorm, []parameter{
		need("x", floats), may("axes", ints), may("gamma", floats), may("beta", floats), may("epsilon", floats),
	}, "layer_norm")

	declare(CoreML5, inferMatMul, []parameter{
		need("x", numbers), need("y", numbers), may("transpose_x", bools), may("transpose_y", bools),
	}, "matmul")
	padding := may("pad_type", text, "valid", "custom")
	declare(CoreML5, inferConv, []parameter{
		need("x", floats), need("weight", floats), may("strides", ints), padding, may("pad", ints), may("dilations", ints), may("groups", ints),
	}, "conv")
	pool := []parameter{need("x", floats), known("kernel_sizes", ints), may("strides", ints), padding, may("pad", ints), may("ceil_mode", bools)}
	declare(CoreML5, inferPool, pool, "max_pool")
	declare(CoreML5, inferPool, append(slices.Clone(pool), may("exclude_padding_from_average", bools)), "avg_pool")
	declare(CoreML8, inferAttention, []parameter{
		need("query", floats), need("key", floats), need("value", floats), {name: "attn_mask", takes: floats | bools, optional: true},
	}, "scaled_dot_product_attention")

	declare(CoreML8, func(c *call) (Type, error) { return c.typ("input"), nil }, []parameter{need("input", states)}, opReadState)
	declare(CoreML8, inferWriteState, []parameter{need("input", states), need("data", floats)}, opWriteState)
	declare(CoreML8, inferBlockwise, []parameter{known("data", packed), known("scale", floats), may("offset", floats|packed)}, "constexpr_blockwise_shift_scale")
}

func inferReduce(c *call) (Type, error) {
	x := c.typ("x")
	out, keep := slices.Clone(x.Dims), c.flag("keep_dims")
	reduced := make([]bool, len(out))
	for _, a := range c.ints("axes", permute.Counting(0, len(out))) {
		at, err := axis(a, len(out))
		if err != nil || reduced[at] {
			return Type{}, ir.Errorf(ir.ErrIndex, "axis %d of %s is out of range or repeated", a, x)
		}
		reduced[at] = true
		out[at] = 1
	}
	if !keep {
		for at := len(out) - 1; at >= 0; at-- {
			if reduced[at] {
				out = slices.Delete(out, at, at+1)
			}
		}
	}
	return Type{x.DType, out}, nil
}

func inferArgReduce(c *call) (Type, error) {
	along := &call{in: map[string][]Ref{"x": c.in["x"], "keep_dims": c.in["keep_dims"], "axes": c.in["axis"]}}
	t, err := inferReduce(along)
	return Type{Int32, t.Dims}, err
}

// inferAlongAxis is the rule of operations along an axis of x that keep its type.
func inferAlongAxis(c *call) (Type, error) {
	x := c.typ("x")
	_, err := axis(c.ints("axis", []int{-1})[0], len(x.Dims))
	return x, err
}

func inferArgSort(c *call) (Type, error) {
	t, err := inferAlongAxis(c)
	return Type{Int32, t.Dims}, err
}

func inferLayerNorm(c *call) (Type, error) {
	x := c.typ("x")
	var normalised []int
	for _, a := range c.ints("axes", permute.Counting(0, len(x.Dims))) {
		at, err := axis(a, len(x.Dims))
		if err != nil {
			return Type{}, err
		}
		normalised = append(normalised, x.Dims[at])
	}
	for _, p := range []string{"gamma", "beta"} {
		if c.has(p) && !slices.Equal(c.typ(p).Dims, normalised) {
			return Type{}, ir.Shapef("%s is %s; it must have the sizes %v", p, c.typ(p), normalised)
		}
	}
	return x, nil
}

func inferMatMul(c *call) (Type, error) {
	x, y := c.typ("x"), c.typ("y")
	if x.DType != y.DType {
		return Type{}, ir.DTypef("x is %s and y is %s; the types must be equal", x, y)
	}
	if len(x.Dims) < 2 || len(y.Dims) < 2 {
		return Type{}, ir.Shapef("x is %s and y is %s; each must have two axes", x, y)
	}
	last := func(t Type, swap bool) (rows, columns int) {
		rows, columns = t.Dims[len(t.Dims)-2], t.Dims[len(t.Dims)-1]
		if swap {
			rows, columns = columns, rows
		}
		return rows, columns
	}
	m, k := last(x, c.flag("transpose_x"))
	k2, n := last(y, c.flag("transpose_y"))
	batch, err := broadcast(x.Dims[:len(x.Dims)-2], y.Dims[:len(y.Dims)-2])
	if err != nil || k != k2 {
		return Type{}, ir.Shapef("x is %s and y is %s; their sizes do not match", x, y)
	}
	return Type{x.DType, append(batch, m, n)}, nil
}

// windows returns the spatial sizes of the result of a windowed operation.
func (c *call) windows(spatial, sizes []int) ([]int, error) {
	n := len(spatial)
	strides, dilations := c.ints("strides", slices.Repeat([]int{1}, n)), c.ints("dilations", slices.Repeat([]int{1}, n))
	pad := slices.Repeat([]int{0}, 2*n)
	if c.word("pad_type") == "custom" {
		pad = c.ints("pad", pad)
	}
	if len(sizes) != n || len(strides) != n || len(dilations) != n || len(pad) != 2*n || n < 1 || n > 3 {
		return nil, ir.Shapef("windows %v, strides %v, dilations %v and pad %v do not match the axes %v", sizes, strides, dilations, pad, spatial)
	}
	out := make([]int, n)
	for i := range out {
		room := spatial[i] + pad[2*i] + pad[2*i+1] - (sizes[i]-1)*dilations[i] - 1
		if strides[i] < 1 || dilations[i] < 1 || sizes[i] < 1 || room < 0 {
			return nil, ir.Shapef("a window of %d with stride %d does not fit axis %d of size %d", sizes[i], strides[i], i, spatial[i])
		}
		out[i] = room/strides[i] + 1
	}
	return out, nil
}

func inferConv(c *call) (Type, error) {
	x, w := c.typ("x"), c.typ("weight")
	groups := c.ints("groups", []int{1})[0]
	if x.DType != w.DType {
		return Type{}, ir.DTypef("x is %s and the weights are %s; the types must be equal", x, w)
	}
	if len(x.Dims) < 3 || len(x.Dims) != len(w.Dims) || groups < 1 || x.Dims[1] != w.Dims[1]*groups || w.Dims[0]%groups != 0 {
		return Type{}, ir.Shapef("x is %s and the weights are %s; they do not match for %d groups", x, w, groups)
	}
	if c.in["weight"][0].Value == nil && slices.ContainsFunc(c.ints("dilations", nil), func(d int) bool { return d != 1 }) {
		return Type{}, ir.Errorf(ir.ErrUnsupported, "weights with dilation must be constant")
	}
	spatial, err := c.windows(x.Dims[2:], w.Dims[2:])
	return Type{x.DType, append([]int{x.Dims[0], w.Dims[0]}, spatial...)}, err
}

func inferPool(c *call) (Type, error) {
	x := c.typ("x")
	if len(x.Dims) < 3 {
		return Type{}, ir.Shapef("%s has no spatial axis", x)
	}
	spatial, err := c.windows(x.Dims[2:], c.ints("kernel_sizes", nil))
	return Type{x.DType, append([]int{x.Dims[0], x.Dims[1]}, spatial...)}, err
}

func inferAttention(c *call) (Type, error) {
	q, k, v := c.typ("query"), c.typ("key"), c.typ("value")
	r := len(q.Dims)
	if r < 3 || len(k.Dims) != r || len(v.Dims) != r || k.Dims[r-1] != q.Dims[r-1] || k.Dims[r-2] != v.Dims[r-2] ||
		q.DType != k.DType || q.DType != v.DType {
		return Type{}, ir.Shapef("query %s, key %s and value %s do not match", q, k, v)
	}
	return Type{q.DType, append(slices.Clone(q.Dims[:r-1]), v.Dims[r-1])}, nil
}

func inferWriteState(c *call) (Type, error) {
	if !c.typ("input").Equal(c.typ("data")) {
		return Type{}, ir.Shapef("the state is %s; the data are %s", c.typ("input"), c.typ("data"))
	}
	return Type{}, nil
}

func inferBlockwise(c *call) (Type, error) {
	data, scale := c.typ("data"), c.typ("scale")
	if len(data.Dims) != len(scale.Dims) {
		return Type{}, ir.Shapef("data are %s and scales %s; they do not match", data, scale)
	}
	for i, d := range scale.Dims {
		if d < 1 || data.Dims[i]%d != 0 {
			return Type{}, ir.Shapef("data are %s and scales %s; they do not match", data, scale)
		}
	}
	if offset := c.typ("offset"); c.has("offset") && (!slices.Equal(offset.Dims, scale.Dims) || !offset.DType.IsFloat() && offset.DType != data.DType) {
		return Type{}, ir.Shapef("data are %s, scales %s and offsets %s; they do not match", data, scale, offset)
	}
	return Type{scale.DType, data.Dims}, nil
}
