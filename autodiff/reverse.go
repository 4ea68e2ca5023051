package autodiff

import (
	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// pullback is a graph split for reverse mode. known computes the outputs and the residuals; linear
// maps tangents of the ports to tangents of the outputs.
type pullback struct {
	g      *ir.Graph
	by     variables
	halves *derive.PartialResult
	// linearOut holds for each output of g the index of its tangent among the outputs of linear, or
	// -1 if the tangent is zero.
	linearOut []int
	// keep marks the nodes of known whose results are stored; nil stores all needed values.
	keep []bool
}

// residual returns residual i in the backward pass.
type residual func(i int) ir.Value

// linearise splits g for derivatives by some of its ports and intermediate values. keep chooses the
// residuals; nil stores all.
func linearise(g *ir.Graph, by variables, keep ir.Keeper) (*pullback, error) {
	p := &pullback{g: g, by: by, linearOut: make([]int, len(g.Outputs()))}
	tangents, err := ir.Transform(g.Name(), p.buildTangents)
	if err != nil {
		return nil, err
	}
	unknown := make([]bool, len(tangents.Ports()))
	for i := len(g.Ports()); i < len(unknown); i++ {
		unknown[i] = true
	}
	// A rule may return an explicit zero tangent that depends on no port. It must stay in the
	// linear part.
	force := make([]bool, len(tangents.Outputs()))
	for i := len(g.Outputs()); i < len(force); i++ {
		force[i] = true
	}
	if p.halves, err = derive.PartialEval(tangents, unknown, force, keep); err != nil {
		return nil, err
	}
	return p, p.chooseResiduals(keep)
}

// buildTangents builds the graph of the outputs of g and their tangents. Its ports and outputs are
// named by position.
func (p *pullback) buildTangents(b *ir.Builder) {
	in, t := make([]ir.Value, len(p.g.Ports())), make([]ir.Value, len(p.g.Ports()))
	for i, port := range p.g.Ports() {
		in[i] = b.Port(ir.InputPort, port.Name, port.Value.Type())
	}
	prefix := freePrefix(p.g, tangentPrefix)
	for _, i := range p.by.ports {
		t[i] = b.Port(ir.InputPort, prefix+p.g.Ports()[i].Name, in[i].Type())
	}
	at := map[ir.Value]ir.Value{}
	for _, i := range p.by.outputs {
		v := p.g.Outputs()[i].Value
		at[v] = b.Port(ir.InputPort, position("inner", i), v.Type())
	}
	out, tout := derive.JVPWithSeeds(b, p.g, in, t, at)
	for i, v := range out {
		b.Output(position("out", i), v)
	}
	count := 0
	for i, o := range p.g.Outputs() {
		p.linearOut[i] = -1
		if tout[i].Valid() && !o.State {
			p.linearOut[i] = count
			count++
			b.Output(position("tangent", i), tout[i])
		}
	}
}

// chooseResiduals calls the keeper for the known half.
func (p *pullback) chooseResiduals(keep ir.Keeper) error {
	if keep == nil {
		return nil
	}
	var needed []ir.Value
	for _, o := range p.halves.Known.Outputs()[len(p.g.Outputs()):] {
		needed = append(needed, o.Value)
	}
	var err error
	p.keep, err = keep(p.halves.Known, needed, ir.N(1))
	return err
}

// forward adds the known half and returns the outputs of g and the residuals.
func (p *pullback) forward(b *ir.Builder, in []ir.Value) ([]ir.Value, residual) {
	n := len(p.g.Outputs())
	if p.keep == nil {
		all := b.Splice(p.halves.Known, in)
		return all[:n], func(i int) ir.Value { return all[n+i] }
	}
	all, again := derive.Recompute(b, p.halves.Known, p.keep, in)
	return all[:n], func(i int) ir.Value { return again.Value(p.halves.Known.Outputs()[n+i].Value) }
}

// backward adds the transpose of the linear half: it maps cotangents of the outputs of g to
// cotangents of the variables, where an invalid Value is zero.
func (p *pullback) backward(b *ir.Builder, r residual, ct []ir.Value) []ir.Value {
	linear, n := p.halves.Linear, p.halves.Residuals()
	unknown := make([]bool, len(linear.Ports()))
	for i := n; i < len(unknown); i++ {
		unknown[i] = true
	}
	linearCT := make([]ir.Value, len(linear.Outputs()))
	for i, k := range p.linearOut {
		if k >= 0 {
			linearCT[k] = ct[i]
		}
	}
	return derive.TransposeLazy(b, linear, unknown, r, linearCT)[n:]
}

// reverse describes a reverse transform.
type reverse struct {
	name    string // of the transform
	wrt     []string
	inner   bool // wrt may name outputs
	missing Missing
	outputs []int                  // the outputs with cotangents
	give    func(name string) bool // which plain outputs stay; nil: all
	keep    Policy
	// cotangents returns the cotangent of each output, given the outputs.
	cotangents func(b *ir.Builder, out []ir.Value) []ir.Value
}

func (r reverse) variables(g *ir.Graph) (variables, error) {
	if r.inner {
		return variablesOf(g, r.wrt)
	}
	ports, err := portIndices(g, r.wrt)
	return variables{ports: ports}, err
}

// apply returns g with its gradients: it splits the JVP into a forward pass and a linear part, the
// tangents as a function of residuals, and transposes the latter.
func (r reverse) apply(g *ir.Graph) (*ir.Graph, error) {
	by, err := r.variables(g)
	if err != nil {
		return nil, wrap(r.name, err)
	}
	p, err := linearise(g, by, r.keep.keeper())
	if err != nil {
		return nil, wrap(r.name, err)
	}
	prefix := freePrefix(g, gradPrefix)
	d, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		in := b.CopyPorts(g, nil)
		out, residuals := p.forward(b, in)
		back := p.backward(b, residuals, r.cotangents(b, out))
		if r.missing == MissingIsError {
			b.Fail(r.missingPath(g, by, back))
		}
		copyOutputs(b, g, out, r.give)
		for i, v := range by.values(in, out) {
			b.Output(prefix+by.name(g, i), orZeros(b, back[i], v))
		}
	})
	return d, wrap(r.name, err)
}

