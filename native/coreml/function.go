package coreml

import (
	"fmt"
	"strings"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/coreml/forms"
	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// function is a function under construction.
type function struct {
	e        *forms.Emitter
	w        *writer
	graph    *ir.Graph
	name     string
	features map[string]bool    // names in use
	states   map[string]mil.Ref // by name in the graph
}

// feature returns a unique name like base for a port or an output of the graph, and records
// its role, type and name in the metadata.
func (f *function) feature(role, base, name string, t ir.Type) string {
	base = identifier(base)
	feature := base
	for i := 2; f.features[feature]; i++ {
		feature = fmt.Sprintf("%s_%d", base, i)
	}
	f.features[feature] = true
	f.w.pkg.Metadata[featureKey(f.name, feature)] = strings.Join([]string{role, t.String(), name}, " ")
	return feature
}

// port declares a port of the graph: a stored weight, a state of Core ML, or an input.
func (f *function) port(p ir.Port) (forms.Value, error) {
	if weights, stored := f.w.Weights[p.Name]; stored && p.Kind == ir.ParamPort {
		return f.stored(p, weights)
	}
	t, err := f.e.Type(p.Value.Type())
	if err != nil {
		return forms.Value{}, p.Value.Node().Fail(err)
	}
	if f.graph.Updates(p.Name) && f.w.States || p.Kind == ir.ParamPort && f.w.ParamStates {
		if t.DType != mil.Float16 {
			return forms.Value{}, p.Value.Node().Fail(ir.Errorf(ir.ErrUnsupported, "the state is %s; a state of Core ML must be fp16: set Half or clear States", t.DType))
		}
		state := f.e.State(f.feature(p.Kind.String(), p.Name, p.Name, p.Value.Type()), t)
		f.states[p.Name] = state
		return forms.Value{Ref: f.e.ReadState(state), Dims: t.Dims}, f.e.Err()
	}
	name := f.feature(p.Kind.String(), p.Name, p.Name, p.Value.Type())
	if bound, checked := plan.CheckedBounds(f.graph)[p.Value]; checked && p.Kind == ir.InputPort {
		f.w.pkg.Metadata[rangeKey(featureKey(f.name, name))] = fmt.Sprint(0, bound)
	}
	in := f.e.Input(name, f.outside(p.Value.Type(), t))
	return forms.Value{Ref: f.inside(in, t.DType), Dims: t.Dims}, f.e.Err()
}

// stored makes a parameter a constant. Bytes are kept for the ops that unpack them.
func (f *function) stored(p ir.Port, weights native.Tensor) (forms.Value, error) {
	f.w.used[p.Name] = true
	a, err := weights.Array()
	if err == nil && !a.Type().Equal(p.Value.Type()) {
		err = ir.Shapef("weights are %s; the parameter needs %s", a.Type(), p.Value.Type())
	}
	if err != nil {
		return forms.Value{}, p.Value.Node().Fail(err)
	}
	if f.e.Packed[p.Name] != nil {
		return forms.Value{}, nil
	}
	return f.e.Literal(a), f.e.Err()
}

// outside returns the type of a value at the boundary of a model: bool becomes int32, and
// fp16 becomes fp32 if the graph has f32 or the opset requires it.
func (f *function) outside(t ir.Type, in mil.Type) mil.Type {
	switch {
	case in.DType == mil.Bool:
		in.DType = mil.Int32
	case in.DType == mil.Float16 && (t.DType == ir.F32 || f.e.Opset() < mil.CoreML6):
		in.DType = mil.Float32
	}
	return in
}

// inside converts an input to the type of the computation.
func (f *function) inside(in mil.Ref, d mil.DType) mil.Ref {
	if in.Type.DType == d {
		return in
	}
	return f.e.Op("cast", mil.Args{"x": in, "dtype": d.String()})
}

// outputs adds the nodes and the outputs of the graph.
func (f *function) outputs(ports []forms.Value) {
	names := make([]string, len(f.graph.Outputs()))
	for i, o := range f.graph.Outputs() {
		role, base := outputRole, o.Name
		if o.State {
			if _, resident := f.states[o.Name]; resident {
				continue
			}
			role, base = nextRole, o.Name+"_next"
		}
		names[i] = f.result(role, base, o.Name, o.Value.Type())
	}
	values := f.e.Graph(f.graph, ports)
	f.faults()
	for i, o := range f.graph.Outputs() {
		if f.e.Err() != nil {
			return
		}
		r := f.e.Whole(values[i])
		if state, resident := f.states[o.Name]; resident && o.State {
			f.e.WriteState(state, r)
			continue
		}
		f.e.Output(names[i], f.inside(r, f.outside(o.Value.Type(), r.Type).DType))
	}
}

// result declares an output of the model for an output of the graph.
func (f *function) result(role, base, name string, t ir.Type) string {
	feature := f.feature(role, base, name, t)
	f.e.Reserve(feature)
	return feature
}

// faults adds an output that encodes which check of indices failed; its name in the
// metadata lists the checking nodes.
func (f *function) faults() {
	nodes, code := f.e.Faults()
	if !f.w.Checks || f.e.Err() != nil || len(nodes) == 0 {
		return
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		if names[i] = strings.ReplaceAll(n.Label(), "\n", " "); names[i] == "" {
			names[i] = fmt.Sprintf("%s %d", n.Op(), n.ID())
		}
	}
	t := ir.Type{DType: ir.I32, Shape: ir.Dims(1)}
	f.e.Output(f.result(faultRole, "fault", strings.Join(names, "\n"), t), code)
}
