package autodiff_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

var update = flag.Bool("update", false, "write testdata/memory.txt")

// region is autodiff.Checkpoint, or the function itself.
type region func(b *ir.Builder, operands []ir.Value, f autodiff.Function) []ir.Value

func plainly(b *ir.Builder, operands []ir.Value, f autodiff.Function) []ir.Value {
	return f(b, operands)
}

// loopCase is a loop of checkpointed steps, and the minimum bytes of its training step: the inputs
// of all steps, and the backward pass of one step, or of one segment of steps. near allows at most
// a fifth more.
type loopCase struct {
	name  string
	ideal int
	near  bool
	loss  func(b *ir.Builder, r region) ir.Value
}

// scanned adds a scan whose step is a region of constants, carries and slices.
func scanned(b *ir.Builder, r region, consts, carries, xs []ir.Value, f func(b *ir.Builder, consts, carries, xs []ir.Value) []ir.Value) []ir.Value {
	out, _ := ops.Scan(b, ops.Loop{
		Consts: consts, Carries: carries, Xs: xs,
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			n, m := len(consts), len(carries)
			return r(b, slices.Concat(consts, carries, xs), func(b *ir.Builder, in []ir.Value) []ir.Value {
				return f(b, in[:n], in[n:n+m], in[n+m:])
			}), nil
		},
	})
	return out
}

func param(b *ir.Builder, name string, dims ...int) ir.Value {
	return b.Param(name, ir.F32, ir.Dims(dims...)...)
}

func input(b *ir.Builder, name string, dims ...int) ir.Value {
	return b.Input(name, ir.F32, ir.Dims(dims...)...)
}

// What values of the cases take, in bytes.
const (
	rowsBytes  = 4 * 32 * 128 // a carry of the recurrent networks
	layerBytes = 4 * 256 * 64 // what passes between layers, and the weights of half a layer
	longBytes  = 4 * 10 << 10 // a carry of the segments
)

// loopCases returns loops of all kinds.
func loopCases() []loopCase {
	tanhStep := func(b *ir.Builder, c, h, x []ir.Value) []ir.Value {
		return []ir.Value{ops.Tanh(b, ops.Add(b, ops.MatMul(b, h[0], c[0]), x[0]))}
	}
	recurrent := func(step func(b *ir.Builder, c, h, x []ir.Value) []ir.Value) func(b *ir.Builder, r region) ir.Value {
		return func(b *ir.Builder, r region) ir.Value {
			return scanned(b, r, []ir.Value{param(b, "w", 128, 128)}, []ir.Value{input(b, "h", 32, 128)}, []ir.Value{input(b, "x", 256, 32, 128)}, step)[0]
		}
	}
	weight := 4 * 128 * 128
	return []loopCase{
		// The gradient of the weights, and four values of a step.
		{"recurrent network, 256 steps, constant weights", 256*rowsBytes + weight + 4*rowsBytes, true, recurrent(tanhStep)},
		{"its steps in branches", 256*rowsBytes + weight + 4*rowsBytes, true, recurrent(func(b *ir.Builder, c, h, x []ir.Value) []ir.Value {
			on := ops.Gt(b, ops.ReduceSum(b, x[0]), ops.Const(b, ir.F32, 0))
			return ops.Cond(b, on, slices.Concat(c, h, x),
				func(b *ir.Builder, in []ir.Value) []ir.Value {
					return tanhStep(b, in[:1], []ir.Value{ops.Exp(b, in[1])}, in[2:])
				},
				func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Sin(b, in[1])} })
		})},
		{"its steps in a custom function", 256*rowsBytes + weight + 4*rowsBytes, true, recurrent(func(b *ir.Builder, c, h, x []ir.Value) []ir.Value {
			y := tanhStep(b, c, h, x)[0]
			return autodiff.CustomVJP(b, []ir.Value{y, x[0]},
				func(b *ir.Builder, in []ir.Value) (results, kept []ir.Value) {
					return []ir.Value{ops.Mul(b, ops.Sin(b, in[0]), in[1])}, in
				},
				func(b *ir.Builder, kept, ct []ir.Value) []ir.Value {
					return []ir.Value{ops.Mul(b, ops.Mul(b, ct[0], kept[1]), ops.Cos(b, kept[0])), ops.Mul(b, ct[0], ops.Sin(b, kept[0]))}
				})
		})},
		{"steps of a while_loop of at most 256", 256*rowsBytes + weight + 4*rowsBytes, true, func(b *ir.Builder, r region) ir.Value {
			w := param(b, "w", 128, 128)
			return ops.WhileLoop(b, ops.While{
				Consts: []ir.Value{w}, Carries: []ir.Value{input(b, "h", 32, 128)}, MaxSteps: 256,
				Cond: func(b *ir.Builder, _, h []ir.Value) ir.Value {
					return ops.Lt(b, ops.ReduceSum(b, h[0]), ops.Const(b, ir.F32, 9))
				},
				Body: func(b *ir.Builder, w, h []ir.Value) []ir.Value {
					return r(b, slices.Concat(w, h), func(b *ir.Builder, in []ir.Value) []ir.Value {
						return []ir.Value{ops.Tanh(b, ops.MatMul(b, ops.Gelu(b, ops.Softmax(b, in[1], -1)), in[0]))}
					})
				},
			})[0]
		}},
		// The gradients of all weights, and five times the activations between two layers.
		{"12 layers", 12*layerBytes + 2*12*layerBytes + 4*4*layerBytes, true, func(b *ir.Builder, r region) ir.Value {
			return scanned(b, r, nil, []ir.Value{input(b, "x", 256, 64)}, []ir.Value{param(b, "w", 12, 64, 256), param(b, "v", 12, 256, 64)},
				func(b *ir.Builder, _, h, w []ir.Value) []ir.Value {
					y := ops.MatMul(b, ops.Gelu(b, ops.MatMul(b, ops.Softmax(b, h[0], -1), w[0])), w[1])
					return []ir.Value{ops.Add(b, h[0], y)}
				})[0]
		}},
		{"1024 steps in 32 segments, of which each step is computed again", 2 * 32 * longBytes, true, func(b *ir.Builder, r region) ir.Value {
			return segments(b, r, r)
		}},
		// A step hands on its carry, a sine and a product with it.
		{"1024 steps in 32 segments, of which all steps are kept", 32*longBytes + 3*32*longBytes, true, func(b *ir.Builder, r region) ir.Value {
			return segments(b, r, plainly)
		}},
	}
}

