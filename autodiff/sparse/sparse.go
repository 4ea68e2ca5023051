package sparse

import (
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Derivative is a graph that computes the elements of a sparse matrix of
// derivatives.
type Derivative struct {
	// Graph has the ports and outputs of the graph that it is the derivative of,
	// and the output Name: a vector of the elements, row by row.
	Graph *ir.Graph
	Name  string
	// Pattern says where the elements stand.
	Pattern *Pattern
	// Passes is how many derivatives in directions it takes.
	Passes int
}

// JacobianName returns the name of the output that [Jacobian] adds: "sparse/y/x".
func JacobianName(output, port string) string { return "sparse/" + output + "/" + port }

// HessianName returns the name of the output that [Hessian] adds: "sparse/x/x".
func HessianName(port string) string { return "sparse/" + port + "/" + port }

// Jacobian returns the derivatives of a plain output of g by a port, which both
// may have any shape: by forward mode, or by reverse mode where that takes fewer
// passes. The errors are those of [PatternOf].
func Jacobian(g *ir.Graph, output, port string) (*Derivative, error) {
	p, err := PatternOf(g, output, port)
	if err != nil {
		return nil, err
	}
	columns, rows := p.ColorColumns(), p.ColorRows()
	n, k := len(g.Ports()), placeAmongDerivable(g, output)
	c := compressed{g: g, name: JacobianName(output, port), coloring: columns}
	at := func(i, j int) (color, element int) { return columns.Of[j], i }
	if rows.Colors < columns.Colors {
		c.coloring = rows
		at = func(i, j int) (color, element int) { return rows.Of[i], j }
		if c.derived, err = autodiff.VJP(g, port); err != nil {
			return nil, err
		}
		c.seed, c.result = c.derived.Ports()[n+k], c.derived.Outputs()[len(g.Outputs())]
	} else {
		if c.derived, err = autodiff.JVP(g, port); err != nil {
			return nil, err
		}
		c.seed, c.result = c.derived.Ports()[n], c.derived.Outputs()[len(g.Outputs())+k]
	}
	return c.derivative(p, at)
}

// Hessian returns the second derivatives of a plain output of rank 0 by a port, in
// a direction for each colour of [Pattern.ColorStars]. The errors are those of
// [autodiff.HVP] and of symbolic sizes.
func Hessian(g *ir.Graph, loss, port string) (*Derivative, error) {
	gradient, err := autodiff.Grad(g, loss, port)
	if err != nil {
		return nil, err
	}
	outputs := gradient.Outputs()
	p, err := PatternOf(gradient, outputs[len(outputs)-1].Name, port)
	if err != nil {
		return nil, err
	}
	p = p.symmetric()
	c := compressed{g: g, name: HessianName(port), coloring: p.ColorStars()}
	if c.derived, err = autodiff.HVP(g, loss, port); err != nil {
		return nil, err
	}
	c.seed, c.result = c.derived.Ports()[len(g.Ports())], c.derived.Outputs()[len(c.derived.Outputs())-1]
	return c.derivative(p, func(i, j int) (color, element int) {
		if p.alone(c.coloring.Of, i, j) {
			return c.coloring.Of[j], i
		}
		return c.coloring.Of[i], j
	})
}

// alone reports whether column j is the only one of its colour in row i.
func (p *Pattern) alone(of []int, i, j int) bool {
	for _, k := range p.Rows[i] {
		if int(k) != j && of[k] == of[j] {
			return false
		}
	}
	return true
}

// compressed is a derivative in a direction, taken for the sum of all columns, or
// rows, of each colour.
type compressed struct {
	g, derived *ir.Graph
	name       string // of the output that is added
	seed       ir.Port
	result     ir.Output
	coloring   Coloring
}

// derivative reads the elements of the pattern from where at says that they are:
// in the result for a colour, at an element.
func (c *compressed) derivative(p *Pattern, at func(i, j int) (color, element int)) (*Derivative, error) {
	var places []int64
	length, _ := c.result.Value.Shape().Size().Const()
	for i, row := range p.Rows {
		for _, j := range row {
			color, element := at(i, int(j))
			places = append(places, int64(color*length+element))
		}
	}
	d := &Derivative{Name: c.name, Pattern: p, Passes: c.coloring.Colors}
	o := autodiff.VmapOptions{In: map[string]int{c.seed.Name: 0}}
	batched, err := autodiff.Vmap(c.derived, ir.N(c.coloring.Colors), o)
	if err != nil {
		return nil, err
	}
	d.Graph, err = ir.Build(c.g.Name(), func(b *ir.Builder) { c.build(b, batched, places) })
	return d, err
}

func (c *compressed) build(b *ir.Builder, batched *ir.Graph, places []int64) {
	m := ir.NewMapping(c.g)
	b.CopyPorts(c.g, m)
	var own, in []ir.Value
	for _, p := range c.g.Ports() {
		own = append(own, m.Get(p.Value))
	}
	for i, p := range batched.Ports() {
		switch {
		case i < len(own):
			in = append(in, own[i])
		case p.Name == c.seed.Name:
			in = append(in, c.seeds(b, p.Value.Type()))
		default: // cotangents of other outputs
			in = append(in, ops.Zeros(b, p.Value.DType(), p.Value.Shape()...))
		}
	}
	for i, v := range b.Splice(c.g, own) {
		b.CopyOutput(c.g.Outputs()[i], v)
	}
	for i, v := range b.Splice(batched, in) {
		if o := batched.Outputs()[i]; o.Name == c.result.Name && !o.State {
			at := ops.Literal(b, ir.Ints(ir.I32, places, len(places)))
			b.Output(c.name, ops.Take(b, ops.Flatten(b, v, 0), at, 0, ops.OutsideClip))
		}
	}
}

// seeds returns a vector for each colour, 1 where a column or a row has it.
func (c *compressed) seeds(b *ir.Builder, t ir.Type) ir.Value {
	of := make([]int64, len(c.coloring.Of))
	for i, k := range c.coloring.Of {
		of[i] = int64(k)
	}
	n, colors := ir.N(len(of)), ir.N(c.coloring.Colors)
	own := ops.BroadcastInDim(b, ops.Literal(b, ir.Ints(ir.I32, of, len(of))), ir.Shape{colors, n}, []int{1})
	ones := ops.Eq(b, ops.Iota(b, ir.I32, 0, colors, n), own)
	return ops.Reshape(b, ops.Convert(b, ones, t.DType), t.Shape...)
}
