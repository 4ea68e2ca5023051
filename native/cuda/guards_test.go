//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cuda"
)

// sides are the two ways to put an array between guards.
var sides = []struct {
	name   string
	behind bool
}{{"guards behind", true}, {"guards before", false}}

// Kernels touch nothing but their arrays: each launch of the suite's graphs has its
// arrays in memory of their own, and an access beyond one would be an illegal address.
func TestGPUStaysWithinItsArrays(t *testing.T) {
	backendtest.Require(t, "cuda", cuda.Backend().Probe())
	for _, side := range sides {
		b := cuda.Guarded(side.behind, 0)
		if !cuda.Guards(b) {
			t.Fatal("the driver maps no memory by hand")
		}
		t.Run(side.name, func(t *testing.T) {
			t.Run("ops", func(t *testing.T) { backendtest.Ops(t, b) })
			t.Run("graphs", func(t *testing.T) { backendtest.Graphs(t, b) })
			t.Run("large maps", func(t *testing.T) { backendtest.LargeMaps(t, b) })
			t.Run("programs", func(t *testing.T) { backendtest.Programs(t, b) })
			t.Run("steps", func(t *testing.T) { walledSteps(t, b) })
			t.Run("products", func(t *testing.T) {
				for _, d := range []ir.DType{ir.BF16, ir.F32} {
					for _, layout := range []string{"nn", "tn", "nt", "tt"} {
						checkProduct(t, b, d, 1003, 517, 1031, layout)
					}
				}
			})
		})
	}
}

// walledSteps makes two training steps of models with convolutions and with attention, in
// every precision.
func walledSteps(t *testing.T, b native.Backend) {
	gpt := irtest.GPT{Vocab: 65, Context: 192, Width: 128, Heads: 2, Blocks: 2, Batch: 3}
	for _, m := range []struct {
		name string
		loss func() (*ir.Graph, error)
		half ir.DType
		o    native.Options
	}{
		{"CNN", func() (*ir.Graph, error) { return cnn(13) }, 0, native.Options{}},
		{"GPT f32", gpt.Loss, 0, native.Options{}},
		{"GPT tf32", gpt.Loss, 0, native.Options{TF32: true}},
		{"GPT bf16", gpt.Loss, ir.BF16, native.Options{}},
	} {
		t.Run(m.name, func(t *testing.T) {
			loss, err := m.loss()
			g := step(t, loss, err)
			if m.half != 0 {
				g, err = passes.Mixed(g, m.half)
				must(t, err)
			}
			p := compileWith(t, b, g, m.o)
			in := begin(t, p, g, 10)
			for range 2 {
				r, err := p.Run(context.Background(), "step", in)
				must(t, err)
				_, err = r.Wait(context.Background())
				must(t, err)
			}
		})
	}
}

// The same without a GPU, where an access beyond an array ends the process.
func TestProgramsOfAFakeGPUStayWithinTheirArrays(t *testing.T) {
	for _, side := range sides {
		t.Run(side.name, func(t *testing.T) {
			fake.Install(t, true)
			b := cuda.Guarded(side.behind, 0)
			t.Run("graphs", func(t *testing.T) { backendtest.Graphs(t, b) })
			t.Run("large maps", func(t *testing.T) { backendtest.LargeMaps(t, b) })
		})
	}
}

// A kernel that accesses four elements beyond its arrays is reported by its name. It runs in a
// separate process, which loses the GPU.
func TestGPUFindsAnAccessBeyondAnArray(t *testing.T) {
	backendtest.Require(t, "cuda", cuda.Backend().Probe())
	const child = "RLX_TEST_GOES_BEYOND"
	if os.Getenv(child) == "" {
		t.Setenv(child, "1")
		t.Setenv("GOTMPDIR", t.TempDir()) // the process that crashes does not remove its folders
		if out, err := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	right := compile(t, cuda.Guarded(true, 0), running(t))
	must(t, errors.Join(call(right), right.Close(context.Background())))
	var e *driver.Error
	if err := goBeyond(t); !errors.Is(err, native.ErrLost) || !errors.As(err, &e) || e.Kernel != "map_add" {
		t.Errorf("four elements beyond an array: %v", err)
	}
}

// Without a GPU such a kernel ends its process, a separate one.
func TestAFakeGPUFindsAnAccessBeyondAnArray(t *testing.T) {
	const child = "RLX_TEST_GOES_BEYOND"
	fake.Install(t, true)
	if os.Getenv(child) != "" {
		t.Logf("nothing was found: %v", goBeyond(t))
		return
	}
	t.Setenv(child, "1")
	t.Setenv("GOTMPDIR", t.TempDir()) // the process that crashes does not remove its folders
	if out, err := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v").CombinedOutput(); err == nil {
		t.Errorf("four elements beyond an array are not found:\n%s", out)
	}
}

// goBeyond runs a program whose arrays are declared four elements shorter than they are.
func goBeyond(t *testing.T) error {
	t.Helper()
	return call(compile(t, cuda.Guarded(true, 16), running(t)))
}
