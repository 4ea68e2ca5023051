package coreml

import (
	"errors"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml/driver"
)

// Model is a function of a package with the names and the types of the graph that it
// was made of. It is for one goroutine.
type Model struct {
	loaded  driver.Loaded
	call    string // for errors
	inputs  []feature
	outputs []feature // and next values of states
	states  []feature // of Core ML, parameters among them
	fault   string    // the output that tells of checks, "" where there are none
	checks  []string  // the names of the nodes that check
	// shared are states that other models have too, nil where none has; versions are those
	// that this one has.
	shared   shared
	versions map[string]int
}

// Slots returns what the function takes and what it gives, by the names of the
// graph. The next value of a state that is not one of Core ML is an output "s_next"
// beside the input "s".
func (m *Model) Slots() []native.Slot {
	var out []native.Slot
	for _, f := range slices.Concat(m.inputs, m.outputs) {
		out = append(out, f.Slot)
	}
	return out
}

// Predict runs the function and returns its outputs. All inputs are needed. The error
// is a [*native.Error] of kind [ir.ErrName], [ir.ErrDType] or [ir.ErrShape] for inputs
// that are missing, unknown or do not fit, of kind [ir.ErrIndex] for an index out of
// range, of kind [native.ErrDevice] for what Core ML reports.
func (m *Model) Predict(in map[string]native.Tensor) (map[string]native.Tensor, error) {
	out := make(map[string]native.Tensor, len(m.outputs))
	for _, f := range m.outputs {
		out[f.Name] = native.Zeros(f.DType, f.Dims...)
	}
	return out, m.PredictTo(in, out)
}

// PredictTo is [Model.Predict] into memory of the caller, for as many outputs as out
// has. Where the model has the element type of the graph nothing is copied on the way.
// What is in out after an error is undefined.
func (m *Model) PredictTo(in, out map[string]native.Tensor) error {
	given, err := m.given(in)
	if err != nil {
		return err
	}
	for name := range out {
		if m.output(name) == nil {
			return m.failed(name, ir.Errorf(ir.ErrName, "there is no output %q", name))
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

// given returns the inputs as the model has them.
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
			return nil, m.failed(name, ir.Errorf(ir.ErrName, "there is no input %q", name))
		}
	}
	return given, nil
}

// faultIn returns the error of the first check that failed: the model gives the number
// of checks for the first one, one less for the second, and 0 where none failed.
func (m *Model) faultIn(room map[string]native.Tensor) error {
	if m.fault == "" {
		return nil
	}
	code, err := room[m.fault].Int32s()
	if err != nil || code[0] == 0 {
		return err
	}
	e := &native.Error{Backend: Name, Call: m.call, Kind: ir.ErrIndex, Err: ir.Errorf(ir.ErrIndex, "an index is outside its range")}
	if i := len(m.checks) - int(code[0]); i >= 0 && i < len(m.checks) {
		e.Node = m.checks[i]
	}
	return e
}

// fetch puts outputs of another type where they belong.
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

// Set gives a state of Core ML, or a parameter that is one ([Options].ParamStates), its
// values; they begin as zeros. The error is that of [Model.Predict].
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

// Get returns the values of a state of Core ML, or of a parameter that is one, as it is
// there: rounded to fp16.
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
		return feature{}, m.failed(name, ir.Errorf(ir.ErrName, "there is no state %q", name))
	}
	return m.states[i], nil
}

// Placements tells on which processor each operation would run and what part of the
// time it would take, by Core ML's own plan. The error is of kind
// [native.ErrUnavailable] before macOS 14.4 and iOS 17.4.
func (m *Model) Placements() ([]driver.Placement, error) {
	p, err := m.loaded.Plan()
	if err != nil {
		return nil, m.failed("", err)
	}
	return p, nil
}

// Close gives back what the model holds.
func (m *Model) Close() error { return m.loaded.Close() }

func (m *Model) failed(name string, err error) error { return fault(m.call, name, err) }

// fault makes an error one of the backend.
func fault(call, name string, err error) error {
	var e *native.Error
	if errors.As(err, &e) {
		return e
	}
	return &native.Error{Backend: Name, Call: call, Kind: native.KindOf(err), Name: name, Err: err}
}

// retyped returns a tensor, whose data fit it, with another element type and other
// sizes of as many elements; its data are shared where the element type stays.
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
