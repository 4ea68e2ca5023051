package matmul_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/matmul"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

func TestContractionsInEveryTile(t *testing.T) {
	shapes := []struct{ m, n, k, parts int }{{130, 70, 33, 1}, {130, 70, 53, 3}, {128, 128, 16, 1}, {5, 200, 9, 1}, {64, 64, 1, 1}, {20, 20, 96, 2}}
	every := func(parts int) []emit.Schedule {
		return slices.Concat(matmul.TileSchedules(parts), matmul.RegisterSchedules(parts))
	}
	for i := range every(1) {
		for _, s := range shapes {
			for layout, behind := range map[string]func(*ir.Builder, ir.Value) ir.Value{"nn": ops.Relu, "tn": ops.Gelu, "nt": ops.Relu, "tt": ops.Gelu} {
				t.Run(fmt.Sprintf("tile %d, %dx%dx%d/%d %s", i, s.m, s.n, s.k, s.parts, layout), func(t *testing.T) {
					g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulBias(b, s.m, s.n, s.k, layout, behind) })
					names := schedtest.RunOn(t, g, schedtest.ContractionsBy(t, g, plan.WebGPU(), every(s.parts)[i]), 0)
					if want := min(s.parts, 2); len(names) != want {
						t.Errorf("kernels %v, want %d", names, want)
					}
				})
			}
		}
	}
}

// TestSampleContractionsInEveryTile also covers batches, groups, strides, dilations and axes in
// all orders.
func TestSampleContractionsInEveryTile(t *testing.T) {
	for _, op := range []ir.Op{ops.OpDotGeneral, ops.OpConvGeneral} {
		d, _ := ir.Lookup(op)
		for _, s := range d.Samples() {
			if s.In[0].DType != ir.F32 {
				continue
			}
			g := schedtest.Build(t, func(b *ir.Builder) {
				x, y := b.Port(ir.InputPort, "x", s.In[0].Type()), b.Port(ir.InputPort, "y", s.In[1].Type())
				z := b.Add1(op, s.Attrs, x, y)
				b.Output("z", ops.Sub(b, ops.ConstLike(b, z, 2), z))
			})
			for i, tile := range slices.Concat(matmul.TileSchedules(1), matmul.RegisterSchedules(1)) {
				t.Run(fmt.Sprintf("%s %s tile %d", op, s.Name, i), func(t *testing.T) {
					schedtest.RunOn(t, g, schedtest.ContractionsBy(t, g, plan.WebGPU(), tile), 0)
				})
			}
			t.Run(fmt.Sprintf("%s %s as a reduction", op, s.Name), func(t *testing.T) {
				schedtest.RunOn(t, g, schedtest.AsReductions(t, g, plan.WebGPU()), 0)
			})
		}
	}
}

// TestOperandsAreVectorsWhole repeats an operand along the contracted axis: its rows are adjacent, and of the vectors of
// a thread one is clamped to the last row, so that none may be loaded as a vector.
func TestOperandsAreVectorsWhole(t *testing.T) {
	const m, n, k = 48, 8, 24
	g := schedtest.Build(t, func(b *ir.Builder) {
		x := ops.BroadcastTo(b, b.Input("x", ir.F32, ir.Dims(m, 1)...), ir.Dims(m, k))
		b.Output("y", ops.MatMul(b, x, b.Input("w", ir.F32, ir.Dims(k, n)...)))
	})
	for _, tile := range matmul.TileSchedules(1) {
		schedtest.RunOn(t, g, schedtest.ContractionsBy(t, g, schedtest.Choosy(), tile), schedtest.Wholes)
	}
}