// segments is a loop of 1024 steps in 32 segments.
func segments(b *ir.Builder, outer, inner region) ir.Value {
	const n = longBytes / 4
	x := ops.Reshape(b, input(b, "x", 1024, n), ir.Dims(32, 32, n)...)
	return scanned(b, outer, []ir.Value{param(b, "w", n)}, []ir.Value{input(b, "h", n)}, []ir.Value{x},
		func(b *ir.Builder, c, h, x []ir.Value) []ir.Value {
			return scanned(b, inner, c, h, x, func(b *ir.Builder, c, h, x []ir.Value) []ir.Value {
				return []ir.Value{ops.Tanh(b, ops.Add(b, ops.Mul(b, ops.Sin(b, h[0]), c[0]), x[0]))}
			})
		})[0]
}

// step returns the training step of a case.
func (c loopCase) step(t *testing.T, r region, keep autodiff.Policy) *ir.Graph {
	return stepOf(t, build(t, func(b *ir.Builder) {
		h := c.loss(b, r)
		b.Output("loss", ops.Mean(b, ops.Mul(b, h, h)))
	}), keep)
}

// TestMemoryOfCheckpointedLoops compares what plans of training steps give out for
// values that live within a run, without checkpoints, with them, and with policies in
// their place, with testdata/memory.txt, and with the ideal.
func TestMemoryOfCheckpointedLoops(t *testing.T) {
	const file = "testdata/memory.txt"
	var out strings.Builder
	fmt.Fprintf(&out, "# bytes of values within a training step: target, without, Checkpoint, ideal, policies\n")
	for _, c := range loopCases() {
		fmt.Fprintf(&out, "\n%s\n", c.name)
		for _, target := range []plan.Target{plan.WebGPU(), plan.WebAssembly(false)} {
			all, with := peakOn(t, c.step(t, plainly, nil), target), peakOn(t, c.step(t, autodiff.Checkpoint, nil), target)
			fmt.Fprintf(&out, "  %-6s %11d %11d %11d", target.Name, all, with, c.ideal)
			checkAtMost(t, c.name+" on "+target.Name, with, all)
			if c.near {
				checkAtMost(t, c.name+" on "+target.Name+", beside the ideal", with, c.ideal+c.ideal/5)
			}
			for _, p := range sortedPolicies() {
				bytes := peakOn(t, c.step(t, plainly, p.keep), target)
				fmt.Fprintf(&out, " %s %d", p.name, bytes)
				checkAtMost(t, c.name+" on "+target.Name+" by policy "+p.name, bytes, all)
				checkAtMost(t, c.name+" with checkpoints and policy "+p.name, peakOn(t, c.step(t, autodiff.Checkpoint, p.keep), target), all)
			}
			fmt.Fprintln(&out)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != out.String() {
		t.Errorf("%s (-update writes it) is not\n%s", file, out.String())
	}
}

func checkAtMost(t *testing.T, what string, bytes, most int) {
	t.Helper()
	if bytes > most {
		t.Errorf("%s: %d bytes, want at most %d", what, bytes, most)
	}
}

// namedPolicy is one of policies.
type namedPolicy struct {
	name string
	keep autodiff.Policy
}

func sortedPolicies() []namedPolicy {
	var out []namedPolicy
	for name, keep := range policies() {
		out = append(out, namedPolicy{name, keep})
	}
	slices.SortFunc(out, func(a, b namedPolicy) int { return cmp.Compare(a.name, b.name) })
	return out
}
