//go:build cgo && (darwin || linux)

package driver_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

// running writes a package of two entries for batches of one and two that share the state "sum":
// "add" adds its input, "clear" returns the sum and sets it to its input.
func running(t *testing.T, state ...ir.Dim) string {
	t.Helper()
	entry := func(name string, next func(b *ir.Builder, sum, x ir.Value) ir.Value) ir.Entry {
		g, err := ir.Build(name, func(b *ir.Builder) {
			sum, x := b.State("sum", ir.F16, state...), b.Input("x", ir.F16, ir.Sym("n"))
			if _, constant := state[0].Const(); constant {
				x = ops.Reshape(b, ops.ReduceSum(b, x, 0), ir.N(1))
			}
			now := next(b, sum, ops.Mul(b, x, b.Param("w", ir.F16)))
			b.SetState("sum", now)
			b.Output("now", ops.Add(b, now, sum))
		})
		if err != nil {
			t.Fatal(err)
		}
		return ir.Entry{Name: name, Graph: g}
	}
	m, err := ir.NewModule("running",
		entry("add", func(b *ir.Builder, sum, x ir.Value) ir.Value { return ops.Add(b, sum, x) }),
		entry("clear", func(b *ir.Builder, sum, x ir.Value) ir.Value { return x }))
	if err != nil {
		t.Fatal(err)
	}
	p, err := coreml.New(m, coreml.Options{States: true, ParamStates: true, Shapes: []map[string]int{{"n": 1}, {"n": 2}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "m.mlpackage")
	if err := p.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runtimes are the Core ML of the binding, and the one in Go.
func runtimes(t *testing.T) map[string]driver.Runtime {
	return map[string]driver.Runtime{"binding": runtime(t), "Go": &software.Runtime{}}
}

func halves(x ...float64) native.Tensor { return native.FromArray(ir.Floats(ir.F16, x)) }

// checkSum adds a batch of ones, with the parameter as its factor, and looks at the sum.
func checkSum(t *testing.T, s *coreml.Sizes, batch int, want float64) {
	t.Helper()
	if _, err := s.Predict(map[string]native.Tensor{"x": halves(slices.Repeat([]float64{1}, batch)...)}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get("sum")
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := got.Array(); a.F[0] != want {
		t.Errorf("after a batch of %d the sum is %v, not %v", batch, a.F[0], want)
	}
}

func TestSizesAndEntriesShareStates(t *testing.T) {
	for name, rt := range runtimes(t) {
		t.Run(name, func(t *testing.T) {
			e, err := coreml.LoadEntries(rt, running(t, ir.N(1)), driver.DefaultUnits, "add", "clear", "add")
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			add, err := e.Entry("add")
			if err != nil {
				t.Fatal(err)
			}
			reset, err := e.Entry("clear")
			if err != nil {
				t.Fatal(err)
			}
			if err := add.Set("w", native.FromArray(ir.Floats(ir.F16, []float64{1}, []int{}...))); err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, batch := range []int{2, 1, 2, 1, 1, 2} {
				sum += float64(batch)
				checkSum(t, add, batch, sum)
			}
			checkSum(t, reset, 2, 2)
			checkSum(t, add, 1, 3)
			if err := reset.Set("sum", halves(10)); err != nil {
				t.Fatal(err)
			}
			checkSum(t, add, 2, 12)
			if w, err := reset.Get("w"); err != nil || w.Data[1] == 0 {
				t.Errorf("the other entry has the parameter %v: %v", w, err)
			}
			if _, err := add.Predict(map[string]native.Tensor{"x": halves(1, 1, 1)}); !errors.Is(err, ir.ErrShape) {
				t.Errorf("a batch of three: %v", err)
			}
			checkSum(t, add, 1, 13)
			if _, err := e.Entry("eval"); !errors.Is(err, ir.ErrName) {
				t.Errorf("an entry that was not loaded: %v", err)
			}
		})
	}
}

// LoadSizes is for one entry.
func TestSizesShareStates(t *testing.T) {
	for name, rt := range runtimes(t) {
		t.Run(name, func(t *testing.T) {
			s, err := coreml.LoadSizes(rt, running(t, ir.N(1)), "add", driver.AllUnits)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Set("w", native.FromArray(ir.Floats(ir.F16, []float64{1}, []int{}...))); err != nil {
				t.Fatal(err)
			}
			for i, batch := range []int{2, 1, 2, 1} {
				checkSum(t, s, batch, []float64{2, 3, 5, 6}[i])
			}
		})
	}
}

// A state of several sizes cannot be shared.
func TestStatesOfSeveralSizesAreRefused(t *testing.T) {
	for name, rt := range runtimes(t) {
		t.Run(name, func(t *testing.T) {
			dir := running(t, ir.Sym("n"))
			_, err := coreml.LoadSizes(rt, dir, "add", driver.DefaultUnits)
			var typed *coreml.Error
			if !errors.Is(err, ir.ErrShape) || !errors.As(err, &typed) || typed.Entry != "add" {
				t.Errorf("error %v", err)
			}
			m, err := coreml.Load(rt, dir, "add_n2", driver.DefaultUnits)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The Neural Engine gets functions with states if it alone is requested.
func TestUnitsOfFunctionsWithStates(t *testing.T) {
	for units, want := range map[driver.Units][2]driver.Units{
		driver.DefaultUnits: {driver.AllUnits, driver.CPUAndGPU}, driver.AllUnits: {driver.AllUnits, driver.AllUnits},
		driver.CPUOnly: {driver.CPUOnly, driver.CPUOnly}, driver.CPUAndNeuralEngine: {driver.CPUAndNeuralEngine, driver.CPUAndNeuralEngine},
	} {
		for i, states := range []bool{false, true} {
			if got := units.For(states); got != want[i] {
				t.Errorf("units %d of a function, states %t: %d, not %d", units, states, got, want[i])
			}
		}
	}
}