func TestNumberOfFusedKernels(t *testing.T) {
	x := func(b *ir.Builder, dims ...int) ir.Value { return b.Input("x", ir.F32, ir.Dims(dims...)...) }
	cases := []struct {
		name    string
		kernels int
		f       func(b *ir.Builder)
	}{
		{"softmax of rows", 1, func(b *ir.Builder) { b.Output("y", ops.Softmax(b, x(b, 70, 300), -1)) }},
		{"softmax of short rows", 1, func(b *ir.Builder) { b.Output("y", ops.Softmax(b, x(b, 130, 10), -1)) }},
		{"softmax of columns", 1, func(b *ir.Builder) { b.Output("y", ops.Softmax(b, x(b, 50, 70), 0)) }},
		{"log softmax of one long row", 1, func(b *ir.Builder) { b.Output("y", ops.LogSoftmax(b, x(b, 4000), 0)) }},
		{"elementwise chain", 1, func(b *ir.Builder) {
			v := x(b, 300)
			b.Output("y", ops.Tanh(b, ops.Mul(b, ops.Add(b, v, v), ops.Exp(b, v))))
		}},
		{"transpose of a sum", 1, func(b *ir.Builder) {
			v := x(b, 30, 20)
			b.Output("y", ops.Transpose(b, ops.Add(b, v, v), 1, 0))
		}},
		{"what needs two elements of an exponential at once", 2, func(b *ir.Builder) {
			e := ops.Exp(b, x(b, 30, 30))
			b.Output("y", ops.Sub(b, ops.Transpose(b, e, 1, 0), e))
		}},
		{"sum of everything", 2, func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, x(b, 100, 1000))) }},
		{"sum over the first axis", 1, func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, x(b, 40, 70), 0)) }},
		{"two sums of the rows of a square", 1, func(b *ir.Builder) {
			v := x(b, 70, 70)
			b.Output("sum", ops.ReduceSum(b, v, 1))
			b.Output("squares", ops.ReduceSum(b, ops.Mul(b, v, v), 1))
		}},
		{"sums of the rows and of the columns of a square", 2, func(b *ir.Builder) {
			v := x(b, 70, 70)
			b.Output("rows", ops.ReduceSum(b, v, 1))
			b.Output("columns", ops.ReduceSum(b, v, 0))
		}},
		{"max pool", 1, func(b *ir.Builder) {
			b.Output("y", ops.MaxPool(b, x(b, 2, 9, 9, 3), ops.PoolAttrs{Sizes: []int{2, 2}}))
		}},
		{"states swapped", 2, func(b *ir.Builder) {
			p, q := b.State("p", ir.F32, ir.N(5)), b.State("q", ir.F32, ir.N(5))
			b.SetState("p", q)
			b.SetState("q", p)
		}},
		{"state read out of place", 2, func(b *ir.Builder) {
			p := b.State("p", ir.F32, ir.N(300))
			b.SetState("p", ops.Add(b, ops.Reverse(b, p, 0), p))
		}},
		{"state that is only written", 1, func(b *ir.Builder) {
			b.State("p", ir.F32, ir.N(70), ir.N(30))
			b.SetState("p", ops.Softmax(b, x(b, 70, 30), -1))
		}},
		{"state in place", 1, func(b *ir.Builder) {
			p := b.State("p", ir.F32, ir.N(300))
			b.SetState("p", ops.Add(b, x(b, 300), p))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if names := schedtest.Run(t, schedtest.Build(t, c.f)); len(names) != c.kernels {
				t.Errorf("kernels %v, want %d", names, c.kernels)
			}
		})
	}
}

// TestContractionsInParts covers split-K in batches, in a loop's body, and into a state that is
// updated in place.
func TestContractionsInParts(t *testing.T) {
	for name, f := range map[string]func(b *ir.Builder){
		"batches": func(b *ir.Builder) {
			x, y := b.Input("x", ir.F32, ir.Dims(2, 5, 70)...), b.Input("y", ir.F32, ir.Dims(2, 70, 6)...)
			b.Output("z", ops.Tanh(b, ops.MatMul(b, x, y)))
		},
		"a loop": func(b *ir.Builder) {
			w := b.Input("w", ir.F32, ir.Dims(48, 48)...)
			carries, ys := ops.Scan(b, ops.Loop{
				Consts: []ir.Value{w}, Carries: []ir.Value{b.Input("h", ir.F32, ir.Dims(4, 48)...)},
				Xs: []ir.Value{b.Input("x", ir.F32, ir.Dims(3, 4, 48)...)},
				Body: func(b *ir.Builder, w, h, x []ir.Value) (next, ys []ir.Value) {
					after := ops.Tanh(b, ops.Add(b, ops.MatMul(b, h[0], w[0]), x[0]))
					return []ir.Value{after}, []ir.Value{ops.MatMul(b, x[0], w[0])}
				},
			})
			b.Output("h_out", carries[0])
			b.Output("ys", ys[0])
		},
		"a state": func(b *ir.Builder) {
			s := b.State("s", ir.F32, ir.Dims(7, 9)...)
			x, y := b.Input("x", ir.F32, ir.Dims(7, 65)...), b.Input("y", ir.F32, ir.Dims(65, 9)...)
			b.SetState("s", ops.Add(b, s, ops.MatMul(b, x, y)))
		},
	} {
		for i, tile := range matmul.TileSchedules(3) {
			t.Run(fmt.Sprintf("%s, tile %d", name, i), func(t *testing.T) {
				g := schedtest.Build(t, f)
				names := schedtest.RunOn(t, g, schedtest.ContractionsBy(t, g, plan.WebGPU(), tile), 0)
				if !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, "_parts") }) {
					t.Errorf("no kernel for parts among %v", names)
				}
			})
		}
	}
}

