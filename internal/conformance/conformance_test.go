package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/conformance"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/irtest"
)

var makeSuite = sync.OnceValues(conformance.Suite)

func suite(t *testing.T) []conformance.Module {
	t.Helper()
	modules, err := makeSuite()
	if err != nil {
		t.Fatal(err)
	}
	return modules
}

// TestEveryOpAndGradientIsInTheSuite names the ops that are not, which are those
// whose samples are all of types that WebGPU lacks.
func TestEveryOpAndGradientIsInTheSuite(t *testing.T) {
	results := map[string]int{}
	for _, m := range suite(t) {
		for _, c := range m.Cases {
			for _, r := range c.Runs {
				results[c.Name] += len(r.Want)
			}
		}
	}
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		samples := slices.DeleteFunc(d.Samples(), func(s ir.Sample) bool { return !onWebGPU(t, op, s) })
		if len(samples) == 0 {
			continue
		}
		if results[string(op)] == 0 {
			t.Errorf("no sample of %s", op)
		}
		if d.NoGrad == "" && slices.ContainsFunc(samples, hasGradient) && results["vjp "+string(op)] == 0 {
			t.Errorf("no gradient of %s", op)
		}
	}
}

// onWebGPU returns whether operands and results of a sample have only types that
// every device computes with or stores.
func onWebGPU(t *testing.T, op ir.Op, s ir.Sample) bool {
	t.Helper()
	_, n, err := irtest.SampleGraph(op, s)
	if err != nil {
		t.Fatal(err)
	}
	types := slices.Clone(n.Types())
	for _, v := range n.Inputs() {
		types = append(types, v.Type())
	}
	for _, g := range s.Subs {
		for _, inner := range g.Nodes() {
			types = append(types, inner.Types()...)
		}
	}
	return !slices.ContainsFunc(types, func(t ir.Type) bool {
		return t.DType == ir.F16 || t.DType.On(dtype.WGSL) == dtype.Unsupported
	})
}

func hasGradient(s ir.Sample) bool {
	small := 0
	for _, a := range s.In {
		small += a.Len()
		if slices.ContainsFunc(a.F, func(x float64) bool { return x-x != 0 }) {
			return false
		}
	}
	float := slices.ContainsFunc(s.In, func(a *ir.Array) bool { return a.DType == ir.F32 })
	return s.NoGrad == "" && float && small <= 400
}

// TestModelsInTheSimulator judges plans and expectations where there is no
// device to blame.
func TestModelsInTheSimulator(t *testing.T) {
	models := 0
	for _, m := range suite(t) {
		if !strings.HasPrefix(m.Name, "model ") || m.Name == "model matrix products" || m.Name == "model long sums" {
			continue // the two that are left out would take the simulator long
		}
		models++
		for _, c := range m.Cases {
			t.Run(c.Name, func(t *testing.T) { checkCase(t, m, c) })
		}
	}
	if models < 10 {
		t.Errorf("%d models", models)
	}
}

func checkCase(t *testing.T, m conformance.Module, c conformance.Case) {
	s, err := plansim.Open(m.Module, m.Target())
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range c.State {
		if err := s.Set(name, a); err != nil {
			t.Fatal(err)
		}
	}
	for k, run := range c.Runs {
		got, err := s.Run(c.Entry, run.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range run.Want {
			a := got[want.Output]
			if a == nil {
				if a, err = s.Get(want.Output); err != nil {
					t.Fatal(err)
				}
			}
			for i := range want.Array.Len() {
				if x, y := a.Float(i), want.Array.Float(i); !want.Allows(x, y) {
					t.Errorf("run %d: %s: element %d is %v, not %v", k, want.Output, i, x, y)
					break
				}
			}
		}
	}
}

// TestWrittenModulesHaveFilesOfTheirOwn writes some modules of the suite; make suite writes all.
func TestWrittenModulesHaveFilesOfTheirOwn(t *testing.T) {
	folder, some := t.TempDir(), suite(t)[:40]
	if err := conformance.Write(folder, some); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Modules []struct{ Plan, Code string }
	}
	if err := json.Unmarshal(read(t, folder, conformance.IndexFile), &index); err != nil {
		t.Fatal(err)
	}
	var plans []string
	for _, m := range index.Modules {
		plans = append(plans, m.Plan)
		if m.Code != "" {
			plans = append(plans, m.Code)
		}
	}
	if len(files) != len(plans)+3 { // the index, the values, and the sources
		t.Errorf("%d files for %d plans: two have one name", len(files), len(plans))
	}
	for _, name := range plans {
		if _, err := plan.Decode(read(t, folder, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := conformance.Write(t.TempDir(), []conformance.Module{some[0], some[1], some[0]}); err == nil {
		t.Error("two modules of one name are written")
	}
}

func read(t *testing.T, folder, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
