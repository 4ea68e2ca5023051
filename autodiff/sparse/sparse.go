package sparse

import (
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Derivative is a graph that computes a sparse Jacobian or Hessian.
type Derivative struct {
	// Graph has the ports and outputs of the differentiated graph, and an output called Name: a
	// vector of the elements in the order of Pattern, row by row.
	Graph *ir.Graph
	Name  string
	// Pattern holds the positions of the elements.
	Pattern *Pattern
	// Passes is the number of directional derivatives, one for each color.
	Passes int
}

// JacobianName returns the name of the output that [Jacobian] adds: "sparse/y/x".
func JacobianName(output, port string) string { return "sparse/" + output + "/" + port }

// HessianName returns the name of the output that [Hessian] adds: "sparse/x/x".
func HessianName(port string) string { return "sparse/" + port + "/" + port }

// Jacobian returns the Jacobian of a plain output of g by a port, both of any shape. It uses
// forward mode, or reverse mode if that takes fewer passes. The errors are those of [PatternOf].
func Jacobian(g *ir.Graph, output, port string) (*Derivative, error) {
	p, err := PatternOf(g, output, port)
	if err != nil {
		return nil, err
	}
	columns, rows := p.ColorColumns(), p.ColorRows()
	n, k := len(g.Ports()), differentiableIndex(g, output)
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

// Hessian returns the Hessian of a plain output of rank 0 by a port, with one Hessian-vector
// product for each color of [Pattern.ColorStars]. The errors are those of [autodiff.HVP], and of
// kind [ir.ErrShape] for symbolic sizes.
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
		if p.isUnique(c.coloring.Of, i, j) {
			return c.coloring.Of[j], i
		}
		return c.coloring.Of[i], j
	})
}

// isUnique reports whether column j is the only one of its color in row i.
func (p *Pattern) isUnique(of []int, i, j int) bool {
	for _, k := range p.Rows[i] {
		if int(k) != j && of[k] == of[j] {
			return false
		}
	}
	return true
}

// compressed is a directional derivative, evaluated for the sum of the columns, or rows, of each
// color.
type compressed struct {
	g, derived *ir.Graph
	name       string // of the added output
	seed       ir.Port
	result     ir.Output
	coloring   Coloring
}

// derivative gathers the elements of the pattern. at returns the color and the element of the
// result that hold element (i, j).
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
	d.Graph, err = ir.Transform(c.g.Name(), func(b *ir.Builder) { c.build(b, batched, places) })
	return d, err
}

func (c *compressed) build(b *ir.Builder, batched *ir.Graph, places []int64) {
	own := b.CopyPorts(c.g, nil)
	var in []ir.Value
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

// seeds returns one vector for each color, 1 at its columns or rows and 0 elsewhere.
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
