// Command suite writes models and their expected results for check.py: the samples of every op
// that MIL supports, without those that repeat the operations of others, and whole models.
//
//	go run ./internal/coreml/suite build/coreml
//
// With -refuse it reads the packages there that check.py has broken, which must be refused:
//
//	go run ./internal/coreml/suite -refuse build/coreml
//
// By it Apple's tools check the packages that native/coreml writes. Start reading at
// main.go; models.go and training.go have the whole models, broken.go the packages to refuse.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

func main() {
	refusing := flag.Bool("refuse", false, "read the packages that check.py has broken")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: suite [-refuse] directory")
		os.Exit(2)
	}
	do := write
	if *refusing {
		do = refuse
	}
	if err := do(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

// write writes a package and a file of values for every op and every model.
func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	packages, err := allSamples()
	if err != nil {
		return err
	}
	dropRepeated(packages)
	for _, p := range packages {
		if err := p.write(dir); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return errors.Join(writeModels(dir), writeWhole(dir))
}

// allSamples returns a package of each op with samples that can be written as models.
func allSamples() ([]*packaged, error) {
	var packages []*packaged
	for _, op := range ir.Ops() {
		cases, err := samples(op)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		if len(cases) == 0 {
			continue
		}
		p, err := packCases(string(op), cases, coreml.Options{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// one is a graph with its inputs and the tolerance of its outputs.
type one struct {
	graph *ir.Graph
	in    map[string]*ir.Array
	tol   func(d ir.DType) irtest.Tolerance
}

// samples returns the samples of an op that can be written as models.
func samples(op ir.Op) ([]one, error) {
	d, _ := ir.Lookup(op)
	if d.Samples == nil {
		return nil, nil
	}
	var cases []one
	for _, s := range d.Samples() {
		g, n, err := irtest.SampleGraph(op, s)
		if err != nil {
			return nil, err
		}
		if n == nil || coreml.Support(n).Level == native.Unsupported {
			continue
		}
		cases = append(cases, one{g, irtest.SampleInputs(s), func(d ir.DType) irtest.Tolerance { return irtest.SampleTolerance(n, s, d) }})
	}
	return cases, nil
}

// values is the input of check.py: by function, the inputs and the outputs under their names in the
// model.
type values struct {
	Inputs  map[string]array `json:"inputs"`
	Outputs map[string]array `json:"outputs"`
	// Steps, if any, are runs one after the other, each with some inputs. An output in Next is the
	// input of that name in the next one.
	Steps []values          `json:"steps,omitempty"`
	Next  map[string]string `json:"next,omitempty"`
}

// array holds elements as float64, little-endian, in base64.
type array struct {
	Dims []int   `json:"dims"`
	Data string  `json:"data"`
	Abs  float64 `json:"abs"` // tolerance
	Rel  float64 `json:"rel"`
}

func arrayOf(a *ir.Array) array {
	data := make([]byte, 0, 8*a.Len())
	for i := range a.Len() {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(a.Float(i)))
	}
	dims := a.Dims
	if len(dims) == 0 {
		dims = []int{1}
	}
	return array{Dims: dims, Data: base64.StdEncoding.EncodeToString(data)}
}

// packaged is a package with a case for each of its functions.
type packaged struct {
	name  string
	p     *mil.Package
	cases []one
}

// packCases compiles graphs to the functions of one package.
func packCases(name string, cases []one, o coreml.Options) (*packaged, error) {
	var entries []ir.Entry
	for i, c := range cases {
		entries = append(entries, ir.Entry{Name: fmt.Sprintf("case%d", i), Graph: c.graph})
	}
	return packEntries(name, entries, cases, o)
}

// packEntries compiles entries to a package, which has a function for each case.
func packEntries(name string, entries []ir.Entry, cases []one, o coreml.Options) (*packaged, error) {
	m, err := ir.NewModule(name, entries...)
	if err != nil {
		return nil, err
	}
	p, err := coreml.New(m, o)
	if err != nil {
		return nil, err
	}
	return &packaged{name, p, cases}, nil
}

// writeCases writes graphs as the functions of one package.
func writeCases(dir, name string, cases []one, o coreml.Options) error {
	p, err := packCases(name, cases, o)
	if err != nil {
		return err
	}
	return p.write(dir)
}

// write writes the package, and the inputs and outputs of its functions.
func (p *packaged) write(dir string) error {
	all := map[string]values{}
	for i, c := range p.cases {
		f := p.p.Program.Functions[i]
		var err error
		if all[f.Name], err = valuesOf(p.p, f, c); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, p.name+".mlpackage")
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if err := p.p.Write(path); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, p.name+".json"), text, 0o644)
}

// valuesOf computes the results of a function, and records them by the names in the
// metadata of the package.
func valuesOf(p *mil.Package, f *mil.Function, c one) (values, error) {
	v := values{Inputs: map[string]array{}, Outputs: map[string]array{}}
	want, err := ir.Eval(c.graph, c.in, ir.EvalOptions{Reference: true})
	if err != nil {
		return v, err
	}
	features := slices.Clone(f.Outputs)
	for _, in := range f.Inputs {
		features = append(features, in.Name)
	}
	for _, feature := range features {
		words := strings.SplitN(p.Metadata[f.Name+"/"+feature], " ", 3)
		role, name := words[0], words[2]
		if in := c.in[name]; in != nil && role != "output" {
			v.Inputs[feature] = arrayOf(in)
		}
		if role == "fault" {
			v.Outputs[feature] = arrayOf(ir.Ints(ir.I32, []int64{0}, 1)) // no index is out of range
		}
		for i, o := range c.graph.Outputs() {
			if role == "output" && o.Name == name && !o.State || role == "state" && o.State && o.Name == name || role == "next" && o.State && o.Name == name {
				v.Outputs[feature] = outputOf(f, feature, want[i], c.tol(want[i].DType))
			}
		}
	}
	return v, nil
}

// outputOf is an expected value in the model's form: rounded to its type, with at most five axes.
func outputOf(f *mil.Function, feature string, want *ir.Array, tol irtest.Tolerance) array {
	want = want.Clone()
	want.Round()
	out := arrayOf(want)
	if t := f.TypeOf(feature); len(t.Dims) > 0 {
		out.Dims = t.Dims
	}
	out.Abs, out.Rel = tol.Abs, tol.Rel
	return out
}
