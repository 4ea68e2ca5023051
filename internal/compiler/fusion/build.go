package fusion

import (
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Build partitions a graph into groups. The graph must have no composites (package
// passes inlines them) and no symbolic dimensions ([ir.Graph.Bind] binds them). The
// error is an [*ir.OpError] of kind [ir.ErrUnsupported] or [ir.ErrShape] that names
// the node. Build also returns panics, of an op's lowering or its own, as errors.
func Build(g *ir.Graph, o Options) (p *Partition, err error) {
	name := g.Name()
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, format.Errorf("fusion: cannot partition graph %q: %v", name, r)
		}
	}()
	if o.Policy == nil {
		o.Policy = hardware.Unknown()
	}
	if g, err = prepared(g, o); err != nil {
		return nil, err
	}
	return build(&Partition{Graph: g, options: o, byID: map[int]*Tensor{}})
}

// prepared rewrites the parts of a graph that cannot be grouped as they are.
func prepared(g *ir.Graph, o Options) (*ir.Graph, error) {
	g, err := selectBranches(g, o.Branch)
	if err == nil && withTensorCores && o.TensorCores {
		g, err = onePass(g, o)
	}
	if err != nil {
		return nil, err
	}
	return rewrite(g, o)
}

// build runs the steps of the package over the graph of p. Groups are formed again where fusion
// assumed that a state is updated in place and that proves impossible.
func build(p *Partition) (*Partition, error) {
	p.simplifier = scalar.NewSimplifier()
	if p.parent == nil {
		p.tensors = map[ir.Value]*Tensor{}
		p.states.find(p.Graph)
	}
	p.states.index(p.stacked)
	var err error
	if p.forms, err = formsOf(p); err != nil {
		return nil, err
	}
	p.decided = decide(p)
	p.spaces = newSpaces(p)
	phases := findPhases(p.Graph)
	for again := true; again; again = p.states.overwrite(p.groups) {
		p.groups = newGroupGraph(p)
		if !p.options.Unfused {
			fuser{p.groups, phases}.fuse()
		}
	}
	placer{p}.place()
	if err := p.groups.checkSizes(); err != nil {
		return nil, err
	}
	if err := p.order(); err != nil {
		return nil, err
	}
	reuseBuffers(p)
	return p, nil
}
