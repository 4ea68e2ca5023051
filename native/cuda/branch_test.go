//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cuda"
)

// What runs is decided by the device, in one graph; by the host where the driver is too
// old for that, or nothing compiles the kernel that decides.
func TestBranchesAreNodesOfTheGraph(t *testing.T) {
	for name, c := range map[string]struct {
		driver, compiler, fail string
		graphs                 int
	}{
		"new":                             {"13000", "13.0", "", 3},
		"an old driver":                   {"12030", "12.0", "", 0},
		"an NVRTC without the function":   {"13000", "12.0", "", 3}, // by PTX
		"and a driver that does not, too": {"13000", "12.2", "PTX", 0},
		"an NVRTC that has it":            {"12040", "12.3", "PTX", 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := fake.Install(t, true)
			fake.Libraries(t, f.Dir, 12)
			t.Setenv("RLX_FAKE_VERSION", c.driver)
			t.Setenv("RLX_FAKE_NVRTC", c.compiler)
			t.Setenv("RLX_FAKE_NO_PTX", c.fail)
			d := cuda.New(0)
			backendtest.Branches(t, d)
			calls := f.Calls(t)
			launched := 0
			for _, call := range calls {
				if call == "cuGraphLaunch" {
					launched++
				}
			}
			if launched != c.graphs {
				t.Errorf("%d graphs were launched for 3 runs, not %d", launched, c.graphs)
			}
			compile(t, d, backendtest.Branching(t))
			if c.graphs == 0 && slices.Contains(f.Calls(t), "nvrtcCompileProgram --gpu-architecture=compute_90a") {
				t.Error("a kernel that was refused is compiled again")
			}
		})
	}
}

func TestFailedConditionKernelIsNamed(t *testing.T) {
	f := fake.Install(t, false)
	t.Setenv("RLX_FAKE_FAIL", "cuGraphAddNode 1 2")
	m, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: backendtest.Branching(t)})
	must(t, err)
	_, err = cuda.New(0).Compile(context.Background(), m, native.Options{})
	if err == nil || !slices.Contains(f.Calls(t), "cuGraphAddNode") {
		t.Fatalf("the error is %v", err)
	}
}

func TestGPUBranches(t *testing.T) { gpu(t); backendtest.Branches(t, cuda.Backend()) }

// BenchmarkBranches times an iteration of a loop of unknown length, and a branch.
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
