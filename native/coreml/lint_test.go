package coreml_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/coreml"
)

func TestLintNamesRules(t *testing.T) {
	rules := func(half bool, build func(b *ir.Builder)) []string {
		p, err := coreml.New(module(t, build), coreml.Options{Half: half})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range coreml.Lint(p) {
			rule := f.Rule
			if f.Slow {
				rule += ", slow"
			}
			if !slices.Contains(out, rule) {
				out = append(out, rule)
			}
		}
		return out
	}
	plain := func(b *ir.Builder) { b.Output("y", ops.Tanh(b, b.Input("x", ir.F32, ir.Dims(1, 8, 1, 32)...))) }
	for name, c := range map[string]struct {
		half  bool
		build func(b *ir.Builder)
		want  []string
	}{
		"fp16 of four axes": {true, plain, nil},
		"fp32":              {false, plain, []string{"fp16"}},
		"product": {true, func(b *ir.Builder) {
			b.Output("y", ops.ReduceProd(b, b.Input("x", ir.F32, ir.Dims(4, 4)...), 1))
		}, []string{"operation"}},
		"matrices": {true, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.Dims(8, 32)...)
			b.Output("y", ops.MatMul(b, x, ops.Transpose(b, x, 1, 0)))
		}, []string{"product, slow"}},
		"long axis": {true, func(b *ir.Builder) { b.Output("y", ops.Tanh(b, b.Input("x", ir.F32, ir.N(20000)))) }, []string{"size"}},
		"column":    {true, func(b *ir.Builder) { b.Output("y", ops.Tanh(b, b.Input("x", ir.F32, ir.Dims(100, 1)...))) }, []string{"last axis, slow"}},
		"5 axes":    {true, func(b *ir.Builder) { b.Output("y", ops.Tanh(b, b.Input("x", ir.F32, ir.Dims(1, 2, 2, 2, 2)...))) }, []string{"axes, slow"}},
		"large":     {true, func(b *ir.Builder) { b.Output("y", ops.Tanh(b, b.Input("x", ir.F32, ir.Dims(1024, 2048)...))) }, []string{"memory, slow"}},
		"wide kernel": {true, func(b *ir.Builder) {
			b.Output("y", ops.ConvGeneral(b, b.Input("x", ir.F32, ir.Dims(1, 2, 4, 32)...), b.Input("w", ir.F32, ir.Dims(2, 2, 1, 15)...), ops.ConvAttrs{}))
		}, []string{"operand"}},
		"search": {true, func(b *ir.Builder) { b.Output("y", ops.ArgMax(b, b.Input("x", ir.F32, ir.Dims(2, 3000)...), 1)) }, []string{"operand"}},
	} {
		if got := rules(c.half, c.build); !slices.Equal(got, c.want) {
			t.Errorf("%s: the rules are %q, not %q", name, got, c.want)
		}
	}
}
