package autodiff_test

import (
	"context"
	"math"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// devices run a graph of f32: the kernels of WebGPU in the simulator, and the CPU.
var devices = map[string]func(t *testing.T, m *ir.Module, in values) map[string][]float64{
	"WebGPU": func(t *testing.T, m *ir.Module, in values) map[string][]float64 {
		s, err := plansim.Open(m, plan.WebGPU())
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Run("run", in)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string][]float64{}
		for name, a := range got {
			out[name] = a.F
		}
		return out
	},
	"CPU": func(t *testing.T, m *ir.Module, in values) map[string][]float64 {
		session, err := rlx.Open("cpu")
		if err != nil {
			t.Fatal(err)
		}
		program, err := session.Compile(context.Background(), m)
		if err != nil {
			t.Fatal(err)
		}
		inputs := rlx.Inputs{}
		for name, a := range in {
			inputs[name] = rlx.Float32s(singles(a.F), a.Dims...)
		}
		got, err := program.Call(context.Background(), "run", inputs)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string][]float64{}
		for name, x := range got {
			values, err := x.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range values {
				out[name] = append(out[name], float64(v))
			}
		}
		return out
	},
}

func singles(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// checkOnDevices compares the outputs of a graph of f32 with those of the reference implementation.
func checkOnDevices(t *testing.T, g *ir.Graph, in values) {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	want := eval(t, g, in)
	for device, run := range devices {
		got := run(t, m, in)
		for name, w := range want {
			checkFloats(t, device+": "+name, &ir.Array{F: got[name]}, w.F, 2e-5)
		}
	}
}

// f32Wave is [wave] of f32.
func f32Wave(seed float64, dims ...int) *ir.Array {
	a := waveLike(seed, ir.NewArray(ir.F32, dims...))
	a.Round()
	return a
}

func attentionOnDevicesKnowsItsAttributes(t *testing.T) {
	in := values{"q": f32Wave(1, 2, 5, 4), "k": f32Wave(2, 2, 5, 4), "v": f32Wave(3, 2, 5, 4), "bias": f32Wave(4, 5, 5)}
	for _, a := range []ops.AttentionAttrs{{Scale: 1.7}, {Softcap: 0.4}, {Causal: true}, {Scale: 0.3, Softcap: 0.7, Causal: true}} {
		g := build(t, func(b *ir.Builder) {
			port := func(name string) ir.Value { return b.Port(ir.InputPort, name, in[name].Type()) }
			b.Output("y", ops.Attention(b, port("q"), port("k"), port("v"), port("bias"), a))
		})
		checkOnDevices(t, g, in)
		if first := eval(t, g, in)["y"].F[:4]; a.Causal {
			checkFloats(t, "the first of those who look back", &ir.Array{F: first}, in["v"].F[:4], 1e-15)
		}
	}
}

func halvesAreConvertedOnDevices(t *testing.T) {
	for _, d := range []ir.DType{ir.F16, ir.BF16} {
		g := build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.N(4))
			b.Output("y", ops.Convert(b, ops.Convert(b, ops.Mul(b, x, x), d), ir.F32))
		})
		in := values{"x": ir.Floats(ir.F32, []float64{1, 2, 3, 4}, 4)}
		checkFloats(t, d.String(), eval(t, g, in)["y"], []float64{1, 4, 9, 16}, 0)
		checkOnDevices(t, g, in)
	}
}

func emptyTensorsRunOnDevices(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(0, 3)...), b.Input("w", ir.F32, ir.Dims(3, 2)...)
		y := ops.MatMul(b, x, w)
		b.Output("rows", y)
		b.Output("sum", ops.ReduceSum(b, y, 0))
		b.Output("product", ops.MatMul(b, ops.Transpose(b, x, 1, 0), x))
	})
	checkOnDevices(t, g, values{"x": ir.NewArray(ir.F32, 0, 3), "w": f32Wave(1, 3, 2)})
}

// lstmsGoOnWhereTheyStopped runs four steps at once, and twice two.
func lstmsGoOnWhereTheyStopped(t *testing.T) {
	in := values{"x": f32Wave(1, 4, 2, 3), "h": f32Wave(2, 1, 2, 4), "c": f32Wave(3, 1, 2, 4)}
	g := build(t, func(b *ir.Builder) {
		port := func(name string) ir.Value { return b.Port(ir.InputPort, name, in[name].Type()) }
		x, h, c := port("x"), port("h"), port("c")
		var weights []ir.Value
		for i, a := range []*ir.Array{f32Wave(4, 3, 16), f32Wave(5, 4, 16), f32Wave(6, 16), f32Wave(7, 16)} {
			name := string(rune('p' + i))
			in[name] = a
			weights = append(weights, port(name))
		}
		whole, _, _ := ops.LSTM(b, x, h, c, weights, ops.RecurrentAttrs{})
		first, h, c := ops.LSTM(b, ops.SliceAxis(b, x, 0, ir.N(0), ir.N(2)), h, c, weights, ops.RecurrentAttrs{})
		second, _, _ := ops.LSTM(b, ops.SliceAxis(b, x, 0, ir.N(2), ir.N(2)), h, c, weights, ops.RecurrentAttrs{})
		b.Output("whole", whole)
		b.Output("parts", ops.Concatenate(b, 0, first, second))
	})
	got := eval(t, g, in)
	checkFloats(t, "parts", got["parts"], got["whole"].F, 1e-14)
	checkOnDevices(t, g, in)
}

// exponentialsOfNaNAreNaN runs on the CPU: WGSL does not promise NaN.
func exponentialsOfNaNAreNaN(t *testing.T) {
	x := ir.NewArray(ir.F32, 67)
	for i := range x.F {
		x.F[i] = float64(i) - 33
		if i%5 == 0 {
			x.F[i] = math.NaN()
		}
	}
	g := build(t, func(b *ir.Builder) { b.Output("y", ops.Exp(b, b.Input("x", ir.F32, ir.N(67)))) })
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	for i, y := range devices["CPU"](t, m, values{"x": x})["y"] {
		if math.IsNaN(y) != (i%5 == 0) {
			t.Errorf("exp of %v is %v", x.F[i], y)
		}
	}
}
