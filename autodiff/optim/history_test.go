package optim_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// doubled is a step with the input x, its double as the output "loss", and the
// state "sum" of all x.
func doubled(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("doubled", func(b *ir.Builder) {
		x := b.Input("x", ir.F32)
		b.SetState("sum", ops.Add(b, b.State("sum", ir.F32), x))
		b.Output("loss", ops.Add(b, x, x))
		b.Output("row", ops.Reshape(b, x, ir.N(1)))
		b.Output("whole", ops.Convert(b, x, ir.I32))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestHistoryIsARingBuffer(t *testing.T) {
	g, err := optim.History(doubled(t), "loss", 3)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*ir.Array{
		"sum": ir.NewArray(ir.F32), optim.HistoryState("loss"): ir.NewArray(ir.F32, 3), optim.HistoryCount: ir.NewArray(ir.I32),
	}
	rings := [][]float64{{2, 0, 0}, {2, 4, 0}, {2, 4, 6}, {8, 4, 6}, {8, 10, 6}}
	for k, ring := range rings {
		in["x"] = ir.Float(ir.F32, float64(k+1))
		out, err := ir.Eval(g, in, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			if o.State {
				in[o.Name] = out[i]
			} else if o.Name == "loss" && out[i].F[0] != float64(2*k+2) {
				t.Errorf("step %d: the loss is %v", k, out[i].F[0])
			}
		}
		if n := in[optim.HistoryCount].I[0]; n != int64(k+1) {
			t.Errorf("step %d: the count is %d", k, n)
		}
		for i, want := range ring {
			if got := in["history/loss"].F[i]; got != want {
				t.Errorf("step %d: place %d holds %v, want %v", k, i, got, want)
			}
		}
	}
	if sum := in["sum"].F[0]; sum != 15 {
		t.Errorf("the state of the step itself is %v", sum)
	}
}

func TestHistoryRefusesUnsupportedValues(t *testing.T) {
	for _, c := range []struct {
		output string
		n      int
		want   error
	}{
		{"gain", 3, ir.ErrName},
		{"sum", 3, ir.ErrName},
		{"row", 3, ir.ErrShape},
		{"whole", 3, ir.ErrDType},
		{"loss", 0, ir.ErrAttr},
	} {
		if _, err := optim.History(doubled(t), c.output, c.n); !errors.Is(err, c.want) {
			t.Errorf("%s, %d steps: %v, want %v", c.output, c.n, err, c.want)
		}
	}
}
