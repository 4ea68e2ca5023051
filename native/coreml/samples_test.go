package coreml_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

// TestEverySampleSurvivesItsPackage writes the samples of every supported op as packages, reads
// them, and evaluates them. coremltools checks that Core ML reads them alike: make test-coreml.
func TestEverySampleSurvivesItsPackage(t *testing.T) {
	total := 0
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		var entries []ir.Entry
		var nodes []*ir.Node
		var samples []ir.Sample
		for _, s := range d.Samples() {
			g, n, err := irtest.SampleGraph(op, s)
			if err != nil {
				t.Fatal(err)
			}
			if n == nil || coreml.Support(n).Level == native.Unsupported {
				continue
			}
			entries = append(entries, ir.Entry{Name: fmt.Sprint("case", len(entries)), Graph: g})
			nodes, samples = append(nodes, n), append(samples, s)
		}
		if len(entries) == 0 {
			continue
		}
		total += len(entries)
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			p := roundTrip(t, entries)
			for i, s := range samples {
				checkNoIntegerMatMul(t, p.Program.Functions[i])
				tol := func(d ir.DType) irtest.Tolerance { return irtest.SampleTolerance(nodes[i], s, d) }
				compare(t, p, p.Program.Functions[i], entries[i].Graph, irtest.SampleInputs(s), tol)
			}
		})
	}
	if total < 1600 {
		t.Errorf("models were made of %d samples, not of the 1,600 and more that MIL can say", total)
	}
}

// roundTrip writes a module as a package and reads it.
func roundTrip(t *testing.T, entries []ir.Entry) *mil.Package {
	t.Helper()
	m, err := ir.NewModule("samples", entries...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := coreml.New(m, coreml.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "samples.mlpackage")
	if err := p.Write(dir); err != nil {
		t.Fatal(err)
	}
	if p, err = mil.Read(dir); err != nil {
		t.Fatal(err)
	}
	return p
}

// compare compares a function with the reference of the graph that it was compiled from.
func compare(t *testing.T, p *mil.Package, f *mil.Function, g *ir.Graph, in map[string]*ir.Array, tol func(ir.DType) irtest.Tolerance) {
	t.Helper()
	got, err := software.Graph(f)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]*ir.Array{}
	for _, port := range got.Ports() {
		name := nameOf(p, f, port.Name)
		a, err := ir.ArrayOf(ir.Type{DType: in[name].DType, Shape: port.Value.Shape()}, in[name].Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if values[port.Name] = a; a.DType == ir.Bool {
			values[port.Name] = ir.Ints(ir.I32, a.I, a.Dims...)
		}
	}
	out, err := ir.Eval(got, values, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := ir.Eval(g, in, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range got.Outputs() {
		k := 0
		for g.Outputs()[k].Name != nameOf(p, f, o.Name) {
			k++
		}
		want[k].Round()
		allowed := tol(want[k].DType)
		for e := range out[i].Len() {
			if a, b := out[i].Float(e), want[k].Float(e); !allowed.Allows(a, b) {
				t.Errorf("%s, %s: element %d is %v, not %v", f.Name, o.Name, e, a, b)
				break
			}
		}
	}
}

// nameOf returns the name of a feature in the graph.
func nameOf(p *mil.Package, f *mil.Function, feature string) string {
	return strings.SplitN(p.Metadata[f.Name+"/"+feature], " ", 3)[2]
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
