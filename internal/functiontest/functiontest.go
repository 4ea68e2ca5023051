// Package functiontest holds functions over a builder to values of other systems, which are stored in
// ir/irtest/cases/functions.json: results, gradients and second derivatives. The tests in TypeScript
// read the same file.
package functiontest

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Function builds the results of a case from its inputs.
type Function func(b *ir.Builder, in map[string]ir.Value) []ir.Value

// number is a number or a text: NaN, Infinity or -Infinity.
type number float64

func (x *number) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	*x = number(v)
	return err
}

// stored is a tensor of the file: its element type, shape and elements.
type stored struct {
	D string
	S []int
	V []number
}

func (s *stored) dtype() ir.DType {
	if s.D == "i32" {
		return ir.I32
	}
	return ir.F32
}

func (s *stored) tensor() rlx.Tensor {
	if s.D == "i32" {
		x := make([]int32, len(s.V))
		for i, v := range s.V {
			x[i] = int32(v)
		}
		return rlx.Int32s(x, s.S...)
	}
	x := make([]float32, len(s.V))
	for i, v := range s.V {
		x[i] = float32(v)
	}
	return rlx.Float32s(x, s.S...)
}

// testCase is a case of the file.
type testCase struct {
	Name                              string
	Inputs, Grads, Directions, Second map[string]*stored
	Outputs, Weights                  []*stored
}

// Run compares all cases of the file whose names begin with a prefix, such as "image.", with functions
// of the rest of the names. They are compiled as one program for the CPU.
func Run(t *testing.T, path, prefix string, functions map[string]Function) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []testCase
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	s := suite{test: t, functions: functions, in: map[string]rlx.Inputs{}, want: map[string][]expected{}}
	for _, c := range all {
		if name, ok := strings.CutPrefix(c.Name, prefix); ok {
			c.Name = name
			s.cases = append(s.cases, c)
		}
	}
	if len(s.cases) != len(functions) {
		t.Errorf("there are %d cases of %s and %d functions", len(s.cases), prefix, len(functions))
	}
	s.run()
}

// expected is an output of an entry.
type expected struct {
	output, what string
	want         *stored
}

// suite is a run of some cases.
type suite struct {
	test      *testing.T
	functions map[string]Function
	cases     []testCase
	in        map[string]rlx.Inputs // by entry
	want      map[string][]expected // by entry
}

func (s *suite) run() {
	s.test.Helper()
	module, err := ir.NewModule("functions", s.entries()...)
	if err != nil {
		s.test.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		s.test.Fatal(err)
	}
	ctx := context.Background()
	p, err := session.Compile(ctx, module)
	if err != nil {
		s.test.Fatal(err)
	}
	defer p.Close(ctx)
	for entry, in := range s.in {
		out, err := p.Call(ctx, entry, in)
		if err != nil {
			s.test.Fatal(err)
		}
		for _, e := range s.want[entry] {
			near(s.test, e.what, out[e.output], e.want)
		}
	}
}

// entries returns an entry of values, one of values and gradients, and one that has second derivatives,
// too, each of the cases that have no more.
func (s *suite) entries() (entries []ir.Entry) {
	s.test.Helper()
	for _, entry := range []string{"values", "gradients", "second"} {
		s.in[entry] = rlx.Inputs{}
		var wrt []string
		g, err := ir.Build(entry, func(b *ir.Builder) {
			var terms []ir.Value
			for i, c := range s.cases {
				if c.entry() != entry {
					continue
				}
				name := "c" + strconv.Itoa(i) + "/"
				terms = append(terms, s.add(b, entry, name, c)...)
				for _, port := range slices.Sorted(maps.Keys(c.Grads)) {
					wrt = append(wrt, name+port)
				}
			}
			if len(wrt) > 0 && b.Err() == nil {
				b.Output("loss", ops.SumAll(b, terms...))
			}
		})
		if err == nil && entry == "gradients" && len(wrt) > 0 {
			g, err = autodiff.GradWith(g, autodiff.GradOptions{Loss: "loss", Wrt: wrt, Missing: autodiff.MissingIsZero})
		} else if err == nil && entry == "second" && len(wrt) > 0 {
			g, err = autodiff.HVPWith(g, "loss", autodiff.Options{Wrt: wrt, Missing: autodiff.MissingIsZero})
		}
		if err != nil {
			s.test.Fatalf("%s: %v", entry, err)
		}
		if len(s.in[entry]) == 0 {
			delete(s.in, entry)
			continue
		}
		entries = append(entries, ir.Entry{Name: entry, Graph: g})
	}
	return entries
}

func (c testCase) entry() string {
	switch {
	case c.Second != nil:
		return "second"
	case c.Grads != nil:
		return "gradients"
	}
	return "values"
}

// add adds a case to the graph of an entry and returns the terms of its loss.
func (s *suite) add(b *ir.Builder, entry, name string, c testCase) (terms []ir.Value) {
	in := map[string]ir.Value{}
	for _, port := range slices.Sorted(maps.Keys(c.Inputs)) {
		x := c.Inputs[port]
		in[port] = b.Input(name+port, x.dtype(), ir.Dims(x.S...)...)
		s.in[entry][name+port] = x.tensor()
	}
	f, ok := s.functions[c.Name]
	if !ok {
		s.test.Errorf("there is no function of %s", c.Name)
		return nil
	}
	results := f(b, in)
	if b.Err() != nil {
		return nil
	}
	for i, want := range c.Outputs {
		number := strconv.Itoa(i)
		b.Output(name+"y"+number, results[i])
		s.want[entry] = append(s.want[entry], expected{name + "y" + number, c.Name + ": result " + number, want})
		if i < len(c.Weights) && c.Weights[i] != nil {
			w := c.Weights[i]
			s.in[entry][name+"w"+number] = w.tensor()
			terms = append(terms, ops.ReduceSum(b, ops.Mul(b, results[i], b.Input(name+"w"+number, ir.F32, ir.Dims(w.S...)...))))
		}
	}
	for port, want := range c.Grads {
		s.want[entry] = append(s.want[entry], expected{autodiff.GradName(name + port), c.Name + ": the gradient by " + port, want})
	}
	for port, want := range c.Second {
		s.in[entry][autodiff.TangentName(name+port)] = c.Directions[port].tensor()
		s.want[entry] = append(s.want[entry], expected{autodiff.HVPName(name + port), c.Name + ": the second derivative by " + port, want})
	}
	return terms
}

// near compares values up to 2e-5 of the largest finite one, and shapes. NaN equals NaN.
func near(t *testing.T, what string, got rlx.Tensor, want *stored) {
	t.Helper()
	if !slices.Equal(got.Dims, want.S) || got.DType != want.dtype() {
		t.Errorf("%s is %s%v, not %s%v", what, got.DType, got.Dims, want.dtype(), want.S)
		return
	}
	var x []float64
	if f, err := got.Float32s(); err == nil {
		for _, v := range f {
			x = append(x, float64(v))
		}
	} else if i, err := got.Int32s(); err == nil {
		for _, v := range i {
			x = append(x, float64(v))
		}
	}
	largest := 1.
	for _, v := range want.V {
		if a := math.Abs(float64(v)); !math.IsInf(a, 0) && !math.IsNaN(a) {
			largest = max(largest, a)
		}
	}
	for i, v := range want.V {
		w := float64(v)
		if same := x[i] == w || math.IsNaN(x[i]) && math.IsNaN(w); !same && !(math.Abs(x[i]-w) <= 2e-5*largest) {
			t.Errorf("%s is %v at %d, not %v:\n%v, want\n%v", what, x[i], i, w, x, want.V)
			return
		}
	}
}
