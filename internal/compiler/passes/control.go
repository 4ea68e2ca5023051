package passes

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// controlRules lists the rules of ops with subgraphs, which may have several results, and of scatters.
func controlRules() map[ir.Op][]rule {
	return map[ir.Op][]rule{
		ops.OpCond: {condKnown},
		ops.OpScan: {scanZeroLength, scanInvariant, scanHoistSums, scanHoistInvariants},

		ops.OpScatterAdd: {scatterAtConstants},
	}
}

// condKnown replaces a cond with a constant predicate by the branch taken.
func condKnown(s site) []ir.Value {
	switch branches := s.n.Subgraphs(); {
	case is(s.in[0], 1):
		return s.b.Splice(branches[0], s.in[1:])
	case is(s.in[0], 0):
		return s.b.Splice(branches[1], s.in[1:])
	}
	return nil
}

func scanOf(n *ir.Node) (*ops.ScanAttrs, *ir.Graph) {
	return n.Attrs().(*ops.ScanAttrs), n.Subgraphs()[0]
}

// scanZeroLength: a scan without steps returns its initial carries.
func scanZeroLength(s site) []ir.Value {
	a, _ := scanOf(s.n)
	if !a.Length.Is(0) {
		return nil
	}
	out := slices.Clone(s.in[a.Consts : a.Consts+a.Carries])
	for _, t := range s.n.Types()[a.Carries:] {
		out = append(out, ops.Zeros(s.b, t.DType, t.Shape...))
	}
	return out
}

// scanInvariant makes loop-invariant carries constants of the scan.
func scanInvariant(s site) []ir.Value {
	a, body := scanOf(s.n)
	ports, outputs := body.Ports(), body.Outputs()
	var kept, still []int
	for i := range a.Carries {
		if outputs[i].Value == ports[a.Consts+i].Value {
			still = append(still, i)
		} else {
			kept = append(kept, i)
		}
	}
	if len(still) == 0 {
		return nil
	}
	order := permute.Counting(0, a.Consts)
	for _, i := range slices.Concat(still, kept) {
		order = append(order, a.Consts+i)
	}
	order = append(order, permute.Counting(a.Consts+a.Carries, len(ports)-a.Consts-a.Carries)...)
	results := slices.Concat(kept, permute.Counting(a.Carries, len(outputs)-a.Carries))
	if len(results) == 0 { // nothing but these carries
		return slices.Clone(s.in[a.Consts : a.Consts+a.Carries])
	}
	attrs := *a
	attrs.Consts, attrs.Carries = a.Consts+len(still), len(kept)
	out := s.b.AddNode(ops.OpScan, &attrs, []*ir.Graph{rearranged(s.b, body, order, results)}, permute.Pick(s.in, order)...)
	if s.b.Err() != nil {
		return nil
	}
	all := make([]ir.Value, len(outputs))
	for i, at := range results {
		all[at] = out[i]
	}
	for _, i := range still {
		all[i] = s.in[a.Consts+i]
	}
	return all
}

// rearranged returns g with its ports in the given order and the given outputs only.
func rearranged(b *ir.Builder, g *ir.Graph, ports, outputs []int) *ir.Graph {
	return b.Subgraph(g.Name(), func(b *ir.Builder) {
		in := make([]ir.Value, len(ports))
		for _, i := range ports {
			p := g.Ports()[i]
			in[i] = b.Port(p.Kind, p.Name, p.Value.Type())
		}
		out := b.Splice(g, in)
		for _, i := range outputs {
			b.CopyOutput(g.Outputs()[i], out[i])
		}
	})
}
