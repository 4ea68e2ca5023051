package software

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	implementations["reshape"] = func(c *call) ir.Value { return c.reshaped(c.x()) }
	implementations["transpose"] = func(c *call) ir.Value { return ops.Transpose(c.Builder, c.x(), c.ints("perm")...) }
	implementations["slice_by_index"] = func(c *call) ir.Value {
		begin := c.ints("begin")
		stride := c.ints("stride")
		if stride == nil {
			for range begin {
				stride = append(stride, 1)
			}
		}
		return ops.Slice(c.Builder, c.x(), ir.Dims(begin...), c.dims(), stride)
	}
	implementations["concat"] = func(c *call) ir.Value {
		var parts []ir.Value
		for _, name := range c.argument("values") {
			parts = append(parts, c.values[name])
		}
		return ops.Concatenate(c.Builder, c.axis(parts[0], 0), parts...)
	}
	implementations["pad"] = func(c *call) ir.Value {
		var low, high []int
		for i, p := range c.ints("pad") {
			if i%2 == 0 {
				low = append(low, p)
			} else {
				high = append(high, p)
			}
		}
		return ops.Pad(c.Builder, c.x(), c.like(c.x(), c.number("constant_val", 0)), low, high, make([]int, len(low)))
	}
	implementations["tile"] = func(c *call) ir.Value { return ops.Tile(c.Builder, c.x(), c.ints("reps")...) }
	implementations["reverse"] = func(c *call) ir.Value { return ops.Reverse(c.Builder, c.x(), c.axes(c.x())...) }
	implementations["gather"] = func(c *call) ir.Value {
		axis := c.axis(c.x(), 0)
		return ops.Take(c.Builder, c.x(), c.inside("indices", axis), axis, ops.OutsideFill)
	}
	implementations["gather_along_axis"] = func(c *call) ir.Value {
		axis := c.axis(c.x(), 0)
		return ops.TakeAlongAxis(c.Builder, c.x(), c.inside("indices", axis), axis, ops.OutsideFill)
	}
	implementations["scatter_along_axis"] = scatterAlong
}

// inside returns an argument of indices into an axis of x. Indices out of range fail the run: Core
// ML does not define what they read.
func (c *call) inside(name string, axis int) ir.Value {
	return ops.CheckIndex(c.Builder, c.arg(name), c.x().Dim(axis), "index of gather")
}

// scatterAlong updates elements at indices along an axis; the other axes are matched.
func scatterAlong(c *call) ir.Value {
	data, indices := c.arg("data"), c.arg("indices")
	axis := c.axis(data, 0)
	var batch []int
	for i := range data.Rank() {
		if i != axis {
			batch = append(batch, i)
		}
	}
	scatter := map[string]func(b *ir.Builder, x, indices, updates ir.Value, a ops.ScatterAttrs) ir.Value{
		"update": ops.Scatter, "add": ops.ScatterAdd, "mul": ops.ScatterMul, "min": ops.ScatterMin, "max": ops.ScatterMax,
	}[c.word("mode")]
	if scatter == nil {
		c.Fail(ir.Errorf(ir.ErrUnsupported, "unknown scatter mode %q", c.word("mode")))
		return ir.Value{}
	}
	return scatter(c.Builder, data, ops.ExpandDims(c.Builder, indices, -1), c.arg("updates"), ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{
		Axes: []int{axis}, OperandBatch: batch, IndexBatch: batch,
	}})
}
