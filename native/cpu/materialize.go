package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// resultID is the tensor ID of a step's result in the loads of the nest after it.
const resultID = -4

// materialize stores values to scratch memory as a row-major array. Its nest may itself materialise what it reads, so
// that each buffer has an ID of its own.
func (c *compiler) materialize(name string, x fusion.Elements) (*buffer, error) {
	buf := c.scratch(x.Value.Type, product(x.Dims))
	code := &fusion.Code{Rows: []fusion.ElementStore{{
		Tensor: &fusion.Tensor{ID: c.bufferID(buf), Name: name, DType: x.Value.Type},
		Offset: scalar.Simplify(linear(x.Dims, x.At)), Value: x.Value,
	}}}
	var dims []int
	code.Outer, dims = coordinates(x.At, x.Dims)
	return buf, c.nest(name, code, dims, nil, nil)
}

// operand is [compiler.materialize] of values that are only read. Where they are a row-major array
// in memory already, other than out, that is the operand.
func (c *compiler) operand(name string, x fusion.Elements, out *buffer) (*buffer, error) {
	if e := x.Value; e.Op == scalar.OpLoad {
		buf := c.buffers[e.Ref]
		whole := buf != nil && buf != out && buf.dtype == e.Type && buf.elems == product(x.Dims)
		if whole && scalar.Equal(scalar.Simplify(e.Args[0]), scalar.Simplify(linear(x.Dims, x.At))) {
			return buf, nil
		}
	}
	return c.materialize(name, x)
}

// storeResult stores a step's row-major result where the group's result is.
func (c *compiler) storeResult(name string, space fusion.Elements, buf *buffer, store func(value scalar.Expr) fusion.ElementStore) error {
	value := scalar.LoadAt(resultID, buf.dtype, scalar.Simplify(linear(space.Dims, space.At)))
	code := &fusion.Code{Rows: []fusion.ElementStore{store(value)}}
	var dims []int
	code.Outer, dims = coordinates(space.At, space.Dims)
	return c.nest(name, code, dims, nil, map[int]*buffer{resultID: buf})
}

// resultBuffer returns the memory of a group's result where that is a step's row-major result as it is, and the step
// may write it; nil otherwise.
func resultBuffer(buffers map[int]*buffer, space fusion.Elements, store fusion.ElementStore, value scalar.Expr) *buffer {
	to, elems := buffers[store.Tensor.ID], product(space.Dims)
	if to == nil || store.Guarded || store.Value != value || to.dtype != value.Type || to.elems != elems ||
		!scalar.Equal(scalar.Simplify(store.Offset), scalar.Simplify(linear(space.Dims, space.At))) {
		return nil
	}
	return to
}

// sort compiles a sort: it materialises the keys, argsorts them, and stores the result.
func (c *compiler) sort(g *fusion.Group) error {
	x := fusion.SortOf(g)
	if x.Rows*x.First == 0 {
		return nil
	}
	keys, err := c.materialize(g.Name()+" keys", x.Keys)
	if err != nil {
		return err
	}
	s := newSort(c, keys, x)
	c.add(s)
	return c.storeResult(g.Name(), x.Order, s.order, x.Out)
}

// scatter compiles a scatter: it materialises the row indices, the updates and the operand,
// and combines the updates into it.
func (c *compiler) scatter(g *fusion.Group) error {
	x := g.Scatter()
	s := &scatterStep{
		x: x, env: c.env, out: c.buffers[x.Out.ID], guarded: x.Store(g, x.Operand.Value).Guarded,
	}
	var err error
	if s.row, err = c.operand(g.Name()+" rows", x.Row, s.out); err != nil {
		return err
	}
	if s.update, err = c.operand(g.Name()+" updates", x.Update, s.out); err != nil {
		return err
	}
	direct := x.Out.Outer == nil
	switch {
	case !direct:
		s.guarded = false
		if s.out, err = c.materialize(g.Name()+" base", x.Operand); err != nil {
			return err
		}
	case !x.InPlace:
		base := fusion.Elements{Dims: x.Operand.Dims, At: x.Operand.At}
		if err = c.runStore(g.Name()+" base", base, x.Store(g, x.Operand.Value)); err != nil {
			return err
		}
	}
	c.add(newScatter(c, s))
	if direct {
		return nil
	}
	return c.storeResult(g.Name(), x.Operand, s.out, func(value scalar.Expr) fusion.ElementStore { return x.Store(g, value) })
}

// runStore executes one store for all points of a space.
func (c *compiler) runStore(name string, space fusion.Elements, store fusion.ElementStore) error {
	code := &fusion.Code{Rows: []fusion.ElementStore{store}}
	var dims []int
	code.Outer, dims = coordinates(space.At, space.Dims)
	return c.nest(name, code, dims, nil, nil)
}
