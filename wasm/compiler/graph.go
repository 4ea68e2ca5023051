package compiler

import (
	"strconv"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
)

func atoi(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// keepGraph gives the host a graph, or the error that came instead.
func (c *Compiler) keepGraph(w *response, g *ir.Graph, err error) error {
	if err == nil {
		w.u32(c.add(g))
	}
	return err
}

// parse (text) → graph.
func parse(c *Compiler, r *request, w *response) error {
	g, err := ir.Parse(r.text())
	return c.keepGraph(w, g, err)
}

// text (graph) → text form.
func text(c *Compiler, r *request, w *response) error {
	g, err := get[*ir.Graph](c, r)
	if err == nil {
		w.text(g.String())
	}
	return err
}

// describe (graph) → name, ports (name, kind, type), outputs (name, state?,
// type).
func describe(c *Compiler, r *request, w *response) error {
	g, err := get[*ir.Graph](c, r)
	if err != nil {
		return err
	}
	w.text(g.Name())
	w.u32(len(g.Ports()))
	for _, p := range g.Ports() {
		w.text(p.Name)
		w.text(p.Kind.String())
		w.valueType(p.Value.Type())
	}
	w.u32(len(g.Outputs()))
	for _, o := range g.Outputs() {
		w.text(o.Name)
		state := 0
		if o.State {
			state = 1
		}
		w.u32(state)
		w.valueType(o.Value.Type())
	}
	return nil
}

// symbols reads the sizes of symbolic dimensions by name.
func (r *request) symbols() map[string]int {
	out := map[string]int{}
	r.list(func() {
		name := r.text()
		n := r.u32()
		if old, ok := out[name]; ok && old != n && r.err == nil {
			r.err = ir.Errorf(ir.ErrSymbol, "%q is %d and %d", name, old, n)
		}
		out[name] = n
	})
	return out
}

// bind (graph, symbols) → graph.
func bind(c *Compiler, r *request, w *response) error {
	g, err := get[*ir.Graph](c, r)
	if err != nil {
		return err
	}
	values := r.symbols()
	if r.err != nil {
		return r.err
	}
	g, err = g.Bind(values)
	return c.keepGraph(w, g, err)
}

// deriveGraph (graph, transform, output, names, order) → graph. Which of the
// arguments count depends on the transform.
func deriveGraph(c *Compiler, r *request, w *response) error {
	g, err := get[*ir.Graph](c, r)
	if err != nil {
		return err
	}
	transform, output, names, order := r.text(), r.text(), r.texts(), r.u32()
	if r.err != nil {
		return r.err
	}
	switch transform {
	case "grad":
		g, err = autodiff.Grad(g, output, names...)
	case "value_and_grad":
		g, err = autodiff.ValueAndGrad(g, output, names...)
	case "vjp":
		g, err = autodiff.VJP(g, names...)
	case "jvp":
		g, err = autodiff.JVP(g, names...)
	case "hvp":
		g, err = autodiff.HVP(g, output, names...)
	case "nth":
		if len(names) != 1 {
			return ir.Errorf(ir.ErrName, "the derivative of order %d is by one port", order)
		}
		g, err = autodiff.NthOrder(g, output, names[0], order)
	default:
		return ir.Errorf(ir.ErrName, "there is no transform %q", transform)
	}
	return c.keepGraph(w, g, err)
}

// vmap (graph, size, ports with axes, outputs with axes) → graph.
func vmap(c *Compiler, r *request, w *response) error {
	g, err := get[*ir.Graph](c, r)
	if err != nil {
		return err
	}
	size, err := ir.ParseDim(r.text())
	if err != nil {
		return err
	}
	o := autodiff.VmapOptions{In: r.axes(), Out: r.axes()}
	if r.err != nil {
		return r.err
	}
	g, err = autodiff.Vmap(g, size, o)
	return c.keepGraph(w, g, err)
}

func (r *request) axes() map[string]int {
	out := map[string]int{}
	r.list(func() {
		name := r.text()
		out[name] = int(r.f64())
	})
	return out
}
