package coreml

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Sizes is an entry with a model for each of its enumerated sizes, which share states, see
// [Entries]. It is not safe for concurrent use.
type Sizes struct {
	models []*Model
}

// LoadSizes loads all sizes of an entry. The errors are those of [LoadEntries].
func LoadSizes(rt Runtime, dir, entry string, units Units) (*Sizes, error) {
	p, err := mil.Describe(dir)
	if err != nil {
		return nil, err
	}
	return loadSizes(rt, dir, p, entry, units, shared{})
}

// loadSizes is LoadSizes for a decoded package and shared states.
func loadSizes(rt Runtime, dir string, p *Package, entry string, units Units, held shared) (*Sizes, error) {
	s := &Sizes{}
	for _, f := range p.Program.Functions {
		if p.Metadata[f.Name] != entry {
			continue
		}
		m, err := load(rt, dir, p, f, units)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.models = append(s.models, m)
		if err := held.join(m); err != nil {
			return nil, errors.Join(&Error{entry, err}, s.Close())
		}
	}
	if len(s.models) == 0 {
		return nil, &Error{entry, ir.Errorf(ir.ErrName, "unknown entry %q", entry)}
	}
	return s, nil
}

// Models returns the model of each size, in the order of [Options.Shapes]. Closing s closes
// them.
func (s *Sizes) Models() []*Model { return slices.Clone(s.models) }

// Predict runs the model with the sizes of the inputs, like [Model.Predict]. The error for
// other sizes is of kind [ir.ErrShape] and lists the available ones.
func (s *Sizes) Predict(in map[string]native.Tensor) (map[string]native.Tensor, error) {
	for _, m := range s.models {
		if m.takes(in) {
			return m.Predict(in)
		}
	}
	if len(s.models) == 1 {
		return s.models[0].Predict(in) // for a more precise error
	}
	var known []string
	for _, m := range s.models {
		known = append(known, m.inputSizes())
	}
	return nil, s.models[0].failed("", ir.Shapef("no function has the sizes of the inputs: have %s", strings.Join(known, "; ")))
}

// Set sets a state, or a parameter that is one, for all sizes, like [Model.Set].
func (s *Sizes) Set(name string, t native.Tensor) error { return s.models[0].Set(name, t) }

// Get returns the current value of a state, or of a parameter that is one, like
// [Model.Get].
func (s *Sizes) Get(name string) (native.Tensor, error) { return s.models[0].Get(name) }

// takes reports whether the inputs have the sizes of a model. The model reports other
// faults.
func (m *Model) takes(in map[string]native.Tensor) bool {
	return !slices.ContainsFunc(m.inputs, func(f feature) bool {
		t, given := in[f.Name]
		return given && !slices.Equal(t.Dims, f.Dims)
	})
}

// inputSizes formats the sizes of all inputs, as in "x[4,2] y[4]".
func (m *Model) inputSizes() string {
	var out []string
	for _, f := range m.inputs {
		out = append(out, strings.ReplaceAll(fmt.Sprint(f.Name, f.Dims), " ", ","))
	}
	return strings.Join(out, " ")
}

// Close releases the models.
func (s *Sizes) Close() error {
	var errs []error
	for _, m := range s.models {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
