// Package backendtest is the test suite of all backends: ops on their samples, gradients,
// training steps, and wrong input. Results are compared to the reference implementations of
// the ops, evaluated in float64. Start reading at backendtest.go, with [Run].
//
//	func TestBackend(t *testing.T) { backendtest.Run(t, mydevice.Backend()) }
//
// Tests of a missing device are skipped, or fail if the environment variable RLX_REQUIRE, a
// comma-separated list, contains its name.
package backendtest

import (
	"context"
	"fmt"
	"math/cmplx"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
)

// Run runs the whole suite.
func Run(t *testing.T, b native.Backend) {
	Require(t, b.Name(), b.Probe())
	t.Run("ops", func(t *testing.T) { Ops(t, b) })
	t.Run("gradients", func(t *testing.T) { Gradients(t, b) })
	t.Run("derivatives", func(t *testing.T) { Derivatives(t, b) })
	t.Run("graphs", func(t *testing.T) { Graphs(t, b) })
	t.Run("large maps", func(t *testing.T) { LargeMaps(t, b) })
	t.Run("programs", func(t *testing.T) { Programs(t, b) })
	t.Run("wrong input", func(t *testing.T) { WrongInput(t, b) })
	t.Run("random", func(t *testing.T) { Random(t, b) })
}

// Require skips or fails a test if a device is missing; missing is nil for a present
// device.
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

// SetUnset sets those environment variables that are unset or empty, in a TestMain: it panics if one
// cannot be set.
func SetUnset(variables map[string]string) {
	for name, value := range variables {
		if os.Getenv(name) != "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
}

// Compare describes how a result differs from the reference beyond the tolerance, or
// returns "". Package irtest has the tolerances of the element types.
func Compare(got native.Tensor, want *ir.Array, tol irtest.Tolerance) string {
	a, err := got.Array()
	if err != nil {
		return err.Error()
	}
	if !a.Type().Equal(want.Type()) {
		return fmt.Sprintf("is %s, not %s", a.Type(), want.Type())
	}
	var bad []string
	for i := range want.Len() {
		if !allowed(a, want, i, tol) {
			bad = append(bad, fmt.Sprintf("element %d is %s, not %s", i, element(a, i), element(want, i)))
		}
	}
	if len(bad) > 3 {
		bad = append(bad[:3], fmt.Sprintf("and %d more of %d", len(bad)-3, want.Len()))
	}
	return strings.Join(bad, "; ")
}

func allowed(got, want *ir.Array, i int, tol irtest.Tolerance) bool {
	switch {
	case got.C != nil:
		a, b := got.C[i], want.C[i]
		tol.Abs += tol.Rel * cmplx.Abs(b)
		return tol.Allows(real(a), real(b)) && tol.Allows(imag(a), imag(b))
	case got.F != nil:
		return tol.Allows(got.F[i], want.DType.Round(want.F[i]))
	}
	return got.I[i] == want.I[i]
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

// supported returns why a backend cannot run a graph, or "".
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

// one is an entry of a test module with its inputs and expected outputs.
type one struct {
	name  string
	graph *ir.Graph
	in    map[string]*ir.Array
	tol   func(d ir.DType) irtest.Tolerance
}

// subject is an op with its cases.
type subject struct {
	name  string
	cases []one
}

// subjectsPerModule is the number of subjects in a module. If a compiler runs as a separate
// process, or a model is a folder, starting and opening dominate the time of a small module.
const subjectsPerModule = 16

// checkSubjects checks each subject in a subtest, with one module for several subjects. If such a
// module does not compile, each subject is compiled in a separate module, so that the failure has a
// name. With -short each has its first case alone.
func checkSubjects(t *testing.T, b native.Backend, all []subject) {
	t.Helper()
	if testing.Short() {
		for i, s := range all {
			all[i].cases = s.cases[:min(1, len(s.cases))]
		}
	}
	for list := range slices.Chunk(all, subjectsPerModule) {
		var cases []one
		for i := range list {
			for k := range list[i].cases {
				c := &list[i].cases[k]
				c.name = list[i].name + " " + c.name
			}
			cases = append(cases, list[i].cases...)
		}
		p, err := compileCases(b, cases)
		for _, s := range list {
			t.Run(s.name, func(t *testing.T) {
				if err == nil {
					runCases(t, p, s.cases)
				} else {
					check(t, b, s.cases)
				}
			})
		}
		if err != nil {
			t.Errorf("%s to %s in one module: %v", list[0].name, list[len(list)-1].name, err)
			continue
		}
		closeProgram(t, p)
	}
}

// check compiles cases as the entries of one module, runs each and compares the outputs to
// the reference.
func check(t *testing.T, b native.Backend, cases []one) {
	t.Helper()
	p, err := compileCases(b, cases)
	if err != nil {
		t.Fatal(err)
	}
	defer closeProgram(t, p)
	runCases(t, p, cases)
}

// compileCases compiles cases as the entries of one module.
func compileCases(b native.Backend, cases []one) (native.Program, error) {
	var entries []ir.Entry
	for _, c := range cases {
		entries = append(entries, ir.Entry{Name: c.name, Graph: c.graph})
	}
	m, err := ir.NewModule("cases", entries...)
	if err != nil {
		return nil, err
	}
	return b.Compile(context.Background(), m, native.Options{})
}

// runCases runs the cases of a program and compares the outputs to the reference.
func runCases(t *testing.T, p native.Program, cases []one) {
	t.Helper()
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
			if diff := Compare(got[o.Name], want[i], c.tol(want[i].DType)); diff != "" {
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
	if err := p.Close(context.Background()); err != nil {
		t.Errorf("closing: %v", err)
	}
}
