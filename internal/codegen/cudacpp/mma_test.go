package cudacpp_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/cuda"
)

// multiplying are targets with multiply-adds: of warp groups, with copies by tensor maps and
// without, and of warps with the shared memory of an A100 and of compute capability 8.9.
func multiplying() map[string]plan.Target {
	out := map[string]plan.Target{}
	for name, shared := range map[string]int{"warp groups": 227 << 10, "warp groups, no tensor maps": 227 << 10, "warps": 163 << 10, "warps, little memory": 99 << 10} {
		t := cuda.Target()
		t.Mma, t.TF32, t.MmaBytes, t.Multiprocessors, t.ScoreBytes = true, true, shared, 100, 1
		t.MmaByWarps, t.TensorMaps = strings.HasPrefix(name, "warps"), name == "warp groups"
		out[name] = t
	}
	return out
}

// TestClangAcceptsMultiplyAdds compiles products and attention by multiply-adds of each
// type, with operands as stored and transposed.
func TestClangAcceptsMultiplyAdds(t *testing.T) {
	for name, target := range multiplying() {
		for _, d := range []ir.DType{ir.BF16, ir.F16, ir.F32} {
			t.Run(name+" "+d.String(), func(t *testing.T) {
				t.Parallel()
				g, err := ir.Build("multiply", func(b *ir.Builder) {
					for i, layout := range []string{"nn", "tn", "nt", "tt"} {
						b.Output(fmt.Sprint("z", i), product(b, d, fmt.Sprint(i), layout))
					}
					q, k, v := heads(b, d, "q"), heads(b, d, "k"), heads(b, d, "v")
					out, lse := ops.AttentionForward(b, q, k, v, ir.Value{}, ops.AttentionAttrs{Scale: 0.1, Causal: true})
					b.Output("out", out)
					for i, x := range ops.AttentionBackward(b, ops.AttentionOperands{Q: q, K: k, V: v}, ops.AttentionResiduals{LSE: lse, Delta: ops.ZerosLike(b, lse), DOut: heads(b, d, "dout")}, ops.AttentionAttrs{Scale: 0.1, Causal: true}) {
						b.Output(fmt.Sprint("cotangent", i), x)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				want := 3
				if d == ir.F32 && target.MmaBytes < 100<<10 {
					want = 1 // the blocks of the backward kernels do not fit
				}
				checkMultiplyAdds(t, g, target, want)
			})
		}
	}
}

// TestClangAcceptsPipelinedProducts compiles large products of f32 in f32, whose operands are
// copied as stored and transposed.
func TestClangAcceptsPipelinedProducts(t *testing.T) {
	target := multiplying()["warp groups"]
	target.TF32 = false
	for _, layout := range []string{"nn", "tn", "nt", "tt"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			g, err := ir.Build("pipelined", func(b *ir.Builder) { b.Output("z", squares(b, ir.F32, 4096, "", layout)) })
			if err != nil {
				t.Fatal(err)
			}
			m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Compile(m, target, cudacpp.Printer{})
			if err != nil {
				t.Fatal(err)
			}
			ptx, err := clang.Compile(p.Kernels[0].Source)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(ptx, "cp.async") {
				t.Error("no copies beside the arithmetic")
			}
		})
	}
}

func heads(b *ir.Builder, d ir.DType, name string) ir.Value {
	return b.Input(name, d, ir.Dims(64, 512, 64)...)
}

// product is one of two matrices, each as stored or transposed.
func product(b *ir.Builder, d ir.DType, name, layout string) ir.Value {
	return squares(b, d, 1024, name, layout)
}

// squares is the product of two matrices of n×n, each as stored or transposed.
func squares(b *ir.Builder, d ir.DType, n int, name, layout string) ir.Value {
	x, y := b.Input("x"+name, d, ir.Dims(n, n)...), b.Input("y"+name, d, ir.Dims(n, n)...)
	if layout[0] == 't' {
		x = ops.Transpose(b, x, 1, 0)
	}
	if layout[1] == 't' {
		y = ops.Transpose(b, y, 1, 0)
	}
	return ops.MatMul(b, x, y)
}

// compiled holds the results of [compiledOnce] by source.
var compiled sync.Map

// compiledOnce returns a kernel's PTX. Kernels that differ in their names alone are compiled once.
func compiledOnce(k plan.Kernel) (ptx string, err error) {
	source := strings.Replace(k.Source, " "+cudacpp.Prefix+k.Name+"(", " kernel(", 1)
	once, _ := compiled.LoadOrStore(source, sync.OnceValues(func() (string, error) { return clang.Compile(source) }))
	return once.(func() (string, error))()
}

// checkMultiplyAdds compiles the kernels of a graph and counts the products and attention kernels
// that use the target's multiply-adds.
func checkMultiplyAdds(t *testing.T, g *ir.Graph, target plan.Target, want int) {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Compile(m, target, cudacpp.Printer{WarpMMA: target.MmaByWarps})
	if err != nil {
		t.Fatal(err)
	}
	instruction := map[bool]string{false: "wgmma.mma_async.sync", true: "mma.sync.aligned.m16n8k"}[target.MmaByWarps]
	products, attention, roles := 0, 0, 0
	for _, k := range p.Kernels {
		ptx, err := compiledOnce(k)
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		switch has := strings.Contains(ptx, instruction); {
		case has && strings.HasPrefix(k.Name, "attend_"):
			attention++
		case has:
			products++
		}
		if strings.Contains(ptx, "cp.async.bulk.tensor") && strings.Contains(ptx, "mbarrier.try_wait") && strings.Contains(ptx, "bar.sync 1, 256") {
			roles++
		}
	}
	if target.TensorMaps != (roles > 0) {
		t.Errorf("%d of %d kernels of products have roles", roles, products)
	}
	if products == 0 || attention != want {
		t.Errorf("%d kernels of products and %d of attention have %s", products, attention, instruction)
	}
}
