package autodiff

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/derive"
	"github.com/rlx-go/rlx/ir/ops"
)

// Checkpoint adds the results of f and lets reverse mode keep nothing of it but
// the operands: on the way back f is computed again. A chain of layers, each
// under a Checkpoint, needs the memory of one layer and of what passes between
// them. f sees no values but those it is given, so that parameters are operands
// too. A [Policy] does it for graphs that are there already.
func Checkpoint(b *ir.Builder, operands []ir.Value, f func(b *ir.Builder, in []ir.Value) []ir.Value) []ir.Value {
	if !b.Require("checkpoint", "function", f != nil) {
		return make([]ir.Value, 1)
	}
	g := b.Subgraph("checkpoint", func(b *ir.Builder) { declareOutputs(b, f(b, declare(b, "in", typesOf(operands)))) })
	if b.Err() != nil {
		return make([]ir.Value, 1)
	}
	var ports []int
	for i, v := range operands {
		if derive.Differentiable(v.DType()) {
			ports = append(ports, i)
		}
	}
	p, err := linearise(g, variables{ports: ports})
	if err != nil {
		b.Fail(wrap("checkpoint", err))
		return make([]ir.Value, len(g.Outputs()))
	}
	return CustomVJP(b, operands,
		func(b *ir.Builder, in []ir.Value) (results, kept []ir.Value) { return b.Splice(g, in), in },
		func(b *ir.Builder, kept, ct []ir.Value) []ir.Value { return p.again(b, kept, ct) })
}

// again adds the whole pullback for operands that were kept, given a cotangent for
// each differentiable output.
func (p *pullback) again(b *ir.Builder, kept, ct []ir.Value) []ir.Value {
	in := make([]ir.Value, len(kept))
	for i, v := range kept {
		in[i] = ops.Rematerialize(b, v)
	}
	all, next := make([]ir.Value, len(p.g.Outputs())), 0
	for i, o := range p.g.Outputs() {
		if derive.Differentiable(o.Value.DType()) && next < len(ct) {
			all[i] = ct[next]
			next++
		}
	}
	_, residuals := p.forward(b, in)
	back := p.backward(b, residuals, all)
	for i, port := range p.by.ports {
		back[i] = orZeros(b, back[i], in[port])
	}
	return back
}
