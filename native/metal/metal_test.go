//go:build cgo && (darwin || linux)

package metal_test

import (
	"context"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// build makes a program of one graph, entry "step".
func build(b native.Backend, g *ir.Graph) (native.Program, error) {
	m, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		return nil, err
	}
	return b.Compile(context.Background(), m, native.Options{})
}

// compile is build, with a program that is closed at the end.
func compile(t testing.TB, b native.Backend, g *ir.Graph) native.Program {
	t.Helper()
	p, err := build(b, g)
	must(t, err)
	t.Cleanup(func() { must(t, p.Close(context.Background())) })
	return p
}

// running is a graph that adds its input to a state.
func running(t testing.TB) *ir.Graph {
	t.Helper()
	g, err := ir.Build("add", func(b *ir.Builder) {
		sum := ops.Add(b, b.State("total", ir.F32, ir.N(1000)), b.Input("x", ir.F32, ir.N(1000)))
		b.SetState("total", sum)
		b.Output("sum", sum)
	})
	must(t, err)
	return g
}

// call runs the entry of a program of running.
func call(p native.Program) error {
	ctx := context.Background()
	r, err := p.Run(ctx, "step", map[string]native.Tensor{"x": native.Zeros(ir.F32, 1000)})
	if err == nil {
		_, err = r.Wait(ctx)
	}
	return err
}

// looping is a graph with a loop in a loop, a checked index and a scalar.
func looping(t testing.TB) *ir.Graph {
	t.Helper()
	g, err := ir.Build("looping", func(b *ir.Builder) {
		x, scale := b.State("x", ir.F32, ir.Dims(5, 300)...), b.Input("scale", ir.F32)
		labels := ops.CheckIndex(b, ops.Add(b, b.Input("labels", ir.I32, ir.N(5)), ops.Const(b, ir.I32, 0)), ir.N(300), "label")
		half := func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Sub(b, x, ops.Reshape(b, ops.ReduceSum(b, ops.MatMul(b, x, ops.Transpose(b, x, 1, 0)), 1), ir.Dims(5, 1)...))
		}
		loop := func(b *ir.Builder, times int, x ir.Value, body func(b *ir.Builder, x ir.Value) ir.Value) ir.Value {
			out, _ := ops.Scan(b, ops.Loop{
				Length: ir.N(times), Carries: []ir.Value{x},
				Body: func(b *ir.Builder, _, carries, _ []ir.Value) (next, ys []ir.Value) {
					return []ir.Value{body(b, carries[0])}, nil
				},
			})
			return out[0]
		}
		out := loop(b, 3, x, func(b *ir.Builder, x ir.Value) ir.Value { return loop(b, 2, x, half) })
		b.SetState("x", ops.Mul(b, out, scale))
		b.Output("picked", ops.TakeAlongAxis(b, out, ops.ExpandDims(b, labels, 1), 1, "fill"))
	})
	must(t, err)
	return g
}
