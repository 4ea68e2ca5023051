// Command export writes graphs as ONNX models, with inputs and expected results, for check.py beside it:
//
//	go run ./internal/conformance/export FOLDER
//
// The graphs are networks of layers with symbolic sizes, the losses of the families of models, random
// patchworks, and the samples of all ops; the results are those of the reference implementation.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/irtest/families"
	"github.com/rlx-go/rlx/ir/ops"
)

// The JSON of the index.
type (
	caseJSON struct {
		Kind    string       `json:"kind"`
		Name    string       `json:"name"`
		Sample  string       `json:"sample"`
		Model   string       `json:"model,omitempty"`
		Refused string       `json:"refused,omitempty"` // why there is no model
		Inputs  []tensorJSON `json:"inputs,omitempty"`
		Want    []tensorJSON `json:"want,omitempty"`
	}
	// tensorJSON is a tensor at an offset of the file values.bin.
	tensorJSON struct {
		Name  string  `json:"name"`
		DType string  `json:"dtype"`
		Shape []int   `json:"shape"`
		At    int     `json:"at"`
		Abs   float64 `json:"abs,omitempty"`
		Rel   float64 `json:"rel,omitempty"`
	}
)

type writer struct {
	folder string
	cases  []caseJSON
	values []byte
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: export FOLDER")
	}
	w := &writer{folder: os.Args[1]}
	err := os.MkdirAll(w.folder, 0o755)
	for _, add := range []func() error{w.networks, w.families, w.patchworks, w.samples} {
		if err == nil {
			err = add()
		}
	}
	if err == nil {
		err = w.write()
	}
	if err != nil {
		log.Fatal(err)
	}
}

func (w *writer) write() error {
	index, err := json.Marshal(w.cases)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.folder, "values.bin"), w.values, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.folder, "index.json"), index, 0o644)
}

// samples adds the samples of all ops.
func (w *writer) samples() error {
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		for _, s := range d.Samples() {
			g, inputs, n, err := sampleGraph(op, s)
			if err != nil {
				return fmt.Errorf("%s %s: %w", op, s.Name, err)
			}
			tolerance := func(result int, _ ir.DType) irtest.Tolerance {
				return irtest.SampleTolerance(n, s, n.Types()[result].DType.Real())
			}
			if err := w.add(caseJSON{Kind: "op", Name: string(op), Sample: s.Name}, g, inputs, tolerance); err != nil {
				return err
			}
		}
	}
	return nil
}

// isNarrow reports the types that numpy has not; a graph takes and returns f32 in their place.
func isNarrow(d ir.DType) bool { return d == ir.BF16 || d.IsFloat8() }

func sampleGraph(op ir.Op, s ir.Sample) (*ir.Graph, map[string]*ir.Array, *ir.Node, error) {
	var n *ir.Node
	inputs := map[string]*ir.Array{}
	g, err := ir.Build(string(op), func(b *ir.Builder) {
		in := make([]ir.Value, len(s.In))
		for i, a := range s.In {
			name, t := fmt.Sprint("x", i), a.Type()
			if isNarrow(a.DType) {
				wide := a.Clone()
				wide.DType, t.DType = ir.F32, ir.F32
				in[i] = ops.Convert(b, b.Port(ir.InputPort, name, t), a.DType)
				inputs[name] = wide
				continue
			}
			in[i] = b.Port(ir.InputPort, name, t)
			inputs[name] = a
		}
		for i, v := range b.AddNode(op, s.Attrs, s.Subs, in...) {
			if n = v.Node(); isNarrow(v.DType()) {
				v = ops.Convert(b, v, ir.F32)
			}
			b.Output(fmt.Sprint("y", i), v)
		}
	})
	return g, inputs, n, err
}

