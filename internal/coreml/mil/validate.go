package mil

import (
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Validate checks a program against the signatures of its operations: every name is defined once
// and before its uses, arguments fit, and results have the declared types. The error is an
// [*Error].
func Validate(p *Program) error {
	if !p.Opset.Valid() {
		return &Error{Err: ir.Errorf(ir.ErrUnsupported, "unknown opset %s: have CoreML5 to CoreML9", p.Opset)}
	}
	if len(p.Functions) == 0 {
		return &Error{Err: fmt.Errorf("%w: the program has no functions", ErrPackage)}
	}
	if len(p.Functions) > 1 && p.Opset < CoreML8 {
		return &Error{Err: ir.Errorf(ir.ErrUnsupported, "the opset is %s; several functions need CoreML8", p.Opset)}
	}
	for i, f := range p.Functions {
		if p.Function(f.Name) != p.Functions[i] || !IsName(f.Name) {
			return &Error{Err: ir.Errorf(ir.ErrName, "invalid or repeated function name %q", f.Name)}
		}
		if err := f.validate(p.Opset); err != nil {
			return err
		}
	}
	return nil
}

func (f *Function) validate(opset Opset) error {
	values := map[string]Ref{}
	define := func(r Ref) error {
		if _, taken := values[r.Name]; taken || !IsName(r.Name) {
			return ir.Errorf(ir.ErrName, "invalid or repeated name %q", r.Name)
		}
		if slices.ContainsFunc(r.Type.Dims, func(d int) bool { return d < 1 }) {
			return ir.Shapef("%q is %s; Core ML has no empty tensors", r.Name, r.Type)
		}
		values[r.Name] = r
		return nil
	}
	for _, in := range f.Inputs {
		err := define(Ref{Name: in.Name, Type: in.Type, state: in.State})
		if err == nil {
			err = in.check(opset)
		}
		if err != nil {
			return &Error{f.Name, "", err}
		}
	}
	for _, op := range f.Ops {
		r, err := op.check(values, opset)
		if err == nil && op.hasResult() {
			err = define(r)
		}
		if err != nil {
			return &Error{f.Name, op.String(), err}
		}
	}
	return f.checkOutputs(values, opset)
}

// check reports whether Core ML accepts an input of the type.
func (in Input) check(opset Opset) error {
	switch {
	case in.State && opset < CoreML8:
		return ir.Errorf(ir.ErrUnsupported, "the opset is %s; state %q needs CoreML8", opset, in.Name)
	case in.State && in.Type.DType != Float16:
		return ir.Errorf(ir.ErrUnsupported, "state %q is %s; it must be fp16", in.Name, in.Type)
	}
	return checkFeature(in.Name, in.Type, opset)
}

// checkFeature reports whether a model can take or return a value of the type.
func checkFeature(name string, t Type, opset Opset) error {
	switch {
	case arrayTypes[t.DType] == 0:
		return ir.DTypef("%q is %s; a multi-array must be fp32, fp16 or int32", name, t)
	case t.DType == Float16 && opset < CoreML6:
		return ir.Errorf(ir.ErrUnsupported, "the opset is %s; multi-array %q of %s needs CoreML6", opset, name, t)
	case len(t.Dims) < 1 || len(t.Dims) > 5:
		return ir.Shapef("%q is %s; a multi-array must have one to five axes", name, t)
	}
	return nil
}

// check returns the result of an operation.
func (op *Op) check(values map[string]Ref, opset Opset) (Ref, error) {
	if op.Kind == opConst {
		if op.Value == nil || len(op.Inputs) > 0 {
			return Ref{}, fmt.Errorf("%w: a constant needs a value and no arguments", ErrPackage)
		}
		if !op.Value.Type.Equal(op.Type) {
			return Ref{}, ir.Shapef("the value is %s; it is declared as %s", op.Value.Type, op.Type)
		}
		return Ref{Name: op.Name, Type: op.Type, Value: op.Value}, op.Value.check()
	}
	c := &call{kind: op.Kind, opset: opset, in: map[string][]Ref{}}
	for _, a := range op.Inputs {
		for _, name := range a.Values {
			r, ok := values[name]
			if !ok {
				return Ref{}, ir.Errorf(ir.ErrName, "unknown value %q", name)
			}
			c.in[a.Parameter] = append(c.in[a.Parameter], r)
		}
	}
	t, err := c.infer()
	if err == nil && op.hasResult() && !t.Equal(op.Type) {
		err = ir.Shapef("the result is %s; it is declared as %s", t, op.Type)
	}
	return Ref{Name: op.Name, Type: op.Type}, err
}

func (f *Function) checkOutputs(values map[string]Ref, opset Opset) error {
	if len(f.Outputs) == 0 {
		return &Error{f.Name, "", ir.Errorf(ir.ErrGraph, "the function has no output")}
	}
	for i, name := range f.Outputs {
		r, ok := values[name]
		if !ok || r.state || slices.Contains(f.Outputs[:i], name) {
			return &Error{f.Name, "", ir.Errorf(ir.ErrName, "unknown or repeated output %q", name)}
		}
		if err := checkFeature(name, r.Type, opset); err != nil {
			return &Error{f.Name, "", err}
		}
	}
	return nil
}

// fits checks the description of a model against its program.
func (d *decoder) fits() error {
	p := &d.program
	if int(d.version) != p.Opset.Specification() {
		return fmt.Errorf("%w: the model has version %d and the program opset %s", ErrPackage, d.version, p.Opset)
	}
	if len(d.shown) != len(p.Functions) {
		return fmt.Errorf("%w: %d functions described; the program has %d", ErrPackage, len(d.shown), len(p.Functions))
	}
	for _, shown := range d.shown {
		f := p.Functions[0]
		if len(p.Functions) > 1 {
			if f = p.Function(shown.name); f == nil {
				return fmt.Errorf("%w: unknown function %q described", ErrPackage, shown.name)
			}
		}
		if err := shown.fits(f); err != nil {
			return &Error{f.Name, "", err}
		}
	}
	if i := slices.IndexFunc(p.Functions, func(f *Function) bool { return f.Name == d.first }); i > 0 {
		p.Functions[0], p.Functions[i] = p.Functions[i], p.Functions[0]
	}
	return nil
}

// fits checks the description of a function against it.
func (s *shownFunction) fits(f *Function) error {
	var inputs, states, outputs []shownFeature
	show := func(name string, t Type) shownFeature { return shownFeature{name, arrayTypes[t.DType], t.Dims} }
	for _, in := range f.Inputs {
		if in.State {
			states = append(states, show(in.Name, in.Type))
		} else {
			inputs = append(inputs, show(in.Name, in.Type))
		}
	}
	for _, name := range f.Outputs {
		outputs = append(outputs, show(name, f.TypeOf(name)))
	}
	same := func(a, b []shownFeature) bool {
		return slices.EqualFunc(a, b, func(x, y shownFeature) bool {
			return x.name == y.name && x.kind == y.kind && slices.Equal(x.dims, y.dims)
		})
	}
	if !same(s.inputs, inputs) || !same(s.states, states) || !same(s.outputs, outputs) {
		return fmt.Errorf("%w: inputs, states or outputs differ from the description", ErrPackage)
	}
	return nil
}
