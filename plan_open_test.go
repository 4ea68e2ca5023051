package rlx_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/sized"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/webgpu"
)

// openModule has an entry with open sizes, which reads a parameter and counts its calls, and one without.
func openModule(t *testing.T) *ir.Module {
	t.Helper()
	rows, err := ir.Build("rows", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Sym("batch"), ir.Sym("seq"), ir.N(4)), b.Param("w", ir.F32, ir.N(4))
		y := ops.Softmax(b, ops.ReduceSum(b, ops.Mul(b, x, ops.BroadcastTo(b, w, x.Shape())), 2), 1)
		b.Output("y", y)
		b.Output("flat", ops.Reshape(b, y, ir.Sym("batch").Mul(ir.Sym("seq"))))
		b.SetState("calls", ops.Add(b, b.State("calls", ir.I32), ops.Const(b, ir.I32, 1)))
	})
	if err != nil {
		t.Fatal(err)
	}
	double, err := ir.Build("double", func(b *ir.Builder) {
		w := b.Param("w", ir.F32, ir.N(4))
		b.Output("w2", ops.Add(b, w, w))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("open", ir.Entry{Name: "run", Graph: rows}, ir.Entry{Name: "double", Graph: double})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// openFile compiles a module for two batches and three lengths.
func openFile(t *testing.T, m *ir.Module, exact ...string) []byte {
	t.Helper()
	made, err := sized.Compile(m, sized.Options{
		Sizes: map[string][]int{"batch": {1, 4}, "seq": {2, 4, 8}}, Exact: exact,
		Targets: []sized.Target{{Target: plan.WebGPU(), Printer: wgsl.Printer{}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := plan.EncodeOpen(made)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// rowsOf returns an input of openModule, and its results by the formula.
func rowsOf(batch, seq int, w []float32) (in rlx.Inputs, want []float32) {
	x := make([]float32, batch*seq*4)
	for i := range x {
		x[i] = float32(math.Sin(1.7 * float64(i)))
	}
	for row := range batch {
		sum, start := 0.0, len(want)
		for i := range seq {
			s := 0.0
			for k, v := range w {
				s += float64(v * x[(row*seq+i)*4+k])
			}
			sum += math.Exp(s)
			want = append(want, float32(math.Exp(s)))
		}
		for i := range want[start:] {
			want[start+i] /= float32(sum)
		}
	}
	return rlx.Inputs{"x": rlx.Float32s(x, batch, seq, 4)}, want
}

// TestOpenPlanWithOpenSizes calls plans of a file by the shapes of inputs, beside the formula.
func TestOpenPlanWithOpenSizes(t *testing.T) {
	backendtest.Require(t, "webgpu", webgpu.Backend().Probe())
	session, err := rlx.Open("webgpu")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(t.Context())
	p, err := session.OpenPlan(t.Context(), openFile(t, openModule(t)))
	if err != nil {
		t.Fatal(err)
	}
	w := []float32{0.5, -1, 2, 0.25}
	in, _ := rowsOf(2, 3, w)
	if _, err := p.Call(t.Context(), "run", in); !errors.Is(err, ir.ErrName) {
		t.Errorf("without w: %v", err)
	}
	if err := p.Set(t.Context(), "w", rlx.Float32s(w, 4)); err != nil {
		t.Fatal(err)
	}
	if err := p.Prepare(t.Context(), "run", map[string]int{"batch": 1, "seq": 2}); err != nil {
		t.Error(err)
	}
	sizes := [][2]int{{2, 3}, {1, 1}, {4, 8}, {3, 5}, {1, 2}}
	for _, s := range sizes {
		in, want := rowsOf(s[0], s[1], w)
		out, err := p.Call(t.Context(), "run", in)
		if err != nil {
			t.Fatalf("%v: %v", s, err)
		}
		sameTensor(t, "y", out["y"], rlx.Float32s(want, s[0], s[1]))
		sameTensor(t, "flat", out["flat"], rlx.Float32s(want, s[0]*s[1]))
	}
	calls, err := p.Get(t.Context(), "calls")
	if err != nil {
		t.Fatal(err)
	}
	sameTensor(t, "calls", calls, rlx.Int32(int32(len(sizes))))
	out, err := p.Call(t.Context(), "double", nil)
	if err != nil {
		t.Fatal(err)
	}
	sameTensor(t, "w2", out["w2"], rlx.Float32s([]float32{1, -2, 4, 0.5}, 4))
	in, _ = rowsOf(5, 2, w)
	_, err = p.Call(t.Context(), "run", in)
	if text := "no plan of entry \"run\" for batch=5, seq=2: it has batch=1, seq=2; batch=1, seq=4"; !errors.Is(err, ir.ErrShape) || !strings.Contains(err.Error(), text) {
		t.Errorf("a size without a plan: %v", err)
	}
	if err := p.Prepare(t.Context(), "run", map[string]int{"batch": 1, "seq": 9}); !errors.Is(err, ir.ErrShape) {
		t.Errorf("Prepare of a size without a plan: %v", err)
	}
	if _, err := p.Call(t.Context(), "rlx.hold", nil); !errors.Is(err, ir.ErrName) {
		t.Errorf("the entry of states: %v", err)
	}
}

// TestOpenPlanWithExactSizes refuses a length between those of a symbol that is not padded.
func TestOpenPlanWithExactSizes(t *testing.T) {
	backendtest.Require(t, "webgpu", webgpu.Backend().Probe())
	session, err := rlx.Open("webgpu")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(t.Context())
	p, err := session.OpenPlan(t.Context(), openFile(t, openModule(t), "seq"))
	if err != nil {
		t.Fatal(err)
	}
	w := []float32{0.5, -1, 2, 0.25}
	if err := p.Set(t.Context(), "w", rlx.Float32s(w, 4)); err != nil {
		t.Fatal(err)
	}
	in, want := rowsOf(3, 4, w)
	out, err := p.Call(t.Context(), "run", in)
	if err != nil {
		t.Fatal(err)
	}
	sameTensor(t, "y", out["y"], rlx.Float32s(want, 3, 4))
	in, _ = rowsOf(3, 3, w)
	if _, err := p.Call(t.Context(), "run", in); !errors.Is(err, ir.ErrShape) {
		t.Errorf("a length between the exact ones: %v", err)
	}
}