func (w *writer) patchworks() error {
	plain := func(_ ir.Op, s ir.Sample) bool {
		return !slices.ContainsFunc(s.In, func(a *ir.Array) bool { return a.DType != ir.F32 && a.DType != ir.I32 && a.DType != ir.Bool })
	}
	for i := range 60 {
		p := irtest.RandomPatchwork(uint64(i), plain)
		if err := w.add(caseJSON{Kind: "patchwork", Name: fmt.Sprint("patchwork ", i)}, p.Graph, p.Inputs, func(_ int, d ir.DType) irtest.Tolerance { return p.DeviceTolerance(d) }); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) families() error {
	for _, f := range families.All {
		g, below, err := f.Loss(1)
		if err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(1, 2))
		inputs := map[string]*ir.Array{}
		for _, p := range g.Ports() {
			inputs[p.Name] = random(rng, p.Value.Type(), below[p.Name])
		}
		tolerance := func(int, ir.DType) irtest.Tolerance { return irtest.Tolerance{Abs: 1e-4, Rel: 1e-4} }
		if err := w.add(caseJSON{Kind: "model", Name: f.Name}, g, inputs, tolerance); err != nil {
			return err
		}
	}
	return nil
}

// hasFloat8 reports a graph whose results are compared as they are rounded: the tolerances are those of wider
// types.
func hasFloat8(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return slices.ContainsFunc(n.Types(), func(t ir.Type) bool { return t.DType.IsFloat8() })
	})
}

// random draws floats around 0 and integers below a bound.
func random(rng *rand.Rand, t ir.Type, below int) *ir.Array {
	dims, _ := t.Shape.Ints()
	a := ir.NewArray(t.DType, dims...)
	for i := range a.F {
		a.F[i] = (2*rng.Float64() - 1) * 0.2
	}
	for i := range a.I {
		a.I[i] = int64(rng.IntN(max(below, 1)))
	}
	a.Round()
	return a
}

// add exports a graph, or notes why it is refused, with its inputs and results.
func (w *writer) add(c caseJSON, g *ir.Graph, inputs map[string]*ir.Array, tolerance func(result int, d ir.DType) irtest.Tolerance) error {
	return w.addAs(c, g, g, inputs, tolerance)
}

// addAs is add for a graph g with symbols, which run has numbers for.
func (w *writer) addAs(c caseJSON, g, run *ir.Graph, inputs map[string]*ir.Array, tolerance func(result int, d ir.DType) irtest.Tolerance) error {
	model, err := onnx.Export(g, onnx.ExportOptions{})
	if err != nil {
		if !errors.Is(err, ir.ErrUnsupported) && !errors.Is(err, ir.ErrSymbol) {
			return fmt.Errorf("%s %s: %w", c.Name, c.Sample, err)
		}
		c.Refused = reason(err)
		w.cases = append(w.cases, c)
		return nil
	}
	want, err := ir.Eval(run, inputs, ir.EvalOptions{Reference: c.Kind == "op" && !hasFloat8(g)})
	if err != nil {
		return fmt.Errorf("%s %s: %w", c.Name, c.Sample, err)
	}
	c.Model = fmt.Sprintf("%04d.onnx", len(w.cases))
	if err := model.WriteFile(filepath.Join(w.folder, c.Model), false); err != nil {
		return err
	}
	for _, p := range g.Ports() {
		c.Inputs = append(c.Inputs, w.tensor(p.Name, inputs[p.Name]))
	}
	outputs := model.Outputs()
	for i := range want {
		t := w.tensor(outputs[i].Name, want[i])
		tol := tolerance(i, want[i].DType)
		t.Abs, t.Rel = tol.Abs, tol.Rel
		c.Want = append(c.Want, t)
	}
	w.cases = append(w.cases, c)
	return nil
}

// reason returns the innermost error without the node.
func reason(err error) string {
	var node *ir.OpError
	for errors.As(err, &node) {
		err = node.Err
	}
	text := err.Error()
	return strings.TrimPrefix(text, "unsupported: ")
}

func (w *writer) tensor(name string, a *ir.Array) tensorJSON {
	t := tensorJSON{Name: name, DType: a.DType.String(), Shape: append([]int{}, a.Dims...), At: len(w.values)}
	w.values = append(w.values, a.Bytes()...)
	return t
}
