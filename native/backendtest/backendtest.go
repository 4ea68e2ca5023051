// Package backendtest is the suite that every backend passes: all ops by their
// samples, gradients, whole training steps, and wrong input. Each result is
// held against the reference meaning of the ops, computed in float64.
//
//	func TestBackend(t *testing.T) { backendtest.Run(t, mydevice.Backend()) }
//
// A device that is not there skips the tests, unless the environment variable
// RLX_REQUIRE, a list of names separated by commas, has its name: then they
// fail.
package backendtest

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Run runs the whole suite.
func Run(t *testing.T, b native.Backend) {
	Require(t, b.Name(), b.Probe())
	t.Run("ops", func(t *testing.T) { Ops(t, b) })
	t.Run("gradients", func(t *testing.T) { Gradients(t, b) })
	t.Run("random", func(t *testing.T) { Random(t, b) })
}

// Require skips or fails a test where a device is missing for the given reason;
// nil stands for a device that is there.
func Require(t testing.TB, device string, missing error) {
	t.Helper()
	if missing == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("RLX_REQUIRE"), ","), device) {
		t.Fatalf("RLX_REQUIRE asks for %s: %v", device, missing)
	}
	t.Skipf("%s: %v", device, missing)
}

// tolerance is the one table of how far a result may be from the reference,
// relative to the larger of 1 and the reference. Types that are not there are
// exact.
var tolerance = map[ir.DType]float64{
	ir.F16:  4e-3,
	ir.BF16: 3e-2,
	ir.F32:  2e-5,
	ir.F64:  1e-11,
	ir.C64:  2e-5,
	ir.C128: 1e-11,
}

// Compare returns how a result differs from the reference by more than it may,
// "" where it does not. tol, where it is not 0, takes the place of the table's
// tolerance if it is larger.
func Compare(got native.Tensor, want *ir.Array, tol float64) string {
	a, err := got.Array()
	if err != nil {
		return err.Error()
	}
	if !a.Type().Equal(want.Type()) {
		return fmt.Sprintf("is %s, not %s", a.Type(), want.Type())
	}
	tol = max(tol, tolerance[want.DType])
	var bad []string
	for i := range want.Len() {
		if d := difference(a, want, i); d > tol {
			bad = append(bad, fmt.Sprintf("element %d is %s, not %s", i, element(a, i), element(want, i)))
		}
	}
	if len(bad) > 3 {
		bad = append(bad[:3], fmt.Sprintf("and %d more of %d", len(bad)-3, want.Len()))
	}
	return strings.Join(bad, "; ")
}

// difference returns the relative distance of two elements, infinite where one
// of them is not finite and the other is not the same.
func difference(got, want *ir.Array, i int) float64 {
	switch {
	case got.C != nil:
		a, b := got.C[i], want.C[i]
		size := math.Max(1, math.Max(math.Abs(real(b)), math.Abs(imag(b))))
		return math.Max(distance(real(a), real(b), size), distance(imag(a), imag(b), size))
	case got.F != nil:
		b := want.DType.Round(want.F[i])
		return distance(got.F[i], b, math.Max(1, math.Abs(b)))
	case got.I[i] == want.I[i]:
		return 0
	}
	return math.Inf(1)
}

func distance(a, b, size float64) float64 {
	if a == b || math.IsNaN(a) && math.IsNaN(b) {
		return 0
	}
	if d := math.Abs(a-b) / size; !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}

func element(a *ir.Array, i int) string {
	switch {
	case a.C != nil:
		return fmt.Sprint(a.C[i])
	case a.F != nil:
		return fmt.Sprint(a.F[i])
	}
	return fmt.Sprint(a.I[i])
}

// supported returns why a backend cannot run a graph, "" where it can.
func supported(b native.Backend, g *ir.Graph) string {
	for _, n := range g.Nodes() {
		if s := b.Support(n); s.Level == native.Unsupported {
			return fmt.Sprintf("%s: %s", n.Op(), s.Reason)
		}
		for _, sub := range n.Subgraphs() {
			if why := supported(b, sub); why != "" {
				return why
			}
		}
	}
	return ""
}

// one is an entry of a test module, with what goes in and what should come out.
type one struct {
	name  string
	graph *ir.Graph
	in    map[string]*ir.Array
	tol   float64
}

// check compiles cases as the entries of one module, runs each and holds the
// outputs against the reference.
func check(t *testing.T, b native.Backend, cases []one) {
	t.Helper()
	var entries []ir.Entry
	for _, c := range cases {
		entries = append(entries, ir.Entry{Name: c.name, Graph: c.graph})
	}
	m, err := ir.NewModule("cases", entries...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Compile(context.Background(), m, native.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeProgram(t, p)
	for _, c := range cases {
		want, err := ir.Eval(c.graph, c.in, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatalf("%s: reference: %v", c.name, err)
		}
		got, err := run(p, c.name, c.in)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i, o := range c.graph.Outputs() {
			if diff := Compare(got[o.Name], want[i], c.tol); diff != "" {
				t.Errorf("%s: output %s: %s\n%s", c.name, o.Name, diff, c.graph)
			}
		}
	}
}

func run(p native.Program, entry string, in map[string]*ir.Array) (map[string]native.Tensor, error) {
	tensors := map[string]native.Tensor{}
	for name, a := range in {
		tensors[name] = native.FromArray(a)
	}
	r, err := p.Run(context.Background(), entry, tensors)
	if err != nil {
		return nil, err
	}
	return r.Wait(context.Background())
}

func closeProgram(t *testing.T, p native.Program) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}
