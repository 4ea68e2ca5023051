package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// maxDepth bounds the nesting of composites.
const maxDepth = 64

// inline replaces composites by their bodies, recursively, except those that are
// claimed. It also decomposes the scans that Options.Decompose selects.
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
	if n.Def().IsComposite() {
		return r.Claim == nil || !r.Claim(n)
	}
	return r.Decompose != nil && r.Decompose(n)
}

// expand adds the body of a composite, inlining nested composites at most depth levels
// deep.
func (r *run) expand(s site, depth int) []ir.Value {
	if depth == 0 {
		s.b.Fail(ir.Errorf(ir.ErrGraph, "composites are nested more than %d deep", maxDepth))
		return nil
	}
	body, err := r.bodyOf(s.n)
	if err != nil {
		s.b.Fail(s.n.Fail(err))
		return nil
	}
	body.enter(s)
	for _, n := range body.graph.Nodes() {
		if n.Op() != ir.OpPort && !body.isShared(n) {
			body.in = body.to.AppendInputs(body.in[:0], n)
			body.to.SetAll(n, r.inner(site{b: s.b, n: n, in: body.in, to: body.to}, depth))
		}
	}
	return body.to.Outputs(body.graph)
}

// body is the body of a composite with the mapping of its current copy.
type body struct {
	graph     *ir.Graph
	to        *ir.Mapping
	in        []ir.Value  // operands of the current node
	b         *ir.Builder // of the graph of the last copy
	sameGraph bool        // the current copy is into the same graph
	// constant says by node ID which nodes do not depend on an operand of the
	// composite, such as literals. All copies in one graph share them.
	constant []bool
}

// bodyOf returns the body of a composite. Nodes of one form share a body, except those
// with subgraphs, whose labels and positions are part of the body.
func (r *run) bodyOf(n *ir.Node) (*body, error) {
	if len(n.Subgraphs()) > 0 {
		return r.newBody(ir.Inline(n))
	}
	form := r.forms.Of(n)
	if known := r.bodies[form]; known != nil {
		return known, nil
	}
	made, err := r.newBody(ir.Body(n))
	r.bodies[form] = made
	return made, err
}

// newBody returns the body for a graph, after CSE.
func (r *run) newBody(g *ir.Graph, err error) (*body, error) {
	if err != nil {
		return nil, err
	}
	at := r.node
	if g, err = cse(r, g); err != nil {
		return nil, err
	}
	r.node = at
	x := &body{graph: g, to: ir.NewMapping(g), constant: make([]bool, len(g.Nodes()))}
	for i, n := range g.Nodes() {
		x.constant[i] = n.Op() != ir.OpPort && !slices.ContainsFunc(n.Inputs(), func(v ir.Value) bool { return !x.constant[v.Node().ID()] })
	}
	return x, nil
}

// enter begins a copy of the body at a node.
func (x *body) enter(s site) {
	x.sameGraph, x.b = x.b == s.b, s.b
	x.to.SetPorts(x.graph, s.in)
}

// isShared reports whether an earlier copy in the same graph has added the node.
func (x *body) isShared(n *ir.Node) bool { return x.constant[n.ID()] && x.sameGraph }

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
