//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"testing"

	"github.com/rlx-go/rlx/demo"
	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/native/cuda"
)

// The models of the digits demo learn as by the reference implementation.
func TestGPULearnsTheDigits(t *testing.T) {
	b := gpu(t)
	for _, name := range []string{"mlp", "cnn"} {
		t.Run(name, func(t *testing.T) { demo.Digits(t, b, name, 50) })
	}
}

func TestAFakeGPULearnsTheDigits(t *testing.T) {
	fake.Install(t, true)
	b := cuda.New(0)
	for name, steps := range map[string]int{"mlp": 5, "cnn": 1} {
		t.Run(name, func(t *testing.T) { demo.Digits(t, b, name, steps) })
	}
}
