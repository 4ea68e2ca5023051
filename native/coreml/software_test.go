//go:build cgo && linux

package coreml_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

// older makes Core ML that of macOS 14.3 for a test.
func older(t *testing.T) {
	software.Older(library, true)
	t.Cleanup(func() { software.Older(library, false) })
}

// TestSystemDescriptionComesFromDriver: the description of the device comes from the system, and one that is too
// old is not available.
func TestSystemDescriptionComesFromDriver(t *testing.T) {
	info := coreml.Backend().Info()
	if !strings.Contains(info.Description, "CPU, GPU, Neural Engine of 16 cores") || !info.Software {
		t.Errorf("the device is %+v", info)
	}
	if err := rlx.Available(coreml.Name); err != nil {
		t.Errorf("it is not available: %v", err)
	}
	if d := rlx.Fastest(); d.Name == coreml.Name {
		t.Error("Core ML is taken without being asked for")
	}
	older(t)
	if err := rlx.Available(coreml.Name); !errors.Is(err, native.ErrUnavailable) || !strings.Contains(err.Error(), "macOS 15") {
		t.Errorf("before macOS 15: %v", err)
	}
	if _, err := rlx.Open(coreml.Name); !errors.Is(err, native.ErrUnavailable) {
		t.Errorf("before macOS 15 it is opened: %v", err)
	}
	if info := coreml.Backend().Info(); info != (native.Info{}) {
		t.Errorf("before macOS 15 the device is %+v", info)
	}
}

// loaded writes a graph as a package and loads it.
func loaded(t *testing.T, o coreml.Options, units driver.Units, build func(b *ir.Builder)) *coreml.Model {
	t.Helper()
	p, err := coreml.New(module(t, build), o)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "m.mlpackage")
	if err := p.Write(dir); err != nil {
		t.Fatal(err)
	}
	rt, err := driver.Open()
	if err != nil {
		t.Fatal(err)
	}
	m, err := coreml.Load(rt, dir, "step", units)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestPlacementsReportUnitsAndCosts: operations, processors and costs are those of the system, for
// the requested units; constants have none. The stand-in places fp16 on the
// Neural Engine and lets all cost alike.
func TestPlacementsReportUnitsAndCosts(t *testing.T) {
	before := alive()
	product := func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2, 3)...)
		b.Output("y", ops.MatMul(b, x, ops.Transpose(b, x, 1, 0)))
	}
	for units, want := range map[driver.Units]driver.Processor{
		driver.AllUnits: driver.NeuralEngine, driver.CPUOnly: driver.CPU, driver.CPUAndGPU: driver.CPU, driver.CPUAndNeuralEngine: driver.NeuralEngine,
	} {
		placements, err := loaded(t, coreml.Options{Half: true}, units, product).Placements()
		if err != nil {
			t.Fatal(err)
		}
		found, cost := false, 0.0
		for _, p := range placements {
			if p.Kind == "matmul" {
				found = p.Preferred == want && len(p.Supported) > 0 && p.Cost > 0
			}
			if p.Kind == "const" != (p.Preferred == driver.NoProcessor) || p.Kind == "const" != (p.Cost < 0) || p.Name == "" {
				t.Errorf("units %d: %+v", units, p)
			}
			cost += math.Max(0, p.Cost)
		}
		if !found || cost > 1 {
			t.Errorf("units %d: matmul is not on the %s, or costs are %g together: %+v", units, want, cost, placements)
		}
	}
	m := loaded(t, coreml.Options{}, driver.AllUnits, product)
	older(t)
	if _, err := m.Placements(); !errors.Is(err, native.ErrUnavailable) {
		t.Errorf("before macOS 14.4: %v", err)
	}
	if now := aliveAfter(before + 5); now != before+5 { // the models
		t.Errorf("%d objects are alive, %d were before", now, before)
	}
}

// aliveAfter returns the number of Core ML's objects, once it is as wanted or some seconds have passed: the thread that answers
// with a plan releases it after the answer.
func aliveAfter(want int) (now int) {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if now = alive(); now == want || time.Now().After(end) {
			return now
		}
	}
}

// TestChecksInUntakenBranchesDoNotFail: an index out of range is no error in the branch that is
// not taken, or in an iteration that a loop does not run.
func TestChecksInUntakenBranchesDoNotFail(t *testing.T) {
	m := loaded(t, coreml.Options{Checks: true}, driver.AllUnits, func(b *ir.Builder) {
		i := b.Input("i", ir.I32)
		checked := func(label string) func(b *ir.Builder, in []ir.Value) []ir.Value {
			return func(b *ir.Builder, in []ir.Value) []ir.Value {
				b.Label(label)
				defer b.Label("")
				return []ir.Value{ops.CheckIndex(b, in[0], ir.N(4), "place")}
			}
		}
		plain := func(_ *ir.Builder, in []ir.Value) []ir.Value { return in }
		b.Output("chosen", ops.Cond(b, b.Input("look", ir.Bool), []ir.Value{i}, checked("in the branch"), plain)[0])
		b.Output("turned", ops.WhileLoop(b, ops.While{
			Carries: []ir.Value{b.Input("from", ir.I32)}, MaxSteps: 3,
			Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value { return ops.Lt(b, c[0], ops.Const(b, ir.I32, 3)) },
			Body: func(b *ir.Builder, _, c []ir.Value) []ir.Value {
				return []ir.Value{ops.Add(b, checked("in the loop")(b, c)[0], ops.Const(b, ir.I32, 2))}
			},
		})[0])
	})
	for _, c := range []struct {
		i, from int32
		look    bool
		node    string
	}{
		{3, 0, true, ""},
		{4, 0, true, "in the branch"},
		{-1, 0, true, "in the branch"},
		{4, 0, false, ""},
		{0, 9, true, ""}, // the loop does no turn
		{0, -1, true, "in the loop"},
		{9, -1, true, "in the branch"}, // the first of two
	} {
		_, err := m.Predict(map[string]native.Tensor{"i": native.Int32(c.i), "from": native.Int32(c.from), "look": native.Bool(c.look)})
		var typed *native.Error
		if found := errors.As(err, &typed); found != (c.node != "") || found && (typed.Node != c.node || !errors.Is(err, ir.ErrIndex)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestUnwritableFolderIsAnError: without a folder for packages the backend returns an error, and writes
// no files.
func TestUnwritableFolderIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", file)
	_, err := coreml.Backend().Compile(t.Context(), module(t, func(b *ir.Builder) { b.Output("y", b.Input("x", ir.F32)) }), native.Options{})
	var typed *native.Error
	if !errors.As(err, &typed) || typed.Backend != coreml.Name || !strings.Contains(err.Error(), file) {
		t.Errorf("the error is %v", err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	p, err := coreml.Backend().Compile(t.Context(), module(t, func(b *ir.Builder) { b.Output("y", b.Input("x", ir.F32)) }), native.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}
