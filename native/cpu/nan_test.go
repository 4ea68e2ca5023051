package cpu_test

import (
	"context"
	"math"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops/nan"
	"github.com/rlx-go/rlx/native"
)

// TestConventionsOfNaN runs samples of every op with a NaN: results are NaN where those of the
// meaning are.
func TestConventionsOfNaN(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for _, c := range nan.Conventions() {
			for _, s := range nan.Samples(c.Op) {
				g, _, err := irtest.SampleGraph(c.Op, s)
				if err != nil {
					t.Fatal(c.Op, err)
				}
				want, err := ir.Eval(g, irtest.SampleInputs(s), ir.EvalOptions{})
				if err != nil {
					t.Fatal(c.Op, err)
				}
				got := resultsOf(t, g, s)
				if c.ByDevice {
					if countNaN(want) > 0 && countNaN(got) == 0 {
						t.Errorf("%s %s: no result is NaN", c.Op, s.Name)
					}
				} else if !sameNaN(got, want) {
					t.Errorf("%s %s: %v, want %v", c.Op, s.Name, got, want)
				}
			}
		}
	})
}

func resultsOf(t *testing.T, g *ir.Graph, s ir.Sample) []*ir.Array {
	t.Helper()
	in := map[string]native.Tensor{}
	for name, a := range irtest.SampleInputs(s) {
		in[name] = native.FromArray(a)
	}
	run, err := compileGraphs(t, ir.Entry{Name: "run", Graph: g}).Run(context.Background(), "run", in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	arrays := make([]*ir.Array, len(out))
	for i := range arrays {
		if arrays[i], err = out[strconv.Itoa(i)].Array(); err != nil {
			t.Fatal(err)
		}
	}
	return arrays
}

func isNaN(a *ir.Array, i int) bool {
	if a.C != nil {
		return math.IsNaN(real(a.C[i])) || math.IsNaN(imag(a.C[i]))
	}
	return math.IsNaN(a.Float(i))
}

func countNaN(list []*ir.Array) (n int) {
	for _, a := range list {
		for i := range a.Len() {
			if isNaN(a, i) {
				n++
			}
		}
	}
	return n
}

// sameNaN reports whether results are NaN at the same places, and equal where they are no floats.
func sameNaN(got, want []*ir.Array) bool {
	for r, a := range want {
		for i := range a.Len() {
			if isNaN(a, i) != isNaN(got[r], i) || a.I != nil && a.I[i] != got[r].I[i] {
				return false
			}
		}
	}
	return true
}
