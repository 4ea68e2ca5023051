package parallel_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

var four = ops.MeshAttrs{MeshAxis: "data", Devices: 4}

// chain is a loss of four layers of width 10, with an f64 shift, an i32 count and running state.
func chain() (*ir.Graph, error) {
	return ir.Build("chain", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(3, 10)...)
		for i := range 4 {
			x = ops.Tanh(b, ops.MatMul(b, x, b.Param(fmt.Sprint("w", i), ir.F32, ir.Dims(10, 10)...)))
		}
		shift := ops.Convert(b, b.Param("shift", ir.F64), ir.F32)
		b.Output("loss", ops.Mean(b, ops.Mul(b, x, ops.Add(b, x, shift))))
		b.Output("count", ops.Const(b, ir.I32, 3))
		b.SetState("running", ops.Add(b, b.State("running", ir.F32), ops.Mean(b, x)))
		b.SetState("steps", ops.Add(b, b.State("steps", ir.I32), ops.Const(b, ir.I32, 1)))
	})
}

func gradients(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := chain()
	if err == nil {
		g, err = autodiff.GradWith(g, autodiff.GradOptions{Loss: "loss"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestALargeGradientIsReducedAlone: one of more than half a bucket, as soon as it is computed, before the bucket of
// small ones that was begun before it.
func TestALargeGradientIsReducedAlone(t *testing.T) {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(3, 10)...)
		for i, n := range []int{10, 11, 10} {
			x = ops.Tanh(b, ops.MatMul(b, x, b.Param(fmt.Sprint("w", i), ir.F32, x.Shape()[1], ir.N(n))))
		}
		b.Output("loss", ops.Mean(b, ops.Mul(b, x, ops.Add(b, x, b.Param("bias", ir.F32, ir.N(10))))))
	})
	if err == nil {
		loss, err = autodiff.GradWith(loss, autodiff.GradOptions{Loss: "loss"})
	}
	if err != nil {
		t.Fatal(err)
	}
	_, report, err := parallel.Data{Mesh: four, Bucket: 850}.Gradients(loss)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range report.Buckets {
		got = append(got, strings.Join(k.Params, " "))
	}
	if want := []string{"w2", "w1", "bias w0"}; !slices.Equal(got, want) {
		t.Errorf("the buckets are %q, want %q", got, want)
	}
}

// TestGradientsAreReducedInTheOrderOfProduction: the last layer first, in buckets of at most the
// given size, each of one element type.
func TestGradientsAreReducedInTheOrderOfProduction(t *testing.T) {
	g := gradients(t)
	out, report, err := parallel.Data{Mesh: four, Bucket: 800}.Gradients(g)
	if err != nil {
		t.Fatal(err)
	}
	var f32 []string
	for _, k := range report.Buckets {
		if k.DType == ir.F32 {
			f32 = append(f32, strings.Join(k.Params, " "))
		}
	}
	if want := []string{"w3 w2", "w1 w0"}; !slices.Equal(f32, want) || len(report.Buckets) != 3 {
		t.Errorf("the buckets are %v, want %q and one of f64", report.Buckets, want)
	}
	// Gradients of 1,608 bytes, the loss and the running mean; a ring sends 2·3/4 of each.
	if want := int64(2 * 3 * (1608 + 4 + 4) / 4); report.Sent != want {
		t.Errorf("each device sends %d bytes, want %d", report.Sent, want)
	}
	for i, o := range g.Outputs() {
		if got := out.Outputs()[i]; got.Name != o.Name || got.State != o.State || !got.Value.Type().Equal(o.Value.Type()) {
			t.Errorf("output %d is %q, %s", i, got.Name, got.Value.Type())
		}
	}
	if text := report.String(); !strings.Contains(text, `over 4 devices along "data": 5 gradients of 1608 bytes in 3 buckets, 2424 bytes sent`) || !strings.Contains(text, "f32, 800 bytes, from w3 to w2") {
		t.Error(text)
	}
}

// TestOneDeviceChangesNothing: the graph is the same.
func TestOneDeviceChangesNothing(t *testing.T) {
	g := gradients(t)
	out, _, err := parallel.Data{Mesh: ops.MeshAttrs{MeshAxis: "data", Devices: 1}}.Gradients(g)
	if err != nil || out != g {
		t.Errorf("%v", err)
	}
}

// TestWrongOptionsAreRefused with the kinds that the documentation says.
func TestWrongOptionsAreRefused(t *testing.T) {
	g := gradients(t)
	for _, c := range []struct {
		data parallel.Data
		kind error
	}{
		{parallel.Data{}, ir.ErrAttr},
		{parallel.Data{Mesh: four, Bucket: -1}, ir.ErrAttr},
		{parallel.Data{Mesh: four, Loss: "lost"}, ir.ErrName},
		{parallel.Data{Mesh: four, Weight: "lost"}, ir.ErrName},
		{parallel.Data{Mesh: four, Loss: "count"}, ir.ErrDType},
		{parallel.Data{Mesh: four, Weight: "grad/w0"}, ir.ErrShape},
	} {
		if _, _, err := c.data.Gradients(g); !errors.Is(err, c.kind) {
			t.Errorf("%+v: %v", c.data, err)
		}
	}
	if _, _, err := (parallel.Data{Mesh: four, Weight: "count"}).Gradients(g); err != nil {
		t.Error(err)
	}
	if _, _, err := (parallel.Data{Mesh: four}).Gradients(nil); !errors.Is(err, ir.ErrGraph) {
		t.Errorf("no graph: %v", err)
	}
}

// TestAStepRefusesGradientsOfAnotherForm: optim's option must keep ports and outputs.
func TestAStepRefusesGradientsOfAnotherForm(t *testing.T) {
	loss, err := chain()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []func(*ir.Graph) (*ir.Graph, error){
		func(*ir.Graph) (*ir.Graph, error) { return loss, nil },
		func(*ir.Graph) (*ir.Graph, error) { return nil, nil },
	} {
		if _, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Gradients: f}); !errors.Is(err, ir.ErrGraph) {
			t.Errorf("%v", err)
		}
	}
}

