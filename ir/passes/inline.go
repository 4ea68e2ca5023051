package passes

import "github.com/rlx-go/rlx/ir"

// maxDepth bounds how many levels of composites may be made of each other.
const maxDepth = 64

// inline replaces composites by their bodies, all the way down, except those
// that are claimed.
func inline(r *run, g *ir.Graph) (*ir.Graph, error) {
	for range maxDepth {
		out, err := r.rewrite(g, r.inlineNode)
		if err != nil || out == g {
			return out, err
		}
		g = out
	}
	return nil, ir.Errorf(ir.ErrGraph, "composites contain each other more than %d levels deep", maxDepth)
}

func (r *run) inlineNode(s site) []ir.Value {
	if !s.n.Def().IsComposite() || r.Claim != nil && r.Claim(s.n) {
		return nil
	}
	body, err := ir.Inline(s.n)
	if err != nil {
		s.b.Fail(err)
		return nil
	}
	return s.b.Splice(body, s.in)
}
