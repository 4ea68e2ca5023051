//go:build cgo

package driver_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/native/coreml"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestUnitsArePassedToCoreML holds what arrives at Core ML to the numbers of MLComputeUnits
// in Apple's documentation.
func TestUnitsArePassedToCoreML(t *testing.T) {
	rt := runtime(t)
	stateless := written(t, coreml.Options{}, func(b *ir.Builder) { b.Output("y", ops.Neg(b, b.Input("x", ir.F32, ir.N(2)))) })
	stateful := running(t, ir.N(1))
	for _, c := range []struct {
		dir, entry string
		units      driver.Units
		want       int
	}{
		{stateless, "step", driver.DefaultUnits, 2},
		{stateless, "step", driver.CPUOnly, 0},
		{stateful, "add_n1", driver.DefaultUnits, 1},
		{stateful, "add_n1", driver.AllUnits, 2},
		{stateful, "add_n1", driver.CPUAndNeuralEngine, 3},
		{stateful, "add_n1", driver.CPUAndGPU, 1},
	} {
		m, err := coreml.Load(rt, c.dir, c.entry, c.units)
		if err != nil {
			t.Fatal(err)
		}
		if got := software.Units(library); got != c.want {
			t.Errorf("%s by units %d: Core ML is asked for %d, not %d", c.entry, c.units, got, c.want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
