package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// maxDepth bounds how many levels of composites may be made of each other.
const maxDepth = 64

// inline replaces composites by their bodies, all the way down, except those
// that are claimed.
func inline(r *run, g *ir.Graph) (*ir.Graph, error) {
	if !r.hasComposites(g) {
		return g, nil
	}
	return r.walk(g, func(s site) ([]ir.Value, bool) {
		if r.isInlined(s.n) {
			return r.expand(s, maxDepth), true
		}
		return r.copyNode(s, func(g *ir.Graph) (*ir.Graph, error) { return inline(r, g) })
	})
}

func (r *run) hasComposites(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return r.isInlined(n) || slices.ContainsFunc(n.Subgraphs(), r.hasComposites)
	})
}

func (r *run) isInlined(n *ir.Node) bool {
	return n.Def().IsComposite() && (r.Claim == nil || !r.Claim(n))
}

// expand adds the body of a composite, and the bodies of what that is made of,
// at most depth levels down.
func (r *run) expand(s site, depth int) []ir.Value {
	if depth == 0 {
		s.b.Fail(ir.Errorf(ir.ErrGraph, "composites contain each other more than %d levels deep", maxDepth))
		return nil
	}
	body, err := ir.Inline(s.n)
	if err != nil {
		s.b.Fail(err)
		return nil
	}
	to := ir.NewMapping(body)
	for i, p := range body.Ports() {
		to.Set(p.Value, s.in[i])
	}
	for _, n := range body.Nodes() {
		if n.Op() != ir.OpPort {
			to.SetAll(n, r.inner(site{b: s.b, n: n, in: to.Inputs(n), to: to}, depth))
		}
	}
	results := make([]ir.Value, len(body.Outputs()))
	for i, o := range body.Outputs() {
		results[i] = to.Get(o.Value)
	}
	return results
}

// inner adds a node of a composite's body.
func (r *run) inner(s site, depth int) []ir.Value {
	switch {
	case s.b.Err() != nil:
		return nil
	case r.isInlined(s.n):
		return r.expand(s, depth-1)
	}
	results, _ := r.copyNode(s, func(g *ir.Graph) (*ir.Graph, error) { return inline(r, g) })
	return results
}
