package cudacpp_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/cuda"
)

// TestIntegersWrapAlsoForTheCompiler compiles comparisons that hold for every
// integer that does not overflow. A compiler that may assume so stores true and
// never loads x.
func TestIntegersWrapAlsoForTheCompiler(t *testing.T) {
	type value = ir.Value
	for name, f := range map[string]func(b *ir.Builder, x, one value) value{
		"x + 1 > x":         func(b *ir.Builder, x, one value) value { return ops.Gt(b, ops.Add(b, x, one), x) },
		"x - 1 < x":         func(b *ir.Builder, x, one value) value { return ops.Lt(b, ops.Sub(b, x, one), x) },
		"(x + x) / 2 == x":  func(b *ir.Builder, x, one value) value { return ops.Eq(b, half(b, ops.Add(b, x, x), one), x) },
		"(x * 6) / 2 == 3x": func(b *ir.Builder, x, one value) value { return sixth(b, x, one) },
		"(x << 1) / 2 == x": func(b *ir.Builder, x, one value) value { return ops.Eq(b, half(b, ops.ShiftLeft(b, x, one), one), x) },
		"|x| >= 0":          func(b *ir.Builder, x, one value) value { return ops.Ge(b, ops.Abs(b, x), ops.ZerosLike(b, x)) },
		"-x > 0 is x < 0": func(b *ir.Builder, x, one value) value {
			positive := ops.Gt(b, ops.Neg(b, x), ops.ZerosLike(b, x))
			return ops.Eq(b, positive, ops.Lt(b, x, ops.ZerosLike(b, x)))
		},
	} {
		for _, d := range []ir.DType{ir.I32, ir.I64} {
			t.Run(name+" of "+d.String(), func(t *testing.T) {
				t.Parallel()
				ptx, err := clang.Compile(kernelOf(t, func(b *ir.Builder) {
					x := b.Input("x", d, ir.N(64))
					b.Output("y", f(b, x, ops.OnesLike(b, x)))
				}))
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(ptx, "ld.global") {
					t.Errorf("x is not loaded:\n%s", ptx)
				}
			})
		}
	}
}

func half(b *ir.Builder, x, one ir.Value) ir.Value { return ops.Div(b, x, ops.Add(b, one, one)) }

func sixth(b *ir.Builder, x, one ir.Value) ir.Value {
	three := ops.Add(b, one, ops.Add(b, one, one))
	return ops.Eq(b, half(b, ops.Mul(b, x, ops.Add(b, three, three)), one), ops.Mul(b, x, three))
}

// kernelOf returns the CUDA C++ of a graph that is one kernel.
func kernelOf(t *testing.T, f func(b *ir.Builder)) string {
	t.Helper()
	p, err := compile(ir.Build("k", f))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Kernels) != 1 {
		t.Fatalf("%d kernels", len(p.Kernels))
	}
	return p.Kernels[0].Source
}

func compile(g *ir.Graph, err error) (*plan.Plan, error) {
	if err != nil {
		return nil, err
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		return nil, err
	}
	return plan.Compile(m, cuda.Target(), cudacpp.Printer{})
}
