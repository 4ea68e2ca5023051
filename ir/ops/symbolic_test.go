package ops_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestSymbolicSizesSurviveEveryRule differentiates forward over reverse, and
// batches, graphs with a symbolic size, binds it afterwards, and compares with
// the same done at that size throughout.
func TestSymbolicSizesSurviveEveryRule(t *testing.T) {
	half := func(n ir.Dim) ir.Dim { h, _ := n.Div(ir.N(2)); return h }
	two := ir.N(2)
	for name, f := range map[string]func(b *ir.Builder, x ir.Value, n ir.Dim) ir.Value{
		"broadcast": func(b *ir.Builder, x ir.Value, n ir.Dim) ir.Value {
			return ops.Mul(b, x, ops.SliceAxis(b, x, 0, ir.N(0), ir.N(1)))
		},
		"reshape":   func(b *ir.Builder, x ir.Value, n ir.Dim) ir.Value { return ops.Reshape(b, x, n.Mul(ir.N(3))) },
		"split":     func(b *ir.Builder, x ir.Value, n ir.Dim) ir.Value { return ops.Reshape(b, x, half(n), two, ir.N(3)) },
		"transpose": func(b *ir.Builder, x ir.Value, _ ir.Dim) ir.Value { return ops.Transpose(b, x) },
		"slice":     func(b *ir.Builder, x ir.Value, n ir.Dim) ir.Value { return ops.SliceAxis(b, x, 0, half(n), half(n)) },
		"strided": func(b *ir.Builder, x ir.Value, n ir.Dim) ir.Value {
			return ops.Slice(b, x, ir.Dims(1, 0), []ir.Dim{half(n), two}, []int{2, 2})
		},
		"pad": func(b *ir.Builder, x ir.Value, n ir.Dim) ir.Value {
			return ops.Pad(b, x, ops.ReduceSum(b, x), []int{1, 0}, []int{2, 0}, []int{2, 0})
		},
		"crop": func(b *ir.Builder, x ir.Value, n ir.Dim) ir.Value {
			return ops.Pad(b, x, ops.Zeros(b, ir.F64), []int{-1, 0}, []int{-1, 1}, nil)
		},
		"concatenate": func(b *ir.Builder, x ir.Value, n ir.Dim) ir.Value {
			return ops.Concatenate(b, 0, x, ops.Neg(b, x), ops.Zeros(b, ir.F64, two, ir.N(3)))
		},
		"reverse": func(b *ir.Builder, x ir.Value, _ ir.Dim) ir.Value { return ops.Reverse(b, x, 0) },
		"sum":     func(b *ir.Builder, x ir.Value, _ ir.Dim) ir.Value { return ops.ReduceSum(b, ops.Mul(b, x, x), 0) },
		"max":     func(b *ir.Builder, x ir.Value, _ ir.Dim) ir.Value { return ops.ReduceMax(b, x, 0) },
		"prod":    func(b *ir.Builder, x ir.Value, _ ir.Dim) ir.Value { return ops.ReduceProd(b, x) },
		"mean":    func(b *ir.Builder, x ir.Value, _ ir.Dim) ir.Value { return ops.Mean(b, ops.Exp(b, x), 0) },
		"iota": func(b *ir.Builder, x ir.Value, n ir.Dim) ir.Value {
			return ops.Mul(b, x, ops.Iota(b, ir.F64, 0, n, ir.N(3)))
		},
		"dim_size": func(b *ir.Builder, x ir.Value, n ir.Dim) ir.Value { return ops.Div(b, x, ops.DimSize(b, ir.F64, n)) },
		"select": func(b *ir.Builder, x ir.Value, _ ir.Dim) ir.Value {
			return ops.Select(b, ops.Gt(b, x, ops.ZerosLike(b, x)), ops.Log(b, x), ops.Sin(b, x))
		},
		"clamp": func(b *ir.Builder, x ir.Value, _ ir.Dim) ir.Value {
			return ops.Clamp(b, x, ops.Const(b, ir.F64, -0.5), ops.Sin(b, x))
		},
		"argmax": func(b *ir.Builder, x ir.Value, _ ir.Dim) ir.Value {
			return ops.Mul(b, ops.Convert(b, ops.ArgMax(b, x, 0), ir.F64), x)
		},
		"pow":   func(b *ir.Builder, x ir.Value, _ ir.Dim) ir.Value { return ops.Pow(b, ops.Abs(b, x), x) },
		"atan2": func(b *ir.Builder, x ir.Value, _ ir.Dim) ir.Value { return ops.Atan2(b, x, ops.Cosh(b, x)) },
	} {
		t.Run(name, func(t *testing.T) {
			transformed := func(n ir.Dim, batch ir.Dim) *ir.Graph {
				g := must(ir.Build("f", func(b *ir.Builder) {
					b.Output("y", f(b, b.Input("x", ir.F64, n, ir.N(3)), n))
				}))(t)
				return must(autodiff.Vmap(must(autodiff.JVP(must(autodiff.VJP(g))(t)))(t), batch, autodiff.VmapOptions{}))(t)
			}
			bound := must(transformed(ir.Sym("n"), ir.Sym("batch")).Bind(map[string]int{"n": 6, "batch": 2}))(t)
			got, want := evaluate(t, bound), evaluate(t, transformed(ir.N(6), two))
			for i := range want {
				if at, ok := firstDifference(want[i], got[i], 1e-13); !ok {
					t.Errorf("output %d differs at %d: %v, want %v", i, at, text(got[i], at), text(want[i], at))
				}
			}
		})
	}
}

// evaluate computes a graph of f64 ports on numbers that look random.
func evaluate(t *testing.T, g *ir.Graph) []*ir.Array {
	t.Helper()
	in := map[string]*ir.Array{}
	for i, p := range g.Ports() {
		in[p.Name] = noise(p.Value.Type(), uint64(i))
	}
	out, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSizesThatDoNotComeOutWholeAreErrors binds symbolic sizes to numbers for
// which an op has no meaning.
func TestSizesThatDoNotComeOutWholeAreErrors(t *testing.T) {
	n := ir.Sym("n")
	half, _ := n.Div(ir.N(2))
	g := must(ir.Build("f", func(b *ir.Builder) {
		b.Output("y", ops.SliceAxis(b, b.Input("x", ir.F32, n), 0, ir.N(2), half))
	}))(t)
	for value, want := range map[int]string{5: "1/2*n", 2: "ends before"} {
		if _, err := g.Bind(map[string]int{"n": value}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("n = %d: error %v, want one about %q", value, err, want)
		}
	}
	if _, err := g.Bind(map[string]int{"n": 4}); err != nil {
		t.Errorf("n = 4: %v", err)
	}
}
