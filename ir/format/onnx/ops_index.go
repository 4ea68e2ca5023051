package onnx

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add("Gather", func(c *call) []ir.Value {
		x := c.x(0)
		axis := c.axis("axis", 0, x.Rank())
		return one(ops.Take(c.b, x, index(c, c.x(1), x.Dim(axis)), axis, ops.OutsideClip))
	})
	add("GatherElements", single(gatherElements))
	add("GatherND", single(gatherND))
	for _, name := range []string{"ScatterElements", "Scatter"} {
		add(name, single(scatterElements))
	}
	add("ScatterND", single(scatterND))
	add("OneHot", single(oneHot))
	add("TensorScatter", single(tensorScatter))
	add("Einsum", func(c *call) []ir.Value { return one(ops.Einsum(c.b, c.text("equation", ""), c.xs()...)) })
	add("MatMul", func(c *call) []ir.Value { return one(ops.MatMul(c.b, c.x(0), c.x(1))) })
	add("Gemm", single(gemm))
}

// index counts negative indices from the end of an axis.
func index(c *call, i ir.Value, size ir.Dim) ir.Value {
	if !i.Valid() || i.DType().IsUnsigned() {
		return i
	}
	n := ops.DimSize(c.b, i.DType(), size)
	return ops.Select(c.b, ops.Lt(c.b, i, ops.ConstLike(c.b, i, 0)), ops.Add(c.b, i, n), i)
}

// gatherElements takes, at each index, the element there along the axis and at the index's own
// place along the others, which may be shorter than those of the operand.
func gatherElements(c *call) ir.Value {
	x, i := c.x(0), c.x(1)
	axis := c.axis("axis", 0, x.Rank())
	i = index(c, i, x.Dim(axis))
	return ops.TakeAlongAxis(c.b, shorten(c, x, i, axis), i, axis, ops.OutsideClip)
}

// shorten cuts the axes of x but one to the sizes of another value.
func shorten(c *call, x, to ir.Value, but int) ir.Value {
	if x.Rank() != to.Rank() {
		return x
	}
	for axis := range x.Rank() {
		if axis != but && x.Dim(axis) != to.Dim(axis) {
			x = ops.SliceAxis(c.b, x, axis, ir.N(0), to.Dim(axis))
		}
	}
	return x
}

func gatherND(c *call) ir.Value {
	x, i := c.x(0), c.x(1)
	batch := c.int("batch_dims", 0)
	axes := tuples(c, x, i, batch)
	if c.err != nil {
		return ir.Value{}
	}
	i = indexTuples(c, i, x, axes)
	a := ops.IndexedAxes{Axes: axes, OperandBatch: all(batch), IndexBatch: all(batch), Outside: ops.OutsideClip}
	return ops.Gather(c.b, x, i, ops.GatherAttrs{IndexedAxes: a})
}

// tuples returns the axes of x that the last axis of indices addresses, those after the batch axes.
func tuples(c *call, x, i ir.Value, batch int) []int {
	n, ok := i.Dim(-1).Const()
	if !ok || i.Rank() <= batch || batch < 0 || n+batch > x.Rank() {
		c.fail(ir.Shapef("indices are %s and batch_dims %d: they must fit the operand, %s", i.Shape(), batch, x.Shape()))
		return nil
	}
	return all(batch + n)[batch:]
}

// indexTuples counts negative entries of index tuples from the ends of their axes.
func indexTuples(c *call, i, x ir.Value, axes []int) ir.Value {
	var sizes []ir.Value
	for _, axis := range axes {
		sizes = append(sizes, ops.Reshape(c.b, ops.DimSize(c.b, i.DType(), x.Dim(axis)), ir.N(1)))
	}
	if len(sizes) == 0 {
		return i
	}
	n := ops.Concatenate(c.b, 0, sizes...)
	return ops.Select(c.b, ops.Lt(c.b, i, ops.ConstLike(c.b, i, 0)), ops.Add(c.b, i, n), i)
}

type scatterOp = func(b *ir.Builder, x, indices, updates ir.Value, a ops.ScatterAttrs) ir.Value

// scatter returns the op of the attribute reduction.
func scatter(c *call) scatterOp {
	table := map[string]scatterOp{"none": ops.Scatter, "add": ops.ScatterAdd, "mul": ops.ScatterMul, "max": ops.ScatterMax, "min": ops.ScatterMin}
	f := table[c.text("reduction", "none")]
	if f == nil {
		c.failf("reduction is %q: it must be none, add, mul, max or min", c.text("reduction", ""))
		f = ops.Scatter
	}
	return f
}

