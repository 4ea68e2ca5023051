package coreml

import (
	"fmt"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml/forms"
	"github.com/rlx-go/rlx/native/coreml/mil"
)

// function is a function under construction.
type function struct {
	*forms.Emitter
	w        *writer
	name     string
	features map[string]bool    // names that are taken
	states   map[string]mil.Ref // by the names of the graph
}

// feature returns a name for a port or an output of the graph, and notes in the
// metadata what it stands for: its role, type and name.
func (f *function) feature(role, name string, t ir.Type) string {
	base := identifier(name)
	feature := base
	for i := 2; f.features[feature]; i++ {
		feature = fmt.Sprintf("%s_%d", base, i)
	}
	f.features[feature] = true
	f.w.pkg.Metadata[f.name+"/"+feature] = strings.Join([]string{role, t.String(), name}, " ")
	return feature
}

// port declares what the graph gets from outside: weights that are stored, a state
// of Core ML, or an input.
func (f *function) port(p ir.Port) (forms.Value, error) {
	if weights, stored := f.w.Weights[p.Name]; stored && p.Kind == ir.ParamPort {
		return f.stored(p, weights)
	}
	t, err := f.Type(p.Value.Type())
	if err != nil {
		return forms.Value{}, p.Value.Node().Fail(err)
	}
	if p.Kind == ir.StatePort && f.w.States {
		if t.DType != mil.Float16 {
			return forms.Value{}, p.Value.Node().Fail(ir.Errorf(ir.ErrUnsupported, "states of Core ML hold fp16, this one is %s; ask for Half, or go without States", t.DType))
		}
		state := f.State(f.feature("state", p.Name, p.Value.Type()), t)
		f.states[p.Name] = state
		return forms.Value{Ref: f.ReadState(state), Dims: t.Dims}, f.Err()
	}
	in := f.Input(f.feature(p.Kind.String(), p.Name, p.Value.Type()), f.outside(p.Value.Type(), t))
	return forms.Value{Ref: f.inside(in, t.DType), Dims: t.Dims}, f.Err()
}

// stored makes a parameter a constant. Bytes are for the ops that unpack them.
func (f *function) stored(p ir.Port, weights native.Tensor) (forms.Value, error) {
	f.w.used[p.Name] = true
	a, err := weights.Array()
	if err == nil && !a.Type().Equal(p.Value.Type()) {
		err = ir.Shapef("weights are %s, the parameter is %s", a.Type(), p.Value.Type())
	}
	if err != nil {
		return forms.Value{}, p.Value.Node().Fail(err)
	}
	if f.Packed[p.Name] != nil {
		return forms.Value{}, nil
	}
	return f.Literal(a), f.Err()
}

// outside returns the type by which a value enters and leaves a model: bools do so
// as int32, and fp16 as fp32 where the graph has it so or the opset knows no other
// way.
func (f *function) outside(t ir.Type, in mil.Type) mil.Type {
	switch {
	case in.DType == mil.Bool:
		in.DType = mil.Int32
	case in.DType == mil.Float16 && (t.DType == ir.F32 || f.Opset() < mil.CoreML6):
		in.DType = mil.Float32
	}
	return in
}

// inside converts an input to the type that is computed with.
func (f *function) inside(in mil.Ref, d mil.DType) mil.Ref {
	if in.Type.DType == d {
		return in
	}
	return f.Op("cast", mil.Args{"x": in, "dtype": d.String()})
}

// outputs adds the nodes of the graph and what it gives.
func (f *function) outputs(g *ir.Graph, ports []forms.Value) {
	names := make([]string, len(g.Outputs()))
	for i, o := range g.Outputs() {
		role, name := "output", o.Name
		if o.State {
			if _, resident := f.states[o.Name]; resident {
				continue
			}
			role, name = "next", o.Name+"_next"
		}
		names[i] = f.feature(role, name, o.Value.Type())
		f.Reserve(names[i])
	}
	values := f.Graph(g, ports)
	for i, o := range g.Outputs() {
		if f.Err() != nil {
			return
		}
		r := f.Whole(values[i])
		if state, resident := f.states[o.Name]; resident && o.State {
			f.WriteState(state, r)
			continue
		}
		f.Output(names[i], f.inside(r, f.outside(o.Value.Type(), r.Type).DType))
	}
}