// TestPartsAreAddedUpByVectors has enough results for the smallest device to add up split-K
// parts four results at a time, with a bias along the rows. More than maxPartials parts are
// reduced instead, and so are those with a bias for each row, which has no vectors.
func TestPartsAreAddedUpByVectors(t *testing.T) {
	target := plan.WebGPU()
	target.Multiprocessors = 1
	for _, c := range []struct {
		name  string
		parts int
		bias  []int // the axis of the results that it is along
		by    string
	}{
		{"few parts", 3, []int{1}, "contract_"},
		{"some parts", 11, []int{1}, "contract_"},
		{"many parts", 17, []int{1}, "reduce_"},
		{"a bias of each row", 3, []int{0}, "reduce_"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				x, y := b.Input("x", ir.F32, ir.Dims(36, 136)...), b.Input("y", ir.F32, ir.Dims(136, 32)...)
				z := ops.MatMul(b, x, y)
				bias := b.Input("bias", ir.F32, z.Dim(c.bias[0]))
				b.Output("z", ops.Tanh(b, ops.Add(b, z, ops.BroadcastInDim(b, bias, z.Shape(), c.bias))))
			})
			names := schedtest.RunOn(t, g, schedtest.ContractionsBy(t, g, target, matmul.TileSchedules(c.parts)[2]), 0)
			if len(names) != 2 || !strings.HasPrefix(names[1], c.by) || !strings.HasSuffix(names[0], "_parts") {
				t.Errorf("kernels %v, of which the second one should be %s...", names, c.by)
			}
		})
	}
}

// TestPaddedOperandsLoadOneElement computes convolutions of images that are padded by reflection, with the other end or
// with the edge, three slices along each axis: of these a thread loads the one element that it needs, as of zeros.
func TestPaddedOperandsLoadOneElement(t *testing.T) {
	loads := func(mode string, tile emit.Schedule) int {
		g := schedtest.Build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.Dims(2, 12, 12, 3)...)
			b.Output("y", nn.Conv2d(b, x, 8, 5, nn.ConvOptions{Same: true, PaddingMode: mode}))
		})
		target := schedtest.ContractionsBy(t, g, plan.WebGPU(), tile)
		schedtest.RunOn(t, g, target, 0)
		return strings.Count(schedtest.Kernels(t, g, target)[0].String(), "load.f32(0,")
	}
	for _, tile := range matmul.TileSchedules(1) {
		want := loads(nn.PadZeros, tile)
		for _, mode := range []string{nn.PadReflect, nn.PadCircular, nn.PadReplicate} {
			if n := loads(mode, tile); n != want {
				t.Errorf("%s by %s: %d loads, want %d", mode, tile, n, want)
			}
		}
	}
}

// TestSmallProductsByTiles computes small products by tiles on a GPU where a thread for each result costs more, and by such threads
// where there are few tiles.
func TestSmallProductsByTiles(t *testing.T) {
	for _, c := range []struct {
		m, n, k int
		tiles   bool
	}{{1024, 64, 32, true}, {1000, 33, 31, true}, {64, 64, 32, false}} {
		g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulBias(b, c.m, c.n, c.k, "nn", ops.Relu) })
		for _, o := range schedtest.Choices(t, g, plan.WebGPU()) {
			if got := o.Candidates[0].Family == emit.Tiles; got != c.tiles {
				t.Errorf("%d × %d × %d: %s", c.m, c.n, c.k, o.Candidates[0].Schedule)
			}
		}
		schedtest.Run(t, g)
	}
}
