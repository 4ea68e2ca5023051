//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
	"github.com/rlx-go/rlx/native/cuda/fake"
)

// halved halves a number of values until its greatest is at most 1, and counts.
func halved(b *ir.Builder, x, count ir.Value) (y, n ir.Value) {
	out := ops.WhileLoop(b, ops.While{
		Carries: []ir.Value{x, count},
		Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value {
			return ops.Gt(b, ops.ReduceMax(b, c[0]), ops.Const(b, ir.F32, 1))
		},
		Body: func(b *ir.Builder, _, c []ir.Value) []ir.Value {
			return []ir.Value{ops.Mul(b, c[0], ops.Const(b, ir.F32, 0.5)), ops.Add(b, c[1], ops.Const(b, ir.I32, 1))}
		},
	})
	return out[0], out[1]
}

// branching is a program whose way depends on its input: loops without a bound, alone,
// in a branch, around a scan and within one.
func branching(t testing.TB) *ir.Graph {
	t.Helper()
	g, err := ir.Build("branching", func(b *ir.Builder) {
		x, zero := b.Input("x", ir.F32, ir.N(3)), ops.Const(b, ir.I32, 0)
		y, n := halved(b, x, zero)
		b.Output("alone", y)
		b.Output("rounds", n)
		big := ops.Gt(b, ops.ReduceMax(b, x), ops.Const(b, ir.F32, 100))
		b.Output("branch", ops.Cond(b, big, []ir.Value{x, n}, func(b *ir.Builder, in []ir.Value) []ir.Value {
			_, more := halved(b, ops.Mul(b, in[0], in[0]), in[1])
			return []ir.Value{more}
		}, func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Neg(b, in[1])} })[0])
		c, ys := ops.Scan(b, ops.Loop{
			Carries: []ir.Value{zero}, Xs: []ir.Value{x},
			Body: func(b *ir.Builder, _, c, xs []ir.Value) (next, ys []ir.Value) {
				y, n := halved(b, xs[0], c[0])
				return []ir.Value{n}, []ir.Value{y}
			},
		})
		b.Output("all", c[0])
		b.Output("each", ys[0])
		b.Output("around", ops.WhileLoop(b, ops.While{
			Consts: []ir.Value{x}, Carries: []ir.Value{ops.Const(b, ir.F32, 0)},
			Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value { return ops.Lt(b, c[0], ops.Const(b, ir.F32, 50)) },
			Body: func(b *ir.Builder, consts, c []ir.Value) []ir.Value {
				sum, _ := ops.Scan(b, ops.Loop{
					Carries: c, Xs: consts,
					Body: func(b *ir.Builder, _, c, xs []ir.Value) (next, ys []ir.Value) {
						return []ir.Value{ops.Add(b, c[0], xs[0])}, nil
					},
				})
				return sum
			},
		})[0])
	})
	must(t, err)
	return g
}

// checkBranching runs the program for inputs that take other ways.
func checkBranching(t *testing.T, b native.Backend) {
	t.Helper()
	g := branching(t)
	p := compile(t, b, g)
	for _, x := range [][]float32{{1, 0.5, 0.25}, {3, 9, 700}, {0.125, 16, 2}} {
		in := ir.NewArray(ir.F32, 3)
		for i := range x {
			in.F[i] = float64(x[i])
		}
		want, err := ir.Eval(g, map[string]*ir.Array{"x": in}, ir.EvalOptions{})
		must(t, err)
		r, err := p.Run(context.Background(), "step", map[string]native.Tensor{"x": native.Float32s(x)})
		must(t, err)
		out, err := r.Wait(context.Background())
		must(t, err)
		for i, o := range g.Outputs() {
			got, err := ir.ArrayOf(want[i].Type(), out[o.Name].Data)
			must(t, err)
			for k := range want[i].Len() {
				if math.Abs(got.Float(k)-want[i].Float(k)) > 1e-6 {
					t.Errorf("%v: %s is %v, not %v", x, o.Name, got, want[i])
					break
				}
			}
		}
	}
}

// What runs is decided by the device, in one graph; by the host where the driver is too
// old for that.
func TestBranchesAreNodesOfTheGraph(t *testing.T) {
	for version, graphs := range map[string]int{"13000": 3, "12030": 0} {
		t.Run(version, func(t *testing.T) {
			f := fake.Install(t, true)
			fake.Libraries(t, f.Dir, 12)
			t.Setenv("RLX_FAKE_VERSION", version)
			checkBranching(t, cuda.New(0))
			launched := 0
			for _, c := range f.Calls(t) {
				if c == "cuGraphLaunch" {
					launched++
				}
			}
			if launched != graphs {
				t.Errorf("%d graphs were launched for 3 runs, not %d", launched, graphs)
			}
		})
	}
}

func TestAConditionThatCannotBeMadeIsNamed(t *testing.T) {
	f := fake.Install(t, false)
	t.Setenv("RLX_FAKE_FAIL", "cuGraphAddNode 1 2")
	m, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: branching(t)})
	must(t, err)
	_, err = cuda.New(0).Compile(context.Background(), m, native.Options{})
	if err == nil || !slices.Contains(f.Calls(t), "cuGraphAddNode") {
		t.Fatalf("the error is %v", err)
	}
}

func TestGPUBranches(t *testing.T) { gpu(t); checkBranching(t, cuda.Backend()) }

// BenchmarkBranches times what a round of a loop of unknown length takes, and a branch.
func BenchmarkBranches(b *testing.B) {
	d := gpu(b)
	one := func(b *ir.Builder, x ir.Value) ir.Value { return ops.Add(b, x, ops.ConstLike(b, x, 1)) }
	for name, f := range map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"while_of_1000_rounds": func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.WhileLoop(b, ops.While{
				Carries: []ir.Value{ops.Mul(b, x, ops.Const(b, ir.F32, 0))},
				Cond:    func(b *ir.Builder, _, c []ir.Value) ir.Value { return ops.Lt(b, c[0], ops.Const(b, ir.F32, 1000)) },
				Body:    func(b *ir.Builder, _, c []ir.Value) []ir.Value { return []ir.Value{one(b, c[0])} },
			})[0]
		},
		"cond_of_products_1024": func(b *ir.Builder, x ir.Value) ir.Value {
			w := b.Param("w", ir.F32, ir.Dims(1024, 1024)...)
			return ops.Cond(b, ops.Lt(b, x, ops.ConstLike(b, x, 0)), []ir.Value{w, x}, func(b *ir.Builder, in []ir.Value) []ir.Value {
				return []ir.Value{ops.ReduceSum(b, ops.MatMul(b, ops.MatMul(b, in[0], in[0]), in[0]))}
			}, func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{one(b, in[1])} })[0]
		},
	} {
		b.Run(name, func(b *testing.B) {
			g, err := ir.Build("branches", func(b *ir.Builder) { b.SetState("x", f(b, b.State("x", ir.F32))) })
			must(b, err)
			p := compile(b, d, g)
			must(b, cuda.Replay(p, "step", 3))
			b.ResetTimer()
			must(b, cuda.Replay(p, "step", b.N))
			b.ReportMetric(1e6*b.Elapsed().Seconds()/float64(b.N), "µs")
		})
	}
}
