package rlx_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/webgpu"
)

// TestOpenPlan runs a plan file, whose parameter must be set first.
func TestOpenPlan(t *testing.T) {
	backendtest.Require(t, "webgpu", webgpu.Backend().Probe())
	g, err := ir.Build("double", func(b *ir.Builder) {
		b.Output("y", ops.Mul(b, b.Input("x", ir.F32, ir.N(3)), b.Param("w", ir.F32, ir.N(3))))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("double", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	made, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := plan.Encode(made)
	if err != nil {
		t.Fatal(err)
	}
	session, err := rlx.Open("webgpu")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(t.Context())
	p, err := session.OpenPlan(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	in := rlx.Inputs{"x": rlx.Float32s([]float32{1, 2, 3}, 3)}
	if _, err := p.Call(t.Context(), "run", in); !errors.Is(err, ir.ErrName) {
		t.Errorf("without w: %v", err)
	}
	if err := p.Set(t.Context(), "w", rlx.Float32s([]float32{4, 5, 6}, 3)); err != nil {
		t.Fatal(err)
	}
	out, err := p.Call(t.Context(), "run", in)
	if err != nil {
		t.Fatal(err)
	}
	sameTensor(t, "y", out["y"], rlx.Float32s([]float32{4, 10, 18}, 3))
	if _, err := session.OpenPlan(t.Context(), file[:40]); !errors.Is(err, ir.ErrSyntax) {
		t.Errorf("a damaged file: %v", err)
	}
	host, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close(t.Context())
	if _, err := host.OpenPlan(t.Context(), file); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("on the CPU: %v", err)
	}
}
