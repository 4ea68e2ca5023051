package backendtest

import (
	"context"
	"fmt"
	"math/cmplx"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops/nan"
	"github.com/rlx-go/rlx/native"
)

// Functions checks elementwise functions at hard points against the error bounds in the
// documentation of package ops. Set flushes for a device that flushes subnormal f32 results
// to 0.
func Functions(t *testing.T, b native.Backend, flushes bool) {
	for _, d := range []ir.DType{ir.F32, ir.F64} {
		cases, err := irtest.FunctionCases(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			out, _ := runSamples(t, b, c.Op, []ir.Sample{c.Sample})
			if fault := c.Check(out[0][0], flushes); fault != "" {
				t.Errorf("%s: %s", c.Op, fault)
			}
		}
	}
}

// NaN runs samples of every op with a NaN operand and checks the conventions of package
// nan: results are NaN where those of the reference implementation are. WebGPU does not
// guarantee that.
func NaN(t *testing.T, b native.Backend) {
	for _, c := range nan.Conventions() {
		var samples []ir.Sample
		for _, s := range nan.Samples(c.Op) {
			if g, _, err := irtest.SampleGraph(c.Op, s); err != nil {
				t.Fatal(c.Op, err)
			} else if supported(b, g) == "" {
				samples = append(samples, s)
			}
		}
		if len(samples) == 0 {
			continue
		}
		all, references := runSamples(t, b, c.Op, samples)
		for i, got := range all {
			want := references[i]
			switch {
			case c.ByDevice && countNaN(want) > 0 && countNaN(got) == 0:
				t.Errorf("%s %s: no result is NaN", c.Op, samples[i].Name)
			case !c.ByDevice:
				if fault := differentNaN(got, want); fault != "" {
					t.Errorf("%s %s: %s", c.Op, samples[i].Name, fault)
				}
			}
		}
	}
}

// runSamples returns the results of samples, run as entries of one module, and those of the
// reference implementation. Samples that differ in values alone share an entry.
func runSamples(t *testing.T, b native.Backend, op ir.Op, samples []ir.Sample) (got, want [][]*ir.Array) {
	t.Helper()
	var entries []ir.Entry
	names, entryOf := make([]string, len(samples)), map[string]string{}
	for i, s := range samples {
		g, _, err := irtest.SampleGraph(op, s)
		if err != nil {
			t.Fatal(op, err)
		}
		key := g.String()
		if entryOf[key] == "" {
			entryOf[key] = "case" + strconv.Itoa(i)
			entries = append(entries, ir.Entry{Name: entryOf[key], Graph: g})
		}
		names[i] = entryOf[key]
		reference, err := ir.Eval(g, irtest.SampleInputs(s), ir.EvalOptions{})
		if err != nil {
			t.Fatal(op, err)
		}
		want = append(want, reference)
	}
	m, err := ir.NewModule("cases", entries...)
	if err != nil {
		t.Fatal(op, err)
	}
	p, err := b.Compile(context.Background(), m, native.Options{})
	if err != nil {
		t.Fatal(op, err)
	}
	defer closeProgram(t, p)
	for i, s := range samples {
		out, err := run(p, names[i], irtest.SampleInputs(s))
		if err != nil {
			t.Fatal(op, err)
		}
		arrays := make([]*ir.Array, len(out))
		for r := range arrays {
			if arrays[r], err = out[strconv.Itoa(r)].Array(); err != nil {
				t.Fatal(op, err)
			}
		}
		got = append(got, arrays)
	}
	return got, want
}

func isNaN(a *ir.Array, i int) bool {
	if a.C != nil {
		return cmplx.IsNaN(a.C[i])
	}
	x := a.Float(i)
	return x != x
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

// differentNaN returns the first elements where only one of got and want is NaN, or "". Other types than floats
// must be equal.
func differentNaN(got, want []*ir.Array) string {
	var faults []string
	for r, a := range want {
		for i := range a.Len() {
			if isNaN(a, i) == isNaN(got[r], i) && (a.I == nil || a.I[i] == got[r].I[i]) {
				continue
			}
			if len(faults) == 3 {
				return strings.Join(append(faults, "and more"), "; ")
			}
			faults = append(faults, fmt.Sprintf("result %d, element %d is %v, want %v", r, i, number(got[r], i), number(a, i)))
		}
	}
	return strings.Join(faults, "; ")
}

// number returns an element as a number to print.
func number(a *ir.Array, i int) any {
	switch {
	case a.C != nil:
		return a.C[i]
	case a.I != nil:
		return a.I[i]
	}
	return a.F[i]
}

// longSums are the cases of [LongSums], whose results a process computes once for all backends.
var longSums = sync.OnceValue(func() []irtest.SumCase { return irtest.LongSums(1e5) })

// LongSums compares sums of 10⁵ terms of f32, alone and inside other ops, with their values in f64:
// see [irtest.LongSums].
func LongSums(t *testing.T, b native.Backend) {
	cases := longSums()
	for name, equal := range map[string]bool{"equal": true, "spread": false} {
		for _, c := range cases {
			t.Run(c.Name+"/"+name, func(t *testing.T) {
				s, err := c.Make(equal)
				if err != nil {
					t.Fatal(err)
				}
				p := compile(t, b, s.Graph)
				defer closeProgram(t, p)
				out, err := run(p, s.Graph.Name(), s.Inputs)
				if err != nil {
					t.Fatal(err)
				}
				var got []float64
				for _, v := range floats(t, out["y"]) {
					got = append(got, float64(v))
				}
				if err := s.Check(got); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
