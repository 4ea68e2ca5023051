// Package argument checks the arguments of functions that compose ops over a builder, such as those
// of packages image, signal and stats.
package argument

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Check holds the builder of a function, its name and its operands, for its errors.
type Check struct {
	*ir.Builder
	Op ir.Op
	In []ir.Value
}

// Of returns a check, and whether the builder has no error and all operands are given.
func Of(b *ir.Builder, op ir.Op, in ...ir.Value) (c Check, ok bool) {
	for _, x := range in {
		b.Require(op, "operand", x.Valid())
	}
	return Check{b, op, in}, b.Err() == nil
}

// That records err unless ok, and reports whether the builder has no error.
func (c Check) That(ok bool, err func() error) bool {
	if c.Err() == nil && !ok {
		c.Failf(c.Op, c.In, err())
	}
	return c.Err() == nil
}

// Attr records an error of kind [ir.ErrAttr] unless ok.
func (c Check) Attr(ok bool, text string, args ...any) bool {
	return c.That(ok, func() error { return ir.Attrf(text, args...) })
}

// Shape records an error of kind [ir.ErrShape] unless ok.
func (c Check) Shape(ok bool, text string, args ...any) bool {
	return c.That(ok, func() error { return ir.Shapef(text, args...) })
}

// Floats requires operands of one float type.
func (c Check) Floats() bool {
	for i, x := range c.In {
		d := x.DType()
		c.That(d.IsFloat() && !d.IsFloat8(), func() error {
			return ir.DTypef("operand %d is %s: it must be of a float type of 16 bits or more", i, x.Type())
		})
		c.That(d == c.In[0].DType(), func() error {
			return ir.DTypef("operand %d is %s: it must be %s as operand 0 is", i, x.Type(), c.In[0].DType())
		})
	}
	return c.Err() == nil
}

// Size returns a constant size of an axis of x, named in errors. A symbol is an error of kind
// [ir.ErrSymbol].
func (c Check) Size(x ir.Value, axis int, name string) int {
	d := x.Dim(axis)
	n, ok := d.Const()
	c.That(d.Valid(), func() error { return ir.Shapef("%s is %s: it must have an axis %d", name, x.Type(), axis) })
	c.That(ok, func() error {
		return ir.Errorf(ir.ErrSymbol, "axis %d of %s is %s: it must be a number", axis, name, d)
	})
	return n
}

// Axis returns axis counted from the front, for a value of some rank. An axis that is not there is an
// error of kind [ir.ErrAttr].
func (c Check) Axis(axis, rank int) int {
	at := axis
	if at < 0 {
		at += rank
	}
	c.Attr(at >= 0 && at < rank, "axis is %d: it must be in [%d, %d)", axis, -rank, rank)
	return at
}

// Option returns the options of a function: the zero value if there are none. More than one is an
// error of kind [ir.ErrAttr].
func Option[T any](c Check, o []T) (given T) {
	if c.Attr(len(o) <= 1, "%d option structs are given: there must be one at most", len(o)) && len(o) == 1 {
		given = o[0]
	}
	return given
}

// Word returns one of some words, the first for "". Another is an error of kind [ir.ErrAttr].
func (c Check) Word(name, given string, words ...string) string {
	if given == "" {
		return words[0]
	}
	known := false
	for _, w := range words {
		known = known || w == given
	}
	c.Attr(known, "%s is %q: it must be one of %q", name, given, words)
	return given
}

// Wide returns the type in which values of a type are computed: f32 for narrower floats.
func Wide(d ir.DType) ir.DType {
	if d.IsFloat() && d.Size() < 4 {
		return ir.F32
	}
	return d
}

// Broadcast returns values of one type in their common shape, or invalid values after an error.
func Broadcast(b *ir.Builder, in ...ir.Value) []ir.Value {
	out := make([]ir.Value, len(in))
	if b.Err() != nil {
		return out
	}
	common := in[0]
	for _, x := range in[1:] {
		common = ops.Add(b, common, ops.StopGradient(b, x)) // for its shape; the value is not used
	}
	for i, x := range in {
		if out[i] = x; b.Err() == nil && !x.Type().Equal(common.Type()) {
			out[i] = ops.BroadcastTo(b, x, common.Shape())
		}
	}
	return out
}
