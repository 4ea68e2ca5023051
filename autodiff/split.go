package autodiff

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// ResidualName returns the name of the i-th residual, from 0, that the first graph of [SplitVJP]
// passes to the second: "residual/0".
func ResidualName(i int) string { return position(residualPrefix+"/", i) }

// SplitVJP returns [VJPWith] as two graphs, for hosts that do something between the forward and the
// backward pass. forward has the ports and outputs of g, and outputs "residual/0" and so on.
// backward takes the residuals and the cotangents "cotangent/y" and returns "grad/x". Inputs and
// parameters of g that backward needs are ports of it under the same names and not residuals.
// Options.Policy must be nil, since forward computes all residuals; otherwise the errors are those of
// [VJPWith].
func SplitVJP(g *ir.Graph, o Options) (forward, backward *ir.Graph, err error) {
	const transform = "split vjp"
	if err := checkGraph(transform, g); err != nil {
		return nil, nil, err
	}
	if o.Policy != nil {
		return nil, nil, wrap(transform, ir.Attrf("a policy is given; a split derivative takes none"))
	}
	if len(o.Wrt) == 0 {
		o.Wrt = differentiable(g)
	}
	ports, err := portIndices(g, o.Wrt)
	if err != nil {
		return nil, nil, wrap(transform, err)
	}
	p, err := linearise(g, variables{ports: ports}, nil)
	if err != nil {
		return nil, nil, wrap(transform, err)
	}
	s := &split{p: p, missing: o.Missing, passes: map[int]int{}}
	for i, port := range p.halves.ResidualPort {
		if port < 0 || g.Ports()[port].Kind == ir.StatePort {
			s.passes[i] = len(s.passes)
		}
	}
	if forward, err = ir.Transform(g.Name(), s.forward); err != nil {
		return nil, nil, wrap(transform, err)
	}
	backward, err = ir.Transform(g.Name(), s.backward)
	return forward, backward, wrap(transform, err)
}

// split is a pullback as two graphs.
type split struct {
	p       *pullback
	missing Missing
	passes  map[int]int // by residual that is not a port: its number in names
}

func (s *split) forward(b *ir.Builder) {
	out, residuals := s.p.forward(b, b.CopyPorts(s.p.g, nil))
	copyOutputs(b, s.p.g, out, nil)
	for i := range s.p.halves.ResidualPort {
		if k, ok := s.passes[i]; ok {
			b.Output(ResidualName(k), residuals(i))
		}
	}
}

func (s *split) backward(b *ir.Builder) {
	g, types := s.p.g, s.p.halves.Linear.Ports()
	residuals := make([]ir.Value, s.p.halves.Residuals())
	ports := map[int]ir.Value{}
	for i, port := range s.p.halves.ResidualPort {
		if k, ok := s.passes[i]; ok {
			residuals[i] = b.Port(ir.InputPort, ResidualName(k), types[i].Value.Type())
			continue
		}
		if p := g.Ports()[port]; !ports[port].Valid() {
			ports[port] = b.Port(p.Kind, p.Name, p.Value.Type())
		}
		residuals[i] = ports[port]
	}
	prefix, ct := freePrefix(g, cotangentPrefix), make([]ir.Value, len(g.Outputs()))
	for _, i := range plainOutputs(g) {
		o := g.Outputs()[i]
		ct[i] = b.Port(ir.InputPort, prefix+o.Name, o.Value.Type())
	}
	back := s.p.backward(b, func(i int) ir.Value { return residuals[i] }, ct)
	if s.missing == MissingIsError {
		b.Fail(reverse{outputs: plainOutputs(g)}.missingPath(g, s.p.by, back))
	}
	grads := freePrefix(g, gradPrefix)
	for i, t := range s.p.by.types(g) {
		v := back[i]
		if !v.Valid() {
			v = ops.Zeros(b, t.DType, t.Shape...)
		}
		b.Output(grads+s.p.by.name(g, i), v)
	}
}
