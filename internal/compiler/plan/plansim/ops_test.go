package plansim_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	_ "github.com/rlx-go/rlx/ir/irtest/ownop" // an op with kernels of its own
	_ "github.com/rlx-go/rlx/ir/ops"
)

// TestSamplesOfAllOpsEqualReference compiles every sample of every op separately, runs the plan in
// the simulator and compares with the reference implementation in float64.
func TestSamplesOfAllOpsEqualReference(t *testing.T) {
	eachSample(t, func(t *testing.T, op ir.Op, s ir.Sample) { checkSample(t, op, s) })
}

// eachSample runs a check of every sample of every op, with -short of the first of each.
func eachSample(t *testing.T, check func(t *testing.T, op ir.Op, s ir.Sample)) {
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		t.Run(string(op), func(t *testing.T) {
			samples := d.Samples()
			if testing.Short() {
				samples = samples[:min(1, len(samples))]
			}
			for i, s := range samples {
				t.Run(strconv.Itoa(i)+" "+s.Name, func(t *testing.T) { check(t, op, s) })
			}
		})
	}
}

// shortOps divides the ops, of which -short takes the first.
const shortOps = 4

// TestManySamplesAtOnce puts the samples of an op into one graph, where fusion
// finds what to put side by side and bindings run out.
func TestManySamplesAtOnce(t *testing.T) {
	for i, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil || testing.Short() && i%shortOps != 0 {
			continue
		}
		var samples []ir.Sample
		for _, s := range d.Samples() {
			if g, _, err := sampleGraph(op, s); err == nil && runsOn(g, withF16()) && !stores(g, withF16()) {
				samples = append(samples, s)
			}
		}
		if len(samples) > 0 {
			t.Run(string(op), func(t *testing.T) { checkSample(t, op, samples...) })
		}
	}
}

func sampleGraph(op ir.Op, samples ...ir.Sample) (*ir.Graph, map[string]*ir.Array, error) {
	inputs := map[string]*ir.Array{}
	g, err := ir.Build("sample", func(b *ir.Builder) {
		for k, s := range samples {
			var in []ir.Value
			for i, a := range s.In {
				name := fmt.Sprintf("x%d_%d", k, i)
				inputs[name] = a
				in = append(in, b.Port(ir.InputPort, name, a.Type()))
			}
			for i, v := range b.AddNode(op, s.Attrs, s.Subs, in...) {
				b.Output(fmt.Sprintf("y%d_%d", k, i), v)
			}
		}
	})
	return g, inputs, err
}

// runsOn reports whether a target has all element types of a graph, stores
// whether it only stores one of them.
func runsOn(g *ir.Graph, target plan.Target) bool { return !has(g, target, dtype.Unsupported) }

func stores(g *ir.Graph, target plan.Target) bool { return has(g, target, dtype.Storage) }

func has(g *ir.Graph, target plan.Target, s dtype.Support) bool {
	for _, n := range g.Nodes() {
		for _, t := range n.Types() {
			if target.Support(t.DType) == s {
				return true
			}
		}
	}
	return false
}

func withF16() plan.Target {
	target := plan.WebGPU()
	target.F16 = true
	return target
}

// checkSample runs a sample as WebGPU with f16 computes it, and, where there are
// types that are only stored, with memory of words and of bytes.
func checkSample(t *testing.T, op ir.Op, samples ...ir.Sample) {
	t.Helper()
	checkSampleOn(t, withF16(), op, samples...)
	for name, target := range map[string]plan.Target{"words": plan.WebGPU(), "bytes": inBytes()} {
		if g, _, err := sampleGraph(op, samples...); err == nil && runsOn(g, target) && stores(g, target) {
			t.Run(name, func(t *testing.T) { checkSampleOn(t, target, op, samples...) })
		}
	}
}

// checkSampleOn returns the names of the plan's kernels.
func checkSampleOn(t *testing.T, target plan.Target, op ir.Op, samples ...ir.Sample) (kernels []string) {
	t.Helper()
	g, inputs, err := sampleGraph(op, samples...)
	if err != nil {
		t.Fatal(err)
	}
	if !runsOn(g, target) {
		return nil
	}
	return checkGraphOn(t, target, g, inputs)
}

// checkGraphOn runs a graph and returns the names of the plan's kernels.
func checkGraphOn(t *testing.T, target plan.Target, g *ir.Graph, inputs map[string]*ir.Array) (kernels []string) {
	t.Helper()
	program := open(t, g, target)
	checkRun(t, program, g, inputs)
	for _, k := range program.Plan().Kernels {
		kernels = append(kernels, k.Name)
	}
	return kernels
}

// checkRun runs a graph once and compares its results with the reference.
func checkRun(t *testing.T, program *plansim.Program, g *ir.Graph, inputs map[string]*ir.Array) {
	t.Helper()
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err := program.Run("run", inputs)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs() {
		tolerance := 1e-5
		switch want[i].DType {
		case ir.F16:
			tolerance = 1e-2
		case ir.BF16:
			tolerance = 5e-2
		}
		if diff := compare(got[o.Name], want[i], tolerance); diff != "" {
			t.Errorf("%s: %s", o.Name, diff)
		}
	}
}

// ran are the runs of this process: devices that differ in what a graph does not use have equal plans.
var ran = runs{}

// runs are hashes of plan files, which include the kernels, with their inputs.
type runs map[[sha256.Size]byte]bool

// add reports whether the run of a program with inputs is new.
func (r runs) add(t *testing.T, s *plansim.Program, inputs map[string]*ir.Array) bool {
	t.Helper()
	file, err := plan.Encode(s.Plan())
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	hash.Write(file)
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		a := inputs[name]
		fmt.Fprintln(hash, name, a.Type())
		for _, numbers := range []any{a.F, a.I, a.C} {
			if err := binary.Write(hash, binary.LittleEndian, numbers); err != nil {
				t.Fatal(err)
			}
		}
	}
	key := [sha256.Size]byte(hash.Sum(nil))
	seen := r[key]
	r[key] = true
	return !seen
}

func compare(got, want *ir.Array, tol float64) string {
	if !got.Type().Equal(want.Type()) {
		return fmt.Sprintf("is %s, not %s", got.Type(), want.Type())
	}
	var bad []string
	for i := range want.Len() {
		a, b := got.Float(i), want.Float(i)
		if want.DType.IsFloat() {
			b = want.DType.Round(b)
		}
		if a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= tol*math.Max(1, math.Abs(b)) {
			continue
		}
		if len(bad) < 3 {
			bad = append(bad, fmt.Sprintf("element %d is %v, not %v", i, a, b))
		}
	}
	return strings.Join(bad, "; ")
}