// scatterElements is a scatter of single elements: their index along the axis is given, those along
// the others are their own places.
func scatterElements(c *call) ir.Value {
	x, i, updates := c.x(0), c.x(1), c.x(2)
	axis := c.axis("axis", 0, x.Rank())
	i = index(c, i, x.Dim(axis))
	if i.Rank() == 0 {
		c.fail(ir.Shapef("indices are of rank 0: they must have an axis or more"))
		return ir.Value{}
	}
	return scatter(c)(c.b, x, ownPlaces(c, i, axis), updates, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: all(x.Rank())}})
}

// ownPlaces returns for each element of i the tuple of its place, with its value as that along an axis.
func ownPlaces(c *call, i ir.Value, axis int) ir.Value {
	parts := make([]ir.Value, i.Rank())
	for k := range parts {
		if parts[k] = i; k != axis {
			parts[k] = ops.Iota(c.b, i.DType(), k, i.Shape()...)
		}
	}
	return ops.Stack(c.b, i.Rank(), parts...)
}

func scatterND(c *call) ir.Value {
	x, i, updates := c.x(0), c.x(1), c.x(2)
	axes := tuples(c, x, i, 0)
	if c.err != nil {
		return ir.Value{}
	}
	i = indexTuples(c, i, x, axes)
	return scatter(c)(c.b, x, i, updates, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: axes}})
}

// oneHot has the on value at the index, which counts from the end where negative, and the off value
// elsewhere.
func oneHot(c *call) ir.Value {
	i, values := c.x(0), c.x(2)
	depth := c.sizes(1)
	if len(depth) != 1 {
		if a := c.known(1); a == nil || a.Len() != 1 {
			return ir.Value{}
		}
		c.err = nil
		depth = []ir.Dim{ir.N(int(c.in[1].array(c.im).Float(0)))}
	}
	axis := c.axisOf(c.int("axis", -1), i.Rank()+1)
	d := ir.I64
	i = index(c, ops.Convert(c.b, i, d), depth[0])
	shape := append(append(i.Shape()[:axis].Clone(), depth[0]), i.Shape()[axis:]...)
	hot := ops.Eq(c.b, ops.ExpandDims(c.b, i, axis), ops.Iota(c.b, d, axis, shape...))
	value := func(k int) ir.Value { return ops.Reshape(c.b, ops.SliceAxis(c.b, values, 0, ir.N(k), ir.N(1))) }
	return ops.Select(c.b, hot, value(1), value(0))
}

// tensorScatter writes an update at a place of each batch along an axis, in a ring if mode is
// circular.
func tensorScatter(c *call) ir.Value {
	x, update := c.x(0), c.x(1)
	axis := c.axis("axis", -2, x.Rank())
	if update.Rank() != x.Rank() || axis == 0 {
		c.fail(ir.Shapef("the update is %s along axis %d: it must have the axes of the operand, %s, and axis not be 0", update.Shape(), axis, x.Shape()))
		return ir.Value{}
	}
	at := ops.Iota(c.b, ir.I64, axis, update.Shape()...)
	if c.has(2) {
		at = ops.Add(c.b, at, ops.Reshape(c.b, ops.Convert(c.b, c.x(2), ir.I64), alone(x.Dim(0), 0, x.Rank())...))
	}
	switch mode := c.text("mode", "linear"); mode {
	case "linear":
	case "circular":
		at = ops.Mod(c.b, at, ops.DimSize(c.b, ir.I64, x.Dim(axis)))
	default:
		c.failf("mode is %q: it must be linear or circular", mode)
	}
	return ops.Scatter(c.b, x, ownPlaces(c, at, axis), update, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: all(x.Rank()), Unique: true}})
}

// gemm is alpha·a·b + beta·c, with a and b transposed as their attributes say.
func gemm(c *call) ir.Value {
	x, y := c.x(0), c.x(1)
	if x.Rank() != 2 || y.Rank() != 2 {
		c.fail(ir.Shapef("the operands are %s and %s: they must be matrices", x.Shape(), y.Shape()))
		return ir.Value{}
	}
	a := ops.DotAttrs{LhsContract: []int{1}, RhsContract: []int{0}}
	if c.bool("transA") {
		a.LhsContract[0] = 0
	}
	if c.bool("transB") {
		a.RhsContract[0] = 1
	}
	product := scaled(c, ops.DotGeneral(c.b, x, y, a), c.float("alpha", 1))
	if !c.has(2) {
		return product
	}
	return ops.Add(c.b, product, scaled(c, c.x(2), c.float("beta", 1)))
}
