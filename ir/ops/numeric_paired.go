package ops

import "github.com/rlx-go/rlx/ir"

// paired describes a composite of two operands that are broadcast.
type paired struct {
	op    ir.Op
	doc   string
	types domain
	body  func(b *ir.Builder, x, y ir.Value) ir.Value
	// slopes are the derivatives by each operand, if the body's are wrong at some points.
	// Their operands have one shape.
	slopes [2]slope2
}

func definePaired(p paired) {
	c := composite{
		op: p.op, doc: p.doc, types: p.types, operands: []string{"x", "y"},
		constraints: []string{"the operands have one element type, and are broadcast against each other"},
		check:       oneDType,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			in = Broadcast(b, n.Op(), in...)
			if b.Err() != nil {
				return ir.Value{}
			}
			x, y := wideFloat(b, in[0]), wideFloat(b, in[1])
			return Convert(b, p.body(b, x, y), in[0].DType())
		},
	}
	if p.slopes[0] != nil {
		c.jvp = func(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
			d := in[0].DType()
			x := Broadcast(b, n.Op(), wide(b, in[0]), wide(b, in[1]), wide(b, out[0]))
			var sum ir.Value
			for i, slope := range p.slopes {
				if t[i].Valid() {
					tangent := Broadcast(b, n.Op(), wide(b, t[i]), x[2])[0]
					sum = addTangents(b, sum, scale(b, tangent, slope(b, x[0], x[1], x[2])))
				}
			}
			if sum.Valid() {
				sum = Convert(b, sum, d)
			}
			return []ir.Value{sum}
		}
	}
	defineComposite(c)
}

// wideFloat is [wide] for floats and the identity for integers.
func wideFloat(b *ir.Builder, x ir.Value) ir.Value {
	if x.DType().IsFloat() {
		return wide(b, x)
	}
	return x
}
