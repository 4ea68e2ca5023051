package coreml_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/coreml"
)

// integerProduct multiplies integers, the second factor as stored or transposed.
func integerProduct(t *testing.T, rows, inner int, turned bool) ir.Entry {
	t.Helper()
	g, err := ir.Build("product", func(b *ir.Builder) {
		x, y := b.Input("x", ir.I32, ir.Dims(2, rows, inner)...), b.Input("y", ir.I32, ir.Dims(2, inner, 5)...)
		if turned {
			y = ops.Transpose(b, b.Input("z", ir.I32, ir.Dims(2, 5, inner)...), 0, 2, 1)
		}
		b.Output("xy", ops.MatMul(b, x, y))
	})
	if err != nil {
		t.Fatal(err)
	}
	return ir.Entry{Name: "step", Graph: g}
}

// Core ML does not load some products of int32 (error -14, apple/coremltools #2575), so
// none is requested. They wrap as integers do, which no route by floats would.
func TestIntegersAreMultipliedWithoutMatMul(t *testing.T) {
	for _, turned := range []bool{false, true} {
		e := integerProduct(t, 3, 4, turned)
		p := roundTrip(t, []ir.Entry{e})
		f := p.Program.Functions[0]
		for _, op := range f.Ops {
			if op.Kind == "matmul" || op.Kind == "linear" {
				t.Errorf("turned %t: %s of %s", turned, op.Kind, op.Type)
			}
		}
		in := map[string]*ir.Array{}
		for _, port := range e.Graph.Ports() {
			dims, _ := port.Value.Shape().Ints()
			a := ir.NewArray(ir.I32, dims...)
			for i := range a.I {
				a.I[i] = ir.I32.Wrap(int64(i+3) * 0x4f00f31b)
			}
			in[port.Name] = a
		}
		compare(t, p, f, e.Graph, in, func(ir.DType) irtest.Tolerance { return irtest.Tolerance{} })
	}
}

func TestLongProductsOfIntegersAreRefused(t *testing.T) {
	m, err := ir.NewModule("m", integerProduct(t, 4096, 4096, false))
	if err != nil {
		t.Fatal(err)
	}
	var typed *coreml.Error
	if _, err := coreml.New(m, coreml.Options{}); !errors.Is(err, ir.ErrUnsupported) || !errors.As(err, &typed) || typed.Entry != "step" {
		t.Errorf("error %v", err)
	}
}

// What the forms make of every sample has no such product either.
func checkNoIntegerMatMul(t *testing.T, f *mil.Function) {
	t.Helper()
	for _, op := range f.Ops {
		if (op.Kind == "matmul" || op.Kind == "linear") && op.Type.DType == mil.Int32 {
			t.Errorf("%s: %s of int32", f.Name, op.Kind)
		}
	}
}
