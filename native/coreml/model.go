package coreml

import (
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Model is a function of a package with the names and types of its graph. It is not safe
// for concurrent use.
type Model struct {
	loaded  driver.Loaded
	call    string // for errors
	inputs  []feature
	outputs []feature // including next values of states
	states  []feature // of Core ML, including parameters
	fault   string    // the output of failed checks, or ""
	checks  []string  // the checking nodes
	// shared holds the states shared with other models, or nil; versions holds the versions
	// that this model has.
	shared   shared
	versions map[string]int
}

// Slots returns the inputs and outputs by the names of the graph. The next value of a state that is
// not a state of Core ML is an output "s_next", next to the input "s".
func (m *Model) Slots() []native.Slot {
	var out []native.Slot
	for _, f := range slices.Concat(m.inputs, m.outputs) {
		out = append(out, f.Slot)
	}
	return out
}

// Predict runs the function on all of its inputs and returns its outputs. The error is a
// [*native.Error] of kind [ir.ErrName], [ir.ErrDType] or [ir.ErrShape] for wrong inputs,
// [ir.ErrIndex] for an index out of range, and [native.ErrDevice] for errors of Core ML.
func (m *Model) Predict(in map[string]native.Tensor) (map[string]native.Tensor, error) {
	out := make(map[string]native.Tensor, len(m.outputs))
	for _, f := range m.outputs {
		out[f.Name] = native.Zeros(f.DType, f.Dims...)
	}
	return out, m.PredictTo(in, out)
}

// PredictTo is [Model.Predict] with memory of the caller for the outputs in out. It copies
// nothing if the model and the graph have the same element types. After an error the
// contents of out are undefined.
func (m *Model) PredictTo(in, out map[string]native.Tensor) error {
	given, err := m.given(in)
	if err != nil {
		return err
	}
	for name := range out {
		if m.output(name) == nil {
			return m.failed(name, ir.Errorf(ir.ErrName, "unknown output %q", name))
		}
	}
	room := make(map[string]native.Tensor, len(m.outputs)+1)
	for _, f := range m.outputs {
		t, wanted := out[f.Name]
		if !wanted || t.DType != f.outside.DType {
			room[f.feature] = native.Zeros(f.outside.DType, f.outside.Dims...)
			continue
		}
		if err := f.Accept(t); err != nil {
			return m.failed(f.Name, err)
		}
		room[f.feature] = native.Tensor{DType: t.DType, Dims: f.outside.Dims, Data: t.Data}
	}
	if m.fault != "" {
		room[m.fault] = native.Zeros(ir.I32, 1)
	}
	if err := m.fetchStates(); err != nil {
		return err
	}
	err = m.loaded.Predict(given, room)
	m.ran(err)
	if err != nil {
		return m.failed("", err)
	}
	if err := m.faultIn(room); err != nil {
		return err
	}
	return m.fetch(room, out)
}

// given returns the inputs in the model's types.
func (m *Model) given(in map[string]native.Tensor) (map[string]native.Tensor, error) {
	given := make(map[string]native.Tensor, len(m.inputs))
	for _, f := range m.inputs {
		t, ok := in[f.Name]
		if !ok {
			return nil, m.failed(f.Name, ir.Errorf(ir.ErrName, "input %q is missing", f.Name))
		}
		if err := f.Accept(t); err != nil {
			return nil, m.failed(f.Name, err)
		}
		given[f.feature] = retyped(t, f.outside.DType, f.outside.Dims)
	}
	for name := range in {
		if !slices.ContainsFunc(m.inputs, func(f feature) bool { return f.Name == name }) {
			return nil, m.failed(name, ir.Errorf(ir.ErrName, "unknown input %q", name))
		}
	}
	return given, nil
}

// faultIn returns the error of the first failed check: the model outputs the number of
// checks for the first one, one less for the second, and 0 for none.
func (m *Model) faultIn(room map[string]native.Tensor) error {
	if m.fault == "" {
		return nil
	}
	code, err := room[m.fault].Int32s()
	if err != nil || code[0] == 0 {
		return err
	}
	e := &native.Error{Backend: Name, Call: m.call, Kind: ir.ErrIndex, Err: ir.Errorf(ir.ErrIndex, "an index is out of range")}
	if i := len(m.checks) - int(code[0]); i >= 0 && i < len(m.checks) {
		e.Node = m.checks[i]
	}
	return e
}

// fetch converts the outputs whose types differ.
func (m *Model) fetch(room, out map[string]native.Tensor) error {
	for _, f := range m.outputs {
		t, wanted := out[f.Name]
		if !wanted || t.DType == f.outside.DType {
			continue
		}
		if err := f.Accept(t); err != nil {
			return m.failed(f.Name, err)
		}
		copy(t.Data, retyped(room[f.feature], f.DType, f.Dims).Data)
	}
	return nil
}

// Set sets a state of Core ML, or a parameter that is one ([Options].ParamStates); they are
// zero at first. The error is that of [Model.Predict].
func (m *Model) Set(name string, t native.Tensor) error {
	f, err := m.state(name)
	if err != nil {
		return err
	}
	if err := f.Accept(t); err != nil {
		return m.failed(name, err)
	}
	if err := m.loaded.SetState(f.feature, retyped(t, f.outside.DType, f.outside.Dims)); err != nil {
		return m.failed(name, err)
	}
	m.changed(f)
	return nil
}

// Get returns a state of Core ML, or a parameter that is one, rounded to fp16 as stored.
func (m *Model) Get(name string) (native.Tensor, error) {
	f, err := m.state(name)
	if err != nil {
		return native.Tensor{}, err
	}
	if err := m.fetchState(f); err != nil {
		return native.Tensor{}, err
	}
	t := native.Zeros(f.outside.DType, f.outside.Dims...)
	if err := m.loaded.State(f.feature, t); err != nil {
		return native.Tensor{}, m.failed(name, err)
	}
	return retyped(t, f.DType, f.Dims), nil
}

func (m *Model) state(name string) (feature, error) {
	i := slices.IndexFunc(m.states, func(f feature) bool { return f.Name == name })
	if i < 0 {
		return feature{}, m.failed(name, ir.Errorf(ir.ErrName, "unknown state %q", name))
	}
	return m.states[i], nil
}

// Placements returns the processor of each operation and its share of the time, according
// to Core ML's plan. The error is of kind [native.ErrUnavailable] before macOS 14.4 and iOS
// 17.4.
func (m *Model) Placements() ([]Placement, error) {
	p, err := m.loaded.Plan()
	if err != nil {
		return nil, m.failed("", err)
	}
	return p, nil
}

// Close releases the model.
func (m *Model) Close() error { return m.loaded.Close() }

func (m *Model) failed(name string, err error) error { return fault(m.call, name, err) }

// fault wraps an error in one of the backend.
func fault(call, name string, err error) error {
	var e *native.Error
	if errors.As(err, &e) {
		return e
	}
	return &native.Error{Backend: Name, Call: call, Kind: native.KindOf(err), Name: name, Err: err}
}

// retyped returns a tensor with another element type and shape of equal length; it shares
// the data if the element type stays.
func retyped(t native.Tensor, d ir.DType, dims []int) native.Tensor {
	if dims == nil {
		dims = []int{}
	}
	if t.DType == d {
		return native.Tensor{DType: d, Dims: dims, Data: t.Data}
	}
	a, err := t.Array()
	if err != nil {
		return native.Tensor{}
	}
	b := ir.NewArray(d, dims...)
	for i := range b.Len() {
		if b.F != nil {
			b.F[i] = a.Float(i)
		} else {
			b.I[i] = int64(a.Float(i))
		}
	}
	b.Round()
	return native.FromArray(b)
}
