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
	slopes   [2]slope2
	from, to [2]float64
	cases    []pair
}

var signCases = []pair{
	{name: "signs", x: []float64{5, -5, 5, -5}, y: []float64{3, 3, -3, -3}},
	{name: "multiples", x: []float64{6, -6, 6, -6, 0}, y: []float64{3, 3, -3, -3, 2}, noGrad: "jumps at multiples"},
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
		samples: func() []ir.Sample { return pairedSamples(p) },
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

func pairedSamples(p paired) []ir.Sample {
	if !withSamples {
		return nil
	}
	if p.to == [2]float64{} {
		p.from, p.to = [2]float64{-2, -2}, [2]float64{2, 2}
	}
	var out []ir.Sample
	add := func(name string, x, y *ir.Array, noGrad string) {
		out = append(out, ir.Sample{Name: name, NoGrad: noGrad, In: []*ir.Array{x, y}})
	}
	two := func(d ir.DType, xs, ys []int) (x, y *ir.Array) {
		return draw(3, d, p.from[0], p.to[0], xs...), draw(4, d, p.from[1], p.to[1], ys...)
	}
	for _, c := range []struct {
		name   string
		d      ir.DType
		xs, ys []int
	}{
		{"scalars", ir.F32, nil, nil},
		{"empty", ir.F32, []int{0, 3}, []int{3}},
		{"matrix", ir.F32, []int{9, 13}, []int{9, 13}},
		{"broadcast", ir.F32, []int{4, 1}, []int{3}},
		{"f16", ir.F16, []int{5}, []int{5}},
		{"f64", ir.F64, []int{5}, []int{5}},
	} {
		x, y := two(c.d, c.xs, c.ys)
		add(c.name, x, y, "")
	}
	if p.types&integers != 0 {
		for _, d := range []ir.DType{ir.I32, ir.U32, ir.I8} {
			add(d.String(), draw(5, d, -9, 9, 11), draw(6, d, -4, 4, 11), "")
		}
	}
	for _, c := range p.cases {
		add(c.name, ir.Floats(ir.F32, c.x), ir.Floats(ir.F32, c.y), c.noGrad)
	}
	return out
}
