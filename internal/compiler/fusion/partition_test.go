package fusion_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

var update = flag.Bool("update", false, "write the golden files")

// partitions are models whose partitions are golden files in testdata/partitions.
var partitions = []struct {
	name        string
	tensorCores bool
	make        func(t *testing.T) *ir.Graph
}{
	{"softmax", false, func(t *testing.T) *ir.Graph {
		return build(t, func(b *ir.Builder) { b.Output("y", ops.Softmax(b, b.Input("x", ir.F32, ir.N(64), ir.N(100)), 1)) })
	}},
	{"layer_norm_grad", false, func(t *testing.T) *ir.Graph {
		return gradient(t, func(b *ir.Builder) ir.Value {
			x := b.Param("x", ir.F32, ir.N(64), ir.N(100))
			y := ops.LayerNorm(b, x, b.Param("scale", ir.F32, ir.N(100)), b.Param("bias", ir.F32, ir.N(100)), 1e-5)
			return ops.ReduceSum(b, ops.Sin(b, y))
		})
	}},
	{"attention", false, func(t *testing.T) *ir.Graph {
		return build(t, func(b *ir.Builder) {
			var in []ir.Value
			for _, name := range []string{"q", "k", "v"} {
				in = append(in, b.Input(name, ir.F32, ir.Dims(2, 4, 32, 16)...))
			}
			scores := ops.MatMul(b, in[0], ops.Transpose(b, in[1], 0, 1, 3, 2))
			scores = ops.Mul(b, scores, ops.ConstLike(b, scores, 0.25))
			b.Output("y", ops.MatMul(b, ops.Softmax(b, scores, 3), in[2]))
		})
	}},
	{"mlp_step", false, func(t *testing.T) *ir.Graph { return adamStep(t, perceptron) }},
	{"cnn_step", false, func(t *testing.T) *ir.Graph { return adamStep(t, convolutional) }},
	// Weights are rounded once; queries, keys and values are views of one product; gelu
	// stores only its input; gradients of a layer are stored only in the type of product
	// operands.
	{"gpt_step_mixed", true, func(t *testing.T) *ir.Graph {
		gpt := irtest.GPT{Vocab: 96, Context: 128, Width: 64, Heads: 1, Blocks: 1, Batch: 2, Tied: true, Packed: true, Tanh: true}
		loss, err := gpt.Loss()
		if err != nil {
			t.Fatal(err)
		}
		g, err := optim.Step(loss, "loss", optim.AdamW{}, optim.Options{})
		if err == nil {
			g, err = passes.Mixed(g, ir.BF16)
		}
		if err != nil {
			t.Fatal(err)
		}
		return g
	}},
	{"loop_in_a_loop", false, func(t *testing.T) *ir.Graph {
		return build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.N(5), ir.N(4))
			_, ys := ops.Scan(b, ops.Loop{Carries: []ir.Value{ops.Zeros(b, ir.F32)}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
				sum, _ := ops.Scan(b, ops.Loop{Carries: c, Xs: x, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
					return []ir.Value{ops.Sin(b, ops.Add(b, c[0], x[0]))}, nil
				}})
				return sum, sum
			}})
			b.Output("y", ys[0])
		})
	}},
	{"loops_of_unknown_length_in_branches", false, func(t *testing.T) *ir.Graph {
		return build(t, func(b *ir.Builder) {
			grow := func(most float64) ops.Branch {
				return func(b *ir.Builder, in []ir.Value) []ir.Value {
					return ops.WhileLoop(b, ops.While{
						Consts: in[:1], Carries: in[1:],
						Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value {
							return ops.Lt(b, ops.ReduceMax(b, c[0]), ops.Const(b, ir.F32, most))
						},
						Body: func(b *ir.Builder, consts, c []ir.Value) []ir.Value {
							return []ir.Value{ops.MatMul(b, consts[0], c[0])}
						},
					})
				}
			}
			x := []ir.Value{b.Input("m", ir.F32, ir.N(4), ir.N(4)), b.Input("x", ir.F32, ir.N(4))}
			b.Output("y", ops.Cond(b, b.Input("far", ir.Bool), x, grow(100), grow(1))[0])
		})
	}},
}

func TestGroupsOfModels(t *testing.T) {
	for _, c := range partitions {
		t.Run(c.name, func(t *testing.T) {
			o := fusion.DefaultOptions
			if o.TensorCores = c.tensorCores; o.TensorCores {
				o.Tensors = 63
			}
			got := groupsWith(t, c.make(t), o).String()
			kerneltest.Golden(t, filepath.Join("partitions", c.name+".txt"), got, *update)
		})
	}
}

