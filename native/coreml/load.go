package coreml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/native"
)

// feature is an input or an output, as seen by the graph and by the model.
type feature struct {
	native.Slot
	feature string
	outside native.Tensor // type only
	next    string        // the state whose next value it is, or ""
}

// The roles of features in the metadata of a package. nextRole is the next value of a state
// that is an input; faultRole is 0 or encodes the failed check of indices.
const (
	outputRole = "output"
	nextRole   = "next"
	faultRole  = "fault"
)

// roles maps roles to those of slots.
var roles = map[string]native.Role{
	ir.InputPort.String(): native.Input, ir.ParamPort.String(): native.Param, ir.StatePort.String(): native.State,
	outputRole: native.Output, nextRole: native.Output, faultRole: native.Output,
}

// outsideTypes maps the element types of multi-arrays.
var outsideTypes = map[mil.DType]ir.DType{mil.Float32: ir.F32, mil.Float16: ir.F16, mil.Int32: ir.I32}

// Load loads an entry of a package. An entry with several sizes is loaded by the name of a
// function, as given by [New], such as "step_batch4"; [LoadSizes] loads all of them. The
// model has states of its own; [LoadEntries] shares them. The error is an [*Error] of kind
// [ir.ErrName] for an unknown entry or one with several sizes, a [*PackageError] for an
// inconsistent package, or that of the runtime.
func Load(rt Runtime, dir, entry string, units Units) (*Model, error) {
	p, err := mil.Describe(dir)
	if err != nil {
		return nil, err
	}
	f, err := functionOf(p, entry)
	if err != nil {
		return nil, err
	}
	return load(rt, dir, p, f, units)
}

// load loads a function of a package.
func load(rt Runtime, dir string, p *Package, f *mil.Function, units Units) (m *Model, err error) {
	m = &Model{call: "predict"}
	if err := m.describe(p, f); err != nil {
		return nil, &Error{p.Metadata[f.Name], err}
	}
	m.loaded, err = rt.Load(dir, f.Name, units)
	return m, err
}

// functionOf returns a function by its name, or by the name of an entry with only one.
func functionOf(p *Package, entry string) (*mil.Function, error) {
	var named, of []string
	for _, f := range p.Program.Functions {
		if f.Name == entry {
			return f, nil
		}
		named = append(named, f.Name)
		if p.Metadata[f.Name] == entry {
			of = append(of, f.Name)
		}
	}
	switch len(of) {
	case 0:
		return nil, &Error{entry, ir.Errorf(ir.ErrName, "unknown entry %q: have %v", entry, named)}
	case 1:
		return p.Program.Function(of[0]), nil
	}
	return nil, &Error{entry, ir.Errorf(ir.ErrName, "the entry has several sizes: load one of %v", of)}
}

// describe parses the metadata of the inputs and outputs of a function.
func (m *Model) describe(p *Package, f *mil.Function) error {
	for _, in := range f.Inputs {
		d, _, err := featureOf(p, f.Name, in.Name, in.Type)
		if err != nil {
			return err
		}
		if in.State {
			m.states = append(m.states, d)
		} else {
			m.inputs = append(m.inputs, d)
		}
	}
	for _, name := range f.Outputs {
		d, role, err := featureOf(p, f.Name, name, f.TypeOf(name))
		switch {
		case err != nil:
			return err
		case role == faultRole:
			m.fault, m.checks = name, strings.Split(d.Name, "\n")
			continue
		case role == nextRole:
			d.next = d.Name
		}
		m.outputs = append(m.outputs, d)
	}
	for i := range m.outputs {
		if d := &m.outputs[i]; d.next != "" {
			for d.Name += "_next"; m.output(d.Name) != d; d.Name += "_" {
			}
		}
	}
	return nil
}

// output returns the first output with a name, or nil.
func (m *Model) output(name string) *feature {
	i := slices.IndexFunc(m.outputs, func(f feature) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &m.outputs[i]
}

// featureOf parses the metadata of an input or an output, such as "input f32[4,2] x", with
// an optional second line for the range of its indices, such as "0 10".
func featureOf(p *Package, function, name string, t mil.Type) (f feature, role string, err error) {
	key := featureKey(function, name)
	words := strings.SplitN(p.Metadata[key], " ", 3)
	if len(words) != 3 {
		return f, "", fmt.Errorf("%w: feature %q has no metadata", ErrPackage, name)
	}
	element, rest, _ := strings.Cut(words[1], "[")
	d, err := dtype.Parse(element)
	slotRole, known := roles[words[0]]
	if err != nil || !known {
		return f, "", fmt.Errorf("%w: feature %q has the invalid metadata %q", ErrPackage, name, words)
	}
	f = feature{
		Slot:    native.Slot{Name: words[2], Role: slotRole, DType: d},
		feature: name,
		outside: native.Tensor{DType: outsideTypes[t.DType], Dims: t.Dims},
	}
	for size := range strings.SplitSeq(strings.TrimSuffix(rest, "]"), ",") {
		n := 0
		if _, err := fmt.Sscan(size, &n); err == nil {
			f.Dims = append(f.Dims, n)
		}
	}
	if bounds, checked := p.Metadata[rangeKey(key)]; checked {
		if _, err := fmt.Sscan(bounds, &f.Lo, &f.Hi); err != nil {
			return f, "", fmt.Errorf("%w: feature %q has the invalid index range %q", ErrPackage, name, bounds)
		}
		f.Checked = true
	}
	return f, words[0], nil
}

// featureKey is the metadata key of a feature.
func featureKey(function, feature string) string { return function + "/" + feature }

// rangeKey is the metadata key of the range of its indices.
func rangeKey(feature string) string { return feature + "/range" }
