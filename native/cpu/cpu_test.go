package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cpu"
)

// TestBackend runs the suite at every level that the processor supports.
func TestBackend(t *testing.T) {
	everyLevel(t, func(t *testing.T) { backendtest.Run(t, cpu.Backend()) })
}

// everyLevel runs a test at every level that the processor supports.
func everyLevel(t *testing.T, f func(t *testing.T)) {
	best := simd.Has
	t.Cleanup(func() { simd.Has = best })
	for _, level := range simd.Levels() {
		simd.Has = level
		t.Run(level.String(), f)
	}
}

func TestFunctionsAtHardPoints(t *testing.T) {
	everyLevel(t, func(t *testing.T) { backendtest.Functions(t, cpu.Backend(), false) })
}

func TestConventionsOfNaN(t *testing.T) {
	everyLevel(t, func(t *testing.T) { backendtest.NaN(t, cpu.Backend()) })
}