// missingPath returns a [*NoPathError] for the first variable without a gradient.
func (r reverse) missingPath(g *ir.Graph, by variables, back []ir.Value) error {
	for i, v := range back {
		switch {
		case v.Valid():
		case i < len(by.ports):
			return noPath(g, by.ports[i], r.outputs)
		default:
			return &NoPathError{Port: by.name(g, i), Output: g.Outputs()[r.outputs[0]].Name}
		}
	}
	return nil
}

// noPath returns the error for outputs that do not depend differentiably on a port.
func noPath(g *ir.Graph, port int, outputs []int) error {
	e := &NoPathError{Port: g.Ports()[port].Name}
	if len(outputs) == 1 {
		e.Output = g.Outputs()[outputs[0]].Name
	}
	for _, o := range outputs {
		for _, n := range derive.Blockers(g, port, o) {
			e.Ends = append(e.Ends, PathEnd{n.Op(), n.Pos(), endReason(n)})
		}
	}
	return e
}

func endReason(n *ir.Node) string {
	if why := n.Def().NoGrad; why != "" {
		return why
	}
	if n.NumResults() > 1 {
		return "the result in use has no derivative"
	}
	return "its derivative is zero everywhere"
}

// oneAt returns cotangents that are one for a single output.
func oneAt(g *ir.Graph, output int) func(b *ir.Builder, out []ir.Value) []ir.Value {
	return func(b *ir.Builder, out []ir.Value) []ir.Value {
		ct := make([]ir.Value, len(g.Outputs()))
		ct[output] = ops.OnesLike(b, out[output])
		return ct
	}
}

// variables are those that a reverse derivative is taken by: indices of ports, and of plain outputs that stand
// for intermediate values. Ports come first; otherwise the order is that of the request.
type variables struct{ ports, outputs []int }

// variablesOf looks up names among the ports of g, then among its plain outputs. The errors are
// those of portIndices.
func variablesOf(g *ir.Graph, names []string) (variables, error) {
	var by variables
	var ports []string
	for _, name := range names {
		at := outputIndex(g, name)
		if portIndex(g, name) >= 0 || at < 0 {
			ports = append(ports, name)
			continue
		}
		if t := g.Outputs()[at].Value.Type(); !derive.Differentiable(t.DType) {
			return by, ir.DTypef("output %q is %s; a derivative needs floats", name, t)
		}
		for _, other := range by.outputs {
			if g.Outputs()[other].Value == g.Outputs()[at].Value {
				return by, ir.Errorf(ir.ErrName, "output %q of graph %q is requested twice, also as %q", name, g.Name(), g.Outputs()[other].Name)
			}
		}
		by.outputs = append(by.outputs, at)
	}
	var err error
	by.ports, err = portIndices(g, ports)
	return by, err
}

// name returns the name of variable i.
func (v variables) name(g *ir.Graph, i int) string {
	if i < len(v.ports) {
		return g.Ports()[v.ports[i]].Name
	}
	return g.Outputs()[v.outputs[i-len(v.ports)]].Name
}

// values selects the values of the variables from those of all ports and outputs.
func (v variables) values(in, out []ir.Value) []ir.Value {
	return append(permute.Pick(in, v.ports), permute.Pick(out, v.outputs)...)
}

// types returns the types of the variables.
func (v variables) types(g *ir.Graph) []ir.Type {
	var in, out []ir.Value
	for _, p := range g.Ports() {
		in = append(in, p.Value)
	}
	for _, o := range g.Outputs() {
		out = append(out, o.Value)
	}
	return ir.TypesOf(v.values(in, out))
}
