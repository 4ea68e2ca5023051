package coreml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml/mil"
)

// Units are the processors that Core ML may use.
type Units int

// The units, as in MLComputeUnits.
const (
	AllUnits Units = iota
	CPUOnly
	CPUAndGPU
	CPUAndNeuralEngine
)

// Runtime loads model packages: Core ML, or what stands in for it in tests.
type Runtime interface {
	// Load makes a function of a package ready to run. Errors are those of the
	// system; the package was validated before.
	Load(dir, function string, units Units) (Loaded, error)
}

// Loaded is a function that is ready to run. It is for one goroutine.
type Loaded interface {
	// Predict runs the function on the values of its inputs, by the names and with
	// the types that the package has, and returns its outputs. States keep their
	// values from run to run; they begin as zeros.
	Predict(in map[string]native.Tensor) (map[string]native.Tensor, error)
	// Close gives back what the function holds.
	Close() error
}

// Model is a function of a package with the names and the types of the graph that it
// was made of. It is for one goroutine.
type Model struct {
	loaded Loaded
	inputs []feature
	others []feature // outputs, and next values of states
}

// feature is an input or an output: what the graph has, and what the model has.
type feature struct {
	native.Slot
	feature string
	outside native.Tensor // its type, without data
}

// Load makes an entry of a package ready to run. Of an entry with several sizes the
// function is named as [New] names it, as in "step_batch4". The error is an [*Error]
// of kind [ir.ErrName] for an entry that is not there, a [*mil.Error] for a package
// that does not hold together, or that of the runtime.
func Load(rt Runtime, dir, entry string, units Units) (*Model, error) {
	p, err := mil.Read(dir)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(p.Program.Functions, func(f *mil.Function) bool {
		return f.Name == entry || p.Metadata[f.Name] == entry
	})
	if at < 0 {
		return nil, &Error{entry, ir.Errorf(ir.ErrName, "the package has no such entry")}
	}
	f := p.Program.Functions[at]
	m := &Model{}
	for _, in := range f.Inputs {
		if in.State {
			continue
		}
		slot, err := featureOf(p, f.Name, in.Name, in.Type)
		if err != nil {
			return nil, &Error{entry, err}
		}
		m.inputs = append(m.inputs, slot)
	}
	for _, name := range f.Outputs {
		slot, err := featureOf(p, f.Name, name, f.TypeOf(name))
		if err != nil {
			return nil, &Error{entry, err}
		}
		m.others = append(m.others, slot)
	}
	m.loaded, err = rt.Load(dir, f.Name, units)
	return m, err
}

// roles are the words of the metadata.
var roles = map[string]native.Role{"input": native.Input, "param": native.Param, "state": native.State, "output": native.Output, "next": native.Output}

// outsideTypes are the element types of multi-arrays.
var outsideTypes = map[mil.DType]ir.DType{mil.Float32: ir.F32, mil.Float16: ir.F16, mil.Int32: ir.I32}

// featureOf reads what the metadata say of an input or an output: "input
// f32[4,2] x".
func featureOf(p *mil.Package, function, name string, t mil.Type) (feature, error) {
	words := strings.SplitN(p.Metadata[function+"/"+name], " ", 3)
	if len(words) != 3 {
		return feature{}, fmt.Errorf("%w: nothing tells what %q stands for", mil.ErrPackage, name)
	}
	element, rest, _ := strings.Cut(words[1], "[")
	d, err := dtype.Parse(element)
	role, known := roles[words[0]]
	if err != nil || !known {
		return feature{}, fmt.Errorf("%w: %q stands for %q", mil.ErrPackage, name, words)
	}
	var dims []int
	for size := range strings.SplitSeq(strings.TrimSuffix(rest, "]"), ",") {
		n := 0
		if _, err := fmt.Sscan(size, &n); err == nil {
			dims = append(dims, n)
		}
	}
	return feature{
		native.Slot{Name: words[2], Role: role, DType: d, Dims: dims},
		name,
		native.Tensor{DType: outsideTypes[t.DType], Dims: t.Dims},
	}, nil
}

// Slots returns what the function takes and what it gives, by the names of the
// graph. The next value of a state that is not one of Core ML is an output "s_next"
// beside the input "s".
func (m *Model) Slots() []native.Slot {
	var out []native.Slot
	for _, f := range slices.Concat(m.inputs, m.others) {
		out = append(out, f.Slot)
	}
	return out
}

// Predict runs the function. All inputs are needed. The error is a [*native.Error] of
// kind [ir.ErrName], [ir.ErrDType] or [ir.ErrShape] for inputs that are missing,
// unknown or do not fit, of kind [native.ErrDevice] for what Core ML reports.
func (m *Model) Predict(in map[string]native.Tensor) (map[string]native.Tensor, error) {
	given := map[string]native.Tensor{}
	for _, f := range m.inputs {
		t, ok := in[f.Name]
		if !ok {
			return nil, fault(ir.ErrName, f.Name, ir.Errorf(ir.ErrName, "input %q is missing", f.Name))
		}
		if err := f.Accept(t); err != nil {
			return nil, fault(native.KindOf(err), f.Name, err)
		}
		converted, err := retyped(t, f.outside.DType, f.outside.Dims)
		if err != nil {
			return nil, fault(ir.ErrDType, f.Name, err)
		}
		given[f.feature] = converted
	}
	for name := range in {
		if !slices.ContainsFunc(m.inputs, func(f feature) bool { return f.Name == name }) {
			return nil, fault(ir.ErrName, name, ir.Errorf(ir.ErrName, "there is no input %q", name))
		}
	}
	got, err := m.loaded.Predict(given)
	if err != nil {
		return nil, fault(native.ErrDevice, "", err)
	}
	out := map[string]native.Tensor{}
	for _, f := range m.others {
		t, err := retyped(got[f.feature], f.DType, f.Dims)
		if err != nil {
			return nil, fault(native.ErrDevice, f.Name, err)
		}
		out[f.Name] = t
	}
	return out, nil
}

// Close gives back what the model holds.
func (m *Model) Close() error { return m.loaded.Close() }

func fault(kind error, name string, err error) error {
	return &native.Error{Backend: Name, Call: "predict", Kind: kind, Name: name, Err: err}
}

// retyped returns a tensor with another element type and other sizes of as many
// elements; its data are shared where the element type stays.
func retyped(t native.Tensor, d ir.DType, dims []int) (native.Tensor, error) {
	if dims == nil {
		dims = []int{}
	}
	if t.DType == d {
		return native.Tensor{DType: d, Dims: dims, Data: t.Data}, nil
	}
	a, err := t.Array()
	if err != nil {
		return native.Tensor{}, err
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
	return native.FromArray(b), nil
}