// TestStatesOfTheOptimizerAreDivided: those of the layers, for the bytes of an all-reduce.
func TestStatesOfTheOptimizerAreDivided(t *testing.T) {
	loss, err := chain()
	if err != nil {
		t.Fatal(err)
	}
	step := func(o optim.Options, d parallel.Data) (*ir.Graph, parallel.ShardReport) {
		o.Gradients = func(g *ir.Graph) (*ir.Graph, error) {
			g, _, err := d.Gradients(g)
			return g, err
		}
		g, err := optim.Step(loss, "loss", optim.AdamW{}, o)
		if err != nil {
			t.Fatal(err)
		}
		out, report, err := parallel.Shard{Mesh: d.Mesh}.States(g)
		if err != nil {
			t.Fatal(err)
		}
		return out, report
	}
	out, r := step(optim.Options{}, parallel.Data{Mesh: four, Scatter: true})
	if len(r.Sharded) != 8 || len(r.Whole) != 0 {
		t.Errorf("divided are %q, whole %q", r.Sharded, r.Whole)
	}
	// m and v of four layers of 100 elements and of an f64, and the count of steps.
	if r.Before != 8*400+2*8+4 || r.Bytes != 8*100+2*8+4 {
		t.Errorf("the states have %d bytes, and had %d", r.Bytes, r.Before)
	}
	for _, p := range out.Ports() {
		if want := (ir.Shape{ir.N(25)}); p.Name == "optim/m/w2" && !p.Value.Shape().Equal(want) {
			t.Errorf("%q is %s", p.Name, p.Value.Type())
		}
	}
	// The layers by a reduce_scatter and an all_gather, three quarters of 1,600 bytes each. The f64 has
	// 32 bytes with its padding, the loss and the running mean 4.
	if want := int64(2*3*1600/4 + 2*3*32/4 + 2*(2*3*4/4)); r.Sent != want {
		t.Errorf("each device sends %d bytes, want %d", r.Sent, want)
	}
	for clip, want := range map[float64][2]int{0: {16, 0}, 1: {12, 4}} { // the norm needs whole sums of gradients
		_, r := step(optim.Options{Accumulate: 2, Average: 0.9, ClipNorm: clip}, parallel.Data{Mesh: four})
		if got := [2]int{len(r.Sharded), len(r.Whole)}; got != want {
			t.Errorf("clipped to %v, divided are %q, whole %q", clip, r.Sharded, r.Whole)
		}
	}
	if _, r := step(optim.Options{}, parallel.Data{Mesh: ops.MeshAttrs{MeshAxis: "data", Devices: 1}}); r.Sharded != nil || r.Bytes != r.Before {
		t.Errorf("on one device: %s", r)
	}
	if _, err := ir.Build("ring", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(1, 2, 3, 4)...)
		parallel.RingAttention(b, x, x, x, ops.MeshAttrs{MeshAxis: "data", Devices: math.MaxInt}, ops.AttentionAttrs{})
	}); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("a ring of too many: %v", err)
	}
	if _, _, err := (parallel.Shard{Mesh: ops.MeshAttrs{Devices: 2}}).States(out); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("without an axis: %v", err)
	}
}