func TestOptimiserIsOneKernel(t *testing.T) {
	p := groups(t, adamStep(t, perceptron))
	if n := len(p.Items); n > 20 {
		t.Errorf("%d groups, want at most 20", n)
	}
	var writers []string
	for _, item := range p.Items {
		if slices.ContainsFunc(item.Writes(), func(w *fusion.Tensor) bool { return w.Persistent() && len(w.Dims) > 0 }) {
			writers = append(writers, item.(*fusion.Group).Name())
		}
	}
	if len(writers) != 1 {
		t.Errorf("%v write parameters and moments, which should be one kernel:\n%s", writers, p)
	}
}

// groups partitions a graph as the compiler does.
func groups(t *testing.T, g *ir.Graph) *fusion.Partition {
	t.Helper()
	return groupsWith(t, g, fusion.DefaultOptions)
}

// groupsWith is groups for a target; attention is not decomposed.
func groupsWith(t *testing.T, g *ir.Graph, o fusion.Options) *fusion.Partition {
	t.Helper()
	whole := func(n *ir.Node) bool { return n.Op() == ops.OpAttentionForward || n.Op() == ops.OpAttentionBackward }
	g, err := passes.Run(g, passes.Options{Claim: whole})
	if err != nil {
		t.Fatal(err)
	}
	p, err := fusion.Build(g, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func build(t *testing.T, f func(b *ir.Builder)) *ir.Graph {
	t.Helper()
	g, err := ir.Build("g", f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func gradient(t *testing.T, f func(b *ir.Builder) ir.Value) *ir.Graph {
	t.Helper()
	g, err := autodiff.ValueAndGrad(build(t, func(b *ir.Builder) { b.Output("loss", f(b)) }), "loss")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func adamStep(t *testing.T, loss func(b *ir.Builder)) *ir.Graph {
	t.Helper()
	g, err := optim.Step(build(t, loss), "loss", optim.Adam{}, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// perceptron is the loss of three layers on 128 images of digits.
func perceptron(b *ir.Builder) {
	x, labels := b.Input("x", ir.F32, ir.N(128), ir.N(784)), b.Input("labels", ir.I32, ir.N(128))
	sizes := []int{784, 512, 512, 10}
	for i, n := range sizes[1:] {
		w, bias := b.Param("w"+strconv.Itoa(i), ir.F32, ir.N(sizes[i]), ir.N(n)), b.Param("b"+strconv.Itoa(i), ir.F32, ir.N(n))
		if x = ops.Linear(b, x, w, bias); n != 10 {
			x = ops.Relu(b, x)
		}
	}
	b.Output("loss", ops.CrossEntropyMean(b, x, labels))
}

// convolutional is the loss of a convolution, a pool and a layer on 32 images.
func convolutional(b *ir.Builder) {
	x, labels := b.Input("x", ir.F32, ir.Dims(32, 8, 8, 1)...), b.Input("labels", ir.I32, ir.N(32))
	w, bias := b.Param("w1", ir.F32, ir.Dims(3, 3, 1, 16)...), b.Param("b1", ir.F32, ir.N(16))
	h := ops.Conv2D(b, x, w, bias, ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}})
	h = ops.Reshape(b, ops.MaxPool(b, ops.Relu(b, h), ops.PoolAttrs{Sizes: []int{2, 2}}), ir.N(32), ir.N(256))
	w, bias = b.Param("w2", ir.F32, ir.N(256), ir.N(10)), b.Param("b2", ir.F32, ir.N(10))
	b.Output("loss", ops.CrossEntropyMean(b, ops.Linear(b, h, w, bias), labels))
}

func ExampleBuild() {
	g, err := ir.Build("norm", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(64), ir.N(100))
		length := ops.Sqrt(b, ops.ReduceSum(b, ops.Mul(b, x, x), 1))
		b.Output("y", ops.Div(b, x, ops.BroadcastInDim(b, length, x.Shape(), []int{0})))
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := fusion.Build(g, fusion.DefaultOptions)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p)
	for _, item := range p.Items {
		launches, err := sched.NewCache(nil).Schedule(item.(*fusion.Group), loop.DefaultCaps())
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, l := range launches {
			fmt.Println(l.Kernel.Groups, "workgroups of", l.Kernel.Workgroup)
		}
	}
	// Output:
	// reduce [64] over [100]: reduce_sum, div -> div5
	// [64 1 1] workgroups of [128 1 1]
}
