//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// A product of warp groups is launched with a tensor map of each operand, by the types,
// lengths, distances and copies of its plan; a captured graph has them once for all runs.
func TestProductsAreLaunchedWithTensorMaps(t *testing.T) {
	gpu := fake.Install(t, false)
	p := productOf(t, cuda.With(loop.NoProducts), ir.BF16, 1024, 512, 768, "nn", native.Options{})
	noted := func() (maps []string) {
		for _, c := range gpu.Calls(t) {
			if strings.HasPrefix(c, "map of") {
				maps = append(maps, c)
			}
		}
		return maps
	}
	// cuda.h: 9 is CU_TENSOR_MAP_DATA_TYPE_BFLOAT16. An axis has its length, the distance of
	// neighbours in bytes, and the number of elements per copy.
	want := []string{"map of type 9: 768+0/64 1024+1536/128", "map of type 9: 512+0/64 768+1024/64"}
	if got := noted(); !slices.Equal(got, want) {
		t.Errorf("maps %q, want %q", got, want)
	}
	for range 2 {
		must(t, cuda.Replay(p, "step", 1))
	}
	if got := noted(); got != nil {
		t.Errorf("runs make maps %q", got)
	}
}

// Operands may share a buffer with the result, as parameters and states do.
func TestTensorMapsWithNeighbouringResult(t *testing.T) {
	gpu := fake.Install(t, false)
	g, err := ir.Build("product", func(b *ir.Builder) {
		dims := ir.Dims(1, 1024, 1024)
		b.State("z", ir.BF16, dims...)
		b.SetState("z", ops.MatMul(b, b.Param("x", ir.BF16, dims...), b.Param("y", ir.BF16, dims...)))
	})
	must(t, err)
	compileWith(t, cuda.With(loop.NoProducts), g, native.Options{})
	if calls := gpu.Calls(t); !slices.Contains(calls, "map of type 9: 1024+0/64 1024+2048/128") {
		t.Errorf("no map of x in %q", calls)
	}
}

// The driver's error about a map reaches the user, with the kernel's name.
func TestTensorMapsThatTheDriverRefuses(t *testing.T) {
	fake.Install(t, false)
	t.Setenv("RLX_FAKE_FAIL", "cuTensorMapEncodeTiled 1 1")
	m, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: productGraph(t, ir.BF16, 1024, 512, 768, "nn")})
	must(t, err)
	_, err = cuda.With(loop.NoProducts).Compile(context.Background(), m, native.Options{})
	var failed *driver.Error
	if !errors.As(err, &failed) || failed.Call != "cuTensorMapEncodeTiled" || !strings.Contains(err.Error(), "contract_") {
		t.Errorf("error %v, want one of cuTensorMapEncodeTiled", err)
	}
}
