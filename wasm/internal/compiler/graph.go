package compiler

import (
	"strconv"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/recipe"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

func atoi(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// keepGraph passes the host a graph, or an error.
func keepGraph(c *wire.Service, w *wire.Response, g *ir.Graph, err error) error {
	if err == nil {
		w.U32(c.Add(g))
	}
	return err
}

// parse (text) → graph.
func parse(c *wire.Service, r *wire.Request, w *wire.Response) error {
	g, err := ir.Parse(r.Text())
	return keepGraph(c, w, g, err)
}

// text (graph) → text form.
func text(g *ir.Graph, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	w.Text(g.String())
	return nil
}

// describe (graph) → name, ports (name, kind, begins as ones?, initial rule, frozen?, type),
// outputs (name, state?, type).
func describe(g *ir.Graph, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	w.Text(g.Name())
	w.U32(len(g.Ports()))
	ones := g.InitAsOnes()
	for _, p := range g.Ports() {
		w.Text(p.Name)
		w.Text(p.Kind.String())
		w.Bool(ones[p.Name])
		o := p.Options()
		w.Text(o.Initial.String())
		w.Bool(o.Frozen)
		w.ValueType(p.Value.Type())
	}
	w.U32(len(g.Outputs()))
	for _, o := range g.Outputs() {
		w.Text(o.Name)
		w.Bool(o.State)
		w.ValueType(o.Value.Type())
	}
	return nil
}

// matching (graph, patterns) → the parameters that each pattern matches.
func matching(g *ir.Graph, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	for _, pattern := range r.Texts() {
		var names []string
		for _, p := range g.Ports() {
			if p.Kind == ir.ParamPort && optim.Covers(pattern, p.Name) {
				names = append(names, p.Name)
			}
		}
		w.U32(len(names))
		for _, name := range names {
			w.Text(name)
		}
	}
	return r.Err()
}

// bind (graph, symbols) → graph.
func bind(g *ir.Graph, c *wire.Service, r *wire.Request, w *wire.Response) error {
	values := r.Symbols()
	if r.Err() != nil {
		return r.Err()
	}
	g, err := g.Bind(values)
	return keepGraph(c, w, g, err)
}

// deriveGraph (graph, transform, output, names, order, missing gradients as zeros?, policy) → graph.
// Which of the arguments count depends on the transform; of mixed, output is the element type of products.
func deriveGraph(g *ir.Graph, c *wire.Service, r *wire.Request, w *wire.Response) error {
	transform, output, o, order := r.Text(), r.Text(), autodiff.Options{Wrt: r.Texts()}, r.U32()
	if r.Bool() {
		o.Missing = autodiff.MissingIsZero
	}
	var err error
	if o.Policy, err = recipe.Policy(r.Texts()); err == nil {
		err = r.Err()
	}
	if err != nil {
		return err
	}
	g, err = derived(g, transform, output, order, o)
	return keepGraph(c, w, g, err)
}

func derived(g *ir.Graph, transform, output string, order int, o autodiff.Options) (*ir.Graph, error) {
	switch transform {
	case "grad", "value_and_grad":
		return autodiff.GradWith(g, autodiff.GradOptions{Loss: output, Wrt: o.Wrt, Missing: o.Missing, Policy: o.Policy, DropOutputs: transform == "grad"})
	case "vjp":
		return autodiff.VJPWith(g, zeros(o))
	case "jvp":
		return autodiff.JVPWith(g, zeros(o))
	case "hvp":
		return autodiff.HVPWith(g, output, o)
	case "nth":
		if len(o.Wrt) != 1 {
			return nil, ir.Errorf(ir.ErrName, "a derivative of order %d needs one port", order)
		}
		return autodiff.NthOrderWith(g, output, o.Wrt[0], order, autodiff.MissingIsZero)
	case "jacobian_forward":
		return autodiff.JacobianForwardWith(g, output, zeros(o))
	case "jacobian_reverse":
		return autodiff.JacobianReverseWith(g, output, zeros(o))
	case "hessian":
		return autodiff.HessianWith(g, output, o)
	case "jet":
		return autodiff.JetWith(g, order, zeros(o))
	case "mixed":
		return recipe.Mixed(g, output)
	}
	return nil, ir.Errorf(ir.ErrName, "unknown transform %q", transform)
}

// zeros returns the options with missing derivatives as zeros.
func zeros(o autodiff.Options) autodiff.Options {
	o.Missing = autodiff.MissingIsZero
	return o
}

// vmap (graph, size, ports with axes, outputs with axes) → graph.
func vmap(g *ir.Graph, c *wire.Service, r *wire.Request, w *wire.Response) error {
	size, err := ir.ParseDim(r.Text())
	if err != nil {
		return err
	}
	o := autodiff.VmapOptions{In: axes(r), Out: axes(r)}
	if r.Err() != nil {
		return r.Err()
	}
	g, err = autodiff.Vmap(g, size, o)
	return keepGraph(c, w, g, err)
}

func axes(r *wire.Request) map[string]int {
	out := map[string]int{}
	r.List(func() {
		name := r.Text()
		out[name] = int(r.F64())
	})
	return out
}
