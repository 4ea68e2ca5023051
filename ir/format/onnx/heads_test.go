package onnx_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/npz"
	"github.com/rlx-go/rlx/ir/format/onnx"
)

// microsoftCases are the models of testdata/microsoft.npz, which suite/microsoft.py writes, by name.
func microsoftCases(tb testing.TB) (file *npz.File, names []string) {
	tb.Helper()
	file, err := npz.Open("testdata/microsoft.npz")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { file.Close() })
	for _, name := range file.Names() {
		if name, ok := strings.CutSuffix(name, "/model"); ok {
			names = append(names, name)
		}
	}
	return file, names
}

// storedArray returns an array of the cases.
func storedArray(tb testing.TB, file *npz.File, name string) *ir.Array {
	tb.Helper()
	a, err := file.Array(name)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// storedModel returns the model of a case.
func storedModel(tb testing.TB, file *npz.File, name string) []byte {
	tb.Helper()
	return storedArray(tb, file, name+"/model").Bytes()
}

// TestOpsOfLanguageModels holds ops that exported language models have to the values of ONNX Runtime, with sizes
// that are symbols, at several sizes, and with sizes that are fixed at import.
func TestOpsOfLanguageModels(t *testing.T) {
	file, cases := microsoftCases(t)
	if len(cases) < 40 {
		t.Errorf("there are %d cases", len(cases))
	}
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			m, err := onnx.Decode(storedModel(t, file, name))
			if err != nil {
				t.Fatal(err)
			}
			i, err := m.Import(onnx.Options{})
			if err != nil {
				t.Fatal(err)
			}
			runs := 0
			for _, turn := range []string{"", "2"} {
				in := weightsOf(t, i)
				for _, stored := range file.Names() {
					if operand, ok := strings.CutPrefix(stored, name+"/in"+turn+"/"); ok {
						in[operand] = storedArray(t, file, stored)
						runs++
					}
				}
				if turn == "" || len(in) > len(i.Weights) {
					compareStored(t, file, name+"/out"+turn+"/", i, in)
					fixed, err := m.Import(onnx.Options{Sizes: symbolsOf(i.Graph, in)})
					if err != nil {
						t.Fatal(err)
					}
					compareStored(t, file, name+"/out"+turn+"/", fixed, in)
				}
			}
			if runs == 0 {
				t.Error("nothing ran")
			}
		})
	}
}

// weightsOf returns the weights of a model as operands.
func weightsOf(tb testing.TB, i *onnx.Import) map[string]*ir.Array {
	tb.Helper()
	in := map[string]*ir.Array{}
	for _, w := range i.Weights {
		elements, err := w.Bytes()
		if err != nil {
			tb.Fatal(err)
		}
		if in[w.Name], err = ir.ArrayOf(w.Type, elements); err != nil {
			tb.Fatal(err)
		}
	}
	return in
}

// compareStored evaluates a model and compares its results with stored ones.
func compareStored(t *testing.T, file *npz.File, prefix string, i *onnx.Import, in map[string]*ir.Array) {
	t.Helper()
	g, err := i.Graph.Bind(symbolsOf(i.Graph, in))
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for k, o := range i.Graph.Outputs() {
		want := storedArray(t, file, prefix+o.Name)
		if !slices.Equal(out[k].Dims, want.Dims) {
			t.Errorf("%s has shape %v, not %v", o.Name, out[k].Dims, want.Dims)
			continue
		}
		for e := range want.Len() {
			if got, want := out[k].Float(e), want.Float(e); !(math.Abs(got-want) <= 1e-4*max(1, math.Abs(want))) {
				t.Errorf("%s%s: element %d is %v, not %v", prefix, o.Name, e, got, want)
				break
			}
		}
	}
}

// symbolsOf returns the sizes of a graph's symbols that operands have.
func symbolsOf(g *ir.Graph, in map[string]*ir.Array) map[string]int {
	sizes := map[string]int{}
	for _, p := range g.Ports() {
		for axis, d := range p.Value.Shape() {
			if _, number := d.Const(); !number {
				sizes[d.String()] = in[p.Name].Dims[axis]
			}
		}
	}
	return sizes
}
