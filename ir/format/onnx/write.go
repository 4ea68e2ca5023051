package onnx

import (
	"bufio"
	"io"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// What models are written with: the operator set 21 is the newest that has no successor for most ops and that
// runtimes since 2024 read, in the version of the file format that came with it.
const (
	writtenOpset     = 21
	writtenIRVersion = 10
	producer         = "rlx"
)

// maxMessage is the size of a message that protocol buffers can have.
const maxMessage = math.MaxInt32

// ExportOptions are the options of [Export].
type ExportOptions struct {
	// Weights returns the elements of a parameter or a state, as devices store them, when the model is
	// written; one tensor is asked for at a time. Nil makes all ports inputs of the model.
	Weights func(name string) ([]byte, error)
	// Has reports whether the model includes the weights of a port; a port without is an input. Nil
	// means all parameters and no states.
	Has func(name string) bool
}

// Export makes a model of operator set 21 of a graph. Inputs, parameters without weights and states are the
// model's inputs, by their names; outputs have theirs, and the new value of a state "s" is the output "s_next"; an output with the
// name of a port, which a model cannot have, gets "_out" after it ([Model.Outputs] has the names in order).
// An op that ONNX has is exported as that, a composite by its body, and any other op by its lowering, with
// constant sizes. Checks of indices are left out, NaN may be lost in Min, Max and reductions, and narrow types
// (bf16, f8, integers but i32 and i64) are computed in wider ones and cut after each op.
//
// The error names the node, and is of kind [ir.ErrUnsupported] for what ONNX cannot express: complex
// numbers, ops with kernels alone; of kind [ir.ErrSymbol] where sizes must be constant ([ir.Graph.Bind] makes them so).
func Export(g *ir.Graph, o ExportOptions) (*Model, error) {
	if err := g.NotNil(); err != nil {
		return nil, err
	}
	main := &graph{name: g.Name()}
	e := &exporter{modelMoves{&modelBuilder{
		main: main, at: main, sizes: &graph{}, names: map[string]bool{"": true}, consts: map[string]tensorRef{}, small: map[string]tensorRef{}, syms: map[string]symbolAxis{},
	}}, o, exportForms()}
	ports := e.ports(g)
	names := e.reserve(g)
	e.outputs(g, names, e.graph(g, ports))
	if e.err != nil {
		return nil, e.err
	}
	e.main.nodes = slices.Concat(e.literals, e.sizes.nodes, e.main.nodes)
	e.main.prune(map[string]bool{})
	return &Model{
		IRVersion: writtenIRVersion, Producer: producer, Opsets: map[string]int64{"": writtenOpset},
		Metadata: map[string]string{}, graph: e.main,
	}, nil
}

// ports declares the ports of the graph.
func (e *exporter) ports(g *ir.Graph) []exported {
	out := make([]exported, len(g.Ports()))
	for i, p := range g.Ports() {
		t := p.Value.Type()
		if elementOf(t.DType) == 0 {
			e.fail(p.Value.Node().Fail(ir.Errorf(ir.ErrUnsupported, "ONNX has no element type %s", t.DType)))
			return out
		}
		e.names[p.Name] = true
		r := tensorRef{p.Name, t.DType, t.Shape}
		if e.stored(p) {
			e.initializer(p)
		} else {
			e.main.inputs = append(e.main.inputs, infoOf(r.name, r.dtype, r.dims))
			for axis, d := range t.Shape {
				if s := d.Symbols(); len(s) > 0 && d == ir.Sym(s[0]) && e.syms[s[0]].input == "" {
					e.syms[s[0]] = symbolAxis{p.Name, axis}
				}
			}
		}
		out[i] = r.value()
	}
	for i, v := range out { // casts come after all names of ports
		out[i] = e.cast(v.tensorRef, held(v.dtype)).value()
	}
	return out
}

// stored reports whether the model has the elements of a port.
func (e *exporter) stored(p ir.Port) bool {
	switch {
	case e.o.Weights == nil || p.Kind == ir.InputPort:
		return false
	case e.o.Has != nil:
		return e.o.Has(p.Name)
	}
	return p.Kind == ir.ParamPort
}

func (e *exporter) initializer(p ir.Port) {
	t := p.Value.Type()
	size, err := t.Bytes()
	dims, ok := t.Shape.Ints()
	if err == nil && !ok {
		err = ir.Errorf(ir.ErrSymbol, "a weight has constant sizes; this one is %s", t)
	}
	if err != nil {
		e.fail(p.Value.Node().Fail(err))
		return
	}
	name, read := p.Name, e.o.Weights
	e.main.initializers = append(e.main.initializers, &tensor{
		name: name, elem: elementOf(t.DType), dims: dims,
		source: &weightSource{name, int64(size), func() ([]byte, error) { return read(name) }},
	})
}

// reserve returns the names of outputs in the model, and keeps them for these.
func (e *exporter) reserve(g *ir.Graph) []string {
	names := make([]string, len(g.Outputs()))
	for i, o := range g.Outputs() {
		name := o.Name
		if o.State {
			name += "_next"
		}
		for e.names[name] {
			name += "_out"
		}
		e.names[name], names[i] = true, name
	}
	return names
}

// outputs names the results that are outputs.
func (e *exporter) outputs(g *ir.Graph, names []string, values []exported) {
	e.prefix = ""
	renamed := map[string]string{} // a later output may be the same value, or repeat it
	for i, o := range g.Outputs() {
		t := o.Value.Type()
		if elementOf(t.DType) == 0 && e.err == nil {
			e.fail(o.Value.Node().Fail(ir.Errorf(ir.ErrUnsupported, "ONNX has no element type %s", t.DType)))
		}
		if e.err != nil {
			return
		}
		v, again := values[i], false
		if to, ok := renamed[v.name]; ok {
			v.name, again = to, true
		}
		r := e.cast(e.whole(v), t.DType)
		if again && r.name == v.name || !e.rename(r.name, names[i]) {
			e.copy(r.name, names[i])
		} else {
			renamed[r.name] = names[i]
		}
		e.main.outputs = append(e.main.outputs, infoOf(names[i], t.DType, t.Shape))
	}
}

// rename renames a result of the last node, which no other node uses, and reports whether it has.
func (e *exporter) rename(name, to string) bool {
	if last := len(e.main.nodes) - 1; last >= 0 {
		if n := e.main.nodes[last]; len(n.outputs) == 1 && n.outputs[0] == name {
			n.outputs[0] = to
			return true
		}
	}
	return false
}

// copy adds a copy of a tensor under another name.
func (e *exporter) copy(name, to string) {
	n := &node{op: "Identity", name: "node:" + to, inputs: []string{name}, outputs: []string{to}}
	e.main.nodes = append(e.main.nodes, n)
}

// prune removes the nodes with no used results, and adds the used names to used.
func (g *graph) prune(used map[string]bool) {
	for _, o := range g.outputs {
		used[o.name] = true
	}
	var kept []*node
	for _, n := range slices.Backward(g.nodes) {
		if !slices.ContainsFunc(n.outputs, func(name string) bool { return used[name] }) {
			continue
		}
		kept = append(kept, n)
		for _, name := range n.inputs {
			used[name] = true
		}
		for _, a := range n.attrs {
			if a.graph != nil {
				a.graph.prune(used)
			}
		}
	}
	slices.Reverse(kept)
	g.nodes = kept
}

// Write writes the model as one message, with the elements of all tensors. The error is of kind
// [ir.ErrUnsupported] for a model of more than 2 GB: see [Model.WriteFile].
func (m *Model) Write(w io.Writer) error {
	if m == nil {
		return ir.Attrf("the model is nil: it must be from Decode, ReadFile or Export")
	}
	out := m.encode()
	if out.size > maxMessage {
		return ir.Errorf(ir.ErrUnsupported, "the model has %d bytes; a file of one message has up to %d, with weights in a separate file", out.size, maxMessage)
	}
	b := bufio.NewWriter(w)
	if err := out.write(b); err != nil {
		return err
	}
	return b.Flush()
}
