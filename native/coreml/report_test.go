//go:build cgo && (darwin || linux)

package coreml_test

import (
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/coreml"
)

// What follows is part of the report of `make test-apple`.

func TestReportDescribesDevice(t *testing.T) {
	b := coreml.Backend()
	backendtest.Require(t, b.Name(), b.Probe())
	if t.Log(b.Info().Description); b.Info().Description == "" {
		t.Error("the device does not say what it is")
	}
}

// TestReportListsPlacements lists, for models in fp16, how many operations Core ML would run
// on which processor, and what part of the time that would be.
func TestReportListsPlacements(t *testing.T) {
	b := coreml.Backend()
	backendtest.Require(t, b.Name(), b.Probe())
	rt, err := driver.Open()
	if err != nil {
		t.Fatal(err)
	}
	for name, build := range map[string]func() (*ir.Graph, error){
		"MLP": func() (*ir.Graph, error) { return irtest.MLP(128, 784, 512, 512, 10) },
		"GPT": irtest.GPT{Vocab: 65, Context: 64, Width: 128, Heads: 4, Blocks: 2, Batch: 1}.Loss,
	} {
		g, err := build()
		if err != nil {
			t.Fatal(err)
		}
		m, err := ir.NewModule(name, ir.Entry{Name: "eval", Graph: g})
		if err != nil {
			t.Fatal(err)
		}
		p, err := coreml.New(m, coreml.Options{Half: true})
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "m.mlpackage")
		if err := p.Write(dir); err != nil {
			t.Fatal(err)
		}
		model, err := coreml.Load(rt, dir, "eval", driver.AllUnits)
		if err != nil {
			t.Fatal(err)
		}
		placements, err := model.Placements()
		if err != nil {
			t.Fatal(err)
		}
		count, cost := map[driver.Processor]int{}, map[driver.Processor]float64{}
		for _, at := range placements {
			count[at.Preferred]++
			cost[at.Preferred] += max(0, at.Cost)
		}
		for at := driver.CPU; at <= driver.NeuralEngine; at++ {
			t.Logf("%s: %s: %d operations, %.0f %% of the time", name, at, count[at], 100*cost[at])
		}
		if count[driver.CPU]+count[driver.GPU]+count[driver.NeuralEngine] == 0 {
			t.Errorf("%s: Core ML places none of %d operations", name, len(placements))
		}
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	}
}
