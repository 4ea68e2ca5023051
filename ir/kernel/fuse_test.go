package kernel_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel"
	"github.com/rlx-go/rlx/ir/ops"
)

func inlineAll(t *testing.T, g *ir.Graph) *ir.Graph {
	t.Helper()
	for {
		again := false
		out, err := ir.Build(g.Name(), func(b *ir.Builder) {
			m := ir.NewMapping(g)
			b.CopyPorts(g, m)
			for _, n := range g.Nodes() {
				if n.Op() == ir.OpPort {
					continue
				}
				if n.Def().IsComposite() {
					again = true
					body, err := ir.Inline(n)
					if err != nil {
						t.Fatal(err)
					}
					m.SetAll(n, b.Splice(body, m.Inputs(n)))
					continue
				}
				m.SetAll(n, b.Copy(n, m.Inputs(n)))
			}
			for _, o := range g.Outputs() {
				b.CopyOutput(o, m.Get(o.Value))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		g = out
		if !again {
			return g
		}
	}
}

func TestSoftmax(t *testing.T) {
	g, err := ir.Build("softmax", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(100), ir.N(300))
		b.Output("y", ops.Softmax(b, x, -1))
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernel.Build(inlineAll(t, g), kernel.DefaultOptions)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range p.Items {
		gr := it.(*kernel.Group)
		t.Log(gr.Name(), gr.Kind, gr.Outer, gr.Inner, len(gr.Members))
		ls, err := p.Schedule(gr, kernel.DefaultDevice)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range ls {
			t.Log(l.Kernel.String())
		}
	}
}
