package mil

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

func init() {
	declare(CoreML5, inferReshape, []parameter{need("x", anything), known("shape", ints)}, "reshape")
	declare(CoreML5, inferTranspose, []parameter{need("x", anything), known("perm", ints)}, "transpose")
	declare(CoreML5, inferSlice, []parameter{
		need("x", anything), known("begin", ints), known("end", ints), may("stride", ints), may("begin_mask", bools), may("end_mask", bools),
	}, "slice_by_index")
	declare(CoreML5, inferConcat, []parameter{
		{name: "values", takes: anything, list: true}, known("axis", ints), known("interleave", bools),
	}, "concat")
	declare(CoreML5, inferPad, []parameter{
		need("x", floats), known("pad", ints), may("mode", text, "constant"), may("constant_val", floats),
	}, "pad")
	declare(CoreML5, inferTile, []parameter{need("x", anything), known("reps", ints)}, "tile")
	declare(CoreML5, inferReverse, []parameter{need("x", anything), may("axes", ints)}, "reverse")

	mode := may("mode", text, "add", "div", "max", "min", "mul", "sub", "update")
	declare(CoreML5, inferGather, []parameter{need("x", numbers), need("indices", ints), may("axis", ints)}, "gather")
	declare(CoreML5, inferGatherAlong, []parameter{need("x", numbers), need("indices", ints), may("axis", ints)}, "gather_along_axis")
	declare(CoreML5, inferAlong, []parameter{
		need("data", numbers), need("indices", ints), need("updates", numbers), may("axis", ints), mode,
	}, "scatter_along_axis")
}

func inferReshape(c *call) (Type, error) {
	t := Type{c.typ("x").DType, c.ints("shape", nil)}
	if slices.ContainsFunc(t.Dims, func(d int) bool { return d < 1 }) || t.Len() != c.typ("x").Len() {
		return Type{}, ir.Shapef("x is %s; it must have as many elements as %v", c.typ("x"), t.Dims)
	}
	return t, nil
}

func inferTranspose(c *call) (Type, error) {
	x, perm := c.typ("x"), c.ints("perm", nil)
	out := Type{x.DType, make([]int, len(perm))}
	if len(perm) != len(x.Dims) {
		return Type{}, ir.Shapef("x is %s; it must have the axes %v", x, perm)
	}
	seen := make([]bool, len(perm))
	for i, p := range perm {
		a, err := axis(p, len(perm))
		if err != nil || seen[a] {
			return Type{}, ir.Errorf(ir.ErrIndex, "%v is not a permutation", perm)
		}
		seen[a], out.Dims[i] = true, x.Dims[a]
	}
	return out, nil
}

func inferSlice(c *call) (Type, error) {
	x := c.typ("x")
	rank := len(x.Dims)
	begin, end, stride := c.ints("begin", nil), c.ints("end", nil), c.ints("stride", slices.Repeat([]int{1}, rank))
	if c.has("begin_mask") || c.has("end_mask") {
		return Type{}, ir.Errorf(ir.ErrUnsupported, "slices with masks are not supported")
	}
	if len(begin) != rank || len(end) != rank || len(stride) != rank {
		return Type{}, ir.Shapef("a slice of %s from %v to %v by %v is out of range", x, begin, end, stride)
	}
	out := Type{x.DType, make([]int, rank)}
	for i := range begin {
		if begin[i] < 0 || end[i] > x.Dims[i] || begin[i] >= end[i] || stride[i] < 1 {
			return Type{}, ir.Errorf(ir.ErrIndex, "a slice of %s from %v to %v by %v is out of range", x, begin, end, stride)
		}
		out.Dims[i] = (end[i] - begin[i] + stride[i] - 1) / stride[i]
	}
	return out, nil
}

func inferConcat(c *call) (Type, error) {
	first := c.typ("values")
	at, err := axis(c.ints("axis", []int{0})[0], len(first.Dims))
	if err != nil {
		return Type{}, err
	}
	out := Type{first.DType, slices.Clone(first.Dims)}
	for _, r := range c.in["values"][1:] {
		rest := slices.Clone(r.Type.Dims)
		if len(rest) == len(out.Dims) {
			rest[at] = first.Dims[at]
		}
		if r.Type.DType != first.DType || !slices.Equal(rest, first.Dims) {
			return Type{}, ir.Shapef("%s cannot be concatenated to %s on axis %d", r.Type, first, at)
		}
		out.Dims[at] += r.Type.Dims[at]
	}
	return out, nil
}

func inferPad(c *call) (Type, error) {
	x, pad := c.typ("x"), c.ints("pad", nil)
	if len(pad) != 2*len(x.Dims) || slices.ContainsFunc(pad, func(p int) bool { return p < 0 }) {
		return Type{}, ir.Shapef("%s cannot be padded by %v", x, pad)
	}
	out := Type{x.DType, slices.Clone(x.Dims)}
	for i := range out.Dims {
		out.Dims[i] += pad[2*i] + pad[2*i+1]
	}
	return out, nil
}

func inferTile(c *call) (Type, error) {
	x, reps := c.typ("x"), c.ints("reps", nil)
	if len(reps) != len(x.Dims) || slices.ContainsFunc(reps, func(r int) bool { return r < 1 }) {
		return Type{}, ir.Shapef("%s cannot be repeated %v times", x, reps)
	}
	out := Type{x.DType, slices.Clone(x.Dims)}
	for i, r := range reps {
		out.Dims[i] *= r
	}
	return out, nil
}

func inferReverse(c *call) (Type, error) {
	x := c.typ("x")
	for _, a := range c.ints("axes", nil) {
		if _, err := axis(a, len(x.Dims)); err != nil {
			return Type{}, err
		}
	}
	return x, nil
}

func inferGather(c *call) (Type, error) {
	x, indices := c.typ("x"), c.typ("indices")
	at, err := axis(c.ints("axis", []int{0})[0], len(x.Dims))
	if err != nil {
		return Type{}, err
	}
	return Type{x.DType, slices.Concat(x.Dims[:at], indices.Dims, x.Dims[at+1:])}, nil
}

func inferAlong(c *call) (Type, error) {
	data, indices, updates := c.typ("data"), c.typ("indices"), c.typ("updates")
	if _, err := axis(c.ints("axis", []int{0})[0], len(data.Dims)); err != nil {
		return Type{}, err
	}
	if data.DType != updates.DType {
		return Type{}, ir.DTypef("updates are %s and data %s; the types must be equal", updates, data)
	}
	if !slices.Equal(indices.Dims, updates.Dims) || len(data.Dims) != len(indices.Dims) {
		return Type{}, ir.Shapef("data %s, updates %s and indices %s do not match", data, updates, indices)
	}
	return data, nil
}

// inferGatherAlong requires indices that differ from x along the axis alone.
func inferGatherAlong(c *call) (Type, error) {
	x, indices := c.typ("x"), c.typ("indices")
	at, err := axis(c.ints("axis", []int{0})[0], len(x.Dims))
	if err != nil {
		return Type{}, err
	}
	same := slices.Clone(indices.Dims)
	if len(same) == len(x.Dims) {
		same[at] = x.Dims[at]
	}
	if !slices.Equal(same, x.Dims) {
		return Type{}, ir.Shapef("%s cannot be gathered at %s on axis %d", x, indices, at)
	}
	return Type{x.DType, indices.Dims}, nil
}
