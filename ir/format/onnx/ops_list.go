package onnx

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Sequences and optionals exist at import alone: their number of elements and the places that are
// taken must be known. They are no inputs and no outputs.
func init() {
	for name, f := range map[string]func(c *call){
		"SequenceEmpty":     func(c *call) { setList(c, []*value{}) },
		"SequenceConstruct": func(c *call) { setList(c, slices.Clone(c.in)) },
		"SequenceAt":        sequenceAt,
		"SequenceLength":    func(c *call) { c.out = []*value{newDims(Int64, []ir.Dim{ir.N(len(sequence(c)))}, 0)} },
		"SequenceInsert":    sequenceInsert,
		"SequenceErase":     sequenceErase,
		"SplitToSequence":   splitToSequence,
		"ConcatFromSequence": func(c *call) {
			var xs []ir.Value
			for _, v := range sequence(c) {
				xs = append(xs, c.emit(v))
			}
			if len(xs) == 0 {
				c.failf("the sequence is empty: it must have a tensor or more")
				return
			}
			c.results(one(joined(c, xs)))
		},
		"Optional": func(c *call) {
			setList(c, slices.Clone(c.in))
			c.out[0].optional = true
		},
		"OptionalHasElement": func(c *call) {
			has := int64(0)
			if c.has(0) && (!c.in[0].optional || len(c.in[0].list) > 0) {
				has = 1
			}
			c.out = []*value{{elem: Bool, typ: ir.TypeOf(ir.Bool), known: ir.Int(ir.Bool, has)}}
		},
		"OptionalGetElement": func(c *call) {
			switch {
			case !c.has(0) || c.in[0].optional && len(c.in[0].list) == 0:
				c.failf("the optional is empty: it must have an element")
			case c.in[0].optional:
				c.out = c.in[0].list[:1]
			default:
				c.out = c.in[:1]
			}
		},
	} {
		addTo("", name, opInfo{since: 1, values: f})
	}
}

// setList sets the result, a list.
func setList(c *call, elements []*value) {
	if elements == nil {
		elements = []*value{}
	}
	c.out = []*value{{list: elements}}
}

// sequence returns the elements of operand 0.
func sequence(c *call) []*value {
	if !c.has(0) || !c.in[0].isList() {
		c.failf("operand 0 must be a sequence whose elements are known")
		return nil
	}
	return c.in[0].list
}

// place returns the place that an operand names in a list of n elements.
func place(c *call, i, otherwise, n int) int {
	at := c.knownInt(i, otherwise)
	if at < 0 {
		at += n
	}
	if at < 0 || at > n {
		c.fail(ir.Errorf(ir.ErrIndex, "the position is %d: it must be in the sequence, of %d tensors", at, n))
		return 0
	}
	return at
}

func sequenceAt(c *call) {
	list := sequence(c)
	at := place(c, 1, 0, len(list))
	if c.err == nil && at < len(list) {
		c.out = list[at : at+1]
		return
	}
	c.fail(ir.Errorf(ir.ErrIndex, "the position is %d: it must be in the sequence, of %d tensors", at, len(list)))
}

func sequenceInsert(c *call) {
	list := sequence(c)
	at := place(c, 2, len(list), len(list))
	if c.err == nil && c.has(1) {
		setList(c, slices.Insert(slices.Clone(list), at, c.in[1]))
	}
}

func sequenceErase(c *call) {
	list := sequence(c)
	at := place(c, 1, len(list)-1, len(list))
	if c.err == nil && at < len(list) {
		setList(c, slices.Delete(slices.Clone(list), at, at+1))
	}
}

func splitToSequence(c *call) {
	x := c.x(0)
	axis := c.axis("axis", 0, x.Rank())
	size := x.Dim(axis)
	n, ok := size.Const()
	if !ok {
		c.failf("the axis to split has size %s: it must be a number", size)
		return
	}
	each := []int{1}
	if c.has(1) {
		each = c.knownInts(1)
	}
	if c.err != nil || len(each) == 0 || len(each) == 1 && each[0] < 1 || n > foldElements {
		c.fail(damaged("the parts have sizes %v: they must be positive and fill the axis", each))
		return
	}
	var parts []ir.Dim
	if !c.has(1) || c.in[1].typ.Shape.Rank() == 0 {
		for at := 0; at < n; at += each[0] {
			parts = append(parts, ir.N(min(each[0], n-at)))
		}
	} else {
		parts = c.sizes(1)
	}
	var list []*value
	for _, part := range ops.Split(c.b, x, axis, parts...) {
		if !c.has(1) && c.int("keepdims", 1) == 0 {
			part = ops.Squeeze(c.b, part, axis)
		}
		list = append(list, placed(c.b, part, c.in[0].elem))
	}
	setList(c, list)
}

// joined concatenates tensors along an axis, a new one with new_axis.
func joined(c *call, xs []ir.Value) ir.Value {
	if c.bool("new_axis") {
		return ops.Stack(c.b, c.axisOf(c.int("axis", 0), xs[0].Rank()+1), xs...)
	}
	return ops.Concatenate(c.b, c.axis("axis", 0, xs[0].Rank()), xs...)
}
