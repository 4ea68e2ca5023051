package coreml

import (
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Entries are the entries of a package with shared states, for any of their sizes. They are
// not safe for concurrent use.
//
// Core ML has a copy of a state for each loaded function. A state is copied, through the
// host, when another function than the last one uses it.
type Entries struct {
	names []string
	sizes map[string]*Sizes
}

// LoadEntries loads entries of a package, with all of their sizes. The errors are those of
// [Load], and of kind [ir.ErrShape] or [ir.ErrDType] for a state whose types differ.
func LoadEntries(rt Runtime, dir string, units Units, entries ...string) (*Entries, error) {
	p, err := mil.Describe(dir)
	if err != nil {
		return nil, err
	}
	e, held := &Entries{sizes: map[string]*Sizes{}}, shared{}
	for _, name := range entries {
		if e.sizes[name] != nil {
			continue
		}
		s, err := loadSizes(rt, dir, p, name, units, held)
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.names, e.sizes[name] = append(e.names, name), s
	}
	return e, nil
}

// Entry returns one of the entries, with all of its sizes. Closing e closes it. The error
// is an [*Error] of kind [ir.ErrName].
func (e *Entries) Entry(name string) (*Sizes, error) {
	if s := e.sizes[name]; s != nil {
		return s, nil
	}
	return nil, &Error{name, ir.Errorf(ir.ErrName, "unknown entry %q: have %v", name, e.names)}
}

// Close releases the entries.
func (e *Entries) Close() error {
	var errs []error
	for _, name := range e.names {
		errs = append(errs, e.sizes[name].Close())
	}
	return errors.Join(errs...)
}

// shared holds the states that models share, by name.
type shared map[string]*sharedState

// sharedState is a state of several models, each with a copy.
type sharedState struct {
	feature
	last    *Model // the model with the current value
	version int    // number of changes
}

// join makes a model share its states with the models before it.
func (s shared) join(m *Model) error {
	m.shared, m.versions = s, map[string]int{}
	for _, f := range m.states {
		there := s[f.Name]
		switch {
		case there == nil:
			s[f.Name] = &sharedState{feature: f, last: m}
		case there.DType != f.DType || there.outside.DType != f.outside.DType:
			return ir.Errorf(ir.ErrDType, "state %q is %s and %s in two functions; a shared state must have one type", f.Name, f.DType, there.DType)
		case !slices.Equal(there.Dims, f.Dims):
			return ir.Shapef("state %q has the sizes %v and %v in two functions; a shared state must not depend on Shapes", f.Name, f.Dims, there.Dims)
		}
	}
	return nil
}

// fetchState copies a state to the model from the one that changed it last.
func (m *Model) fetchState(f feature) error {
	s := m.shared[f.Name]
	if s == nil || m.versions[f.Name] == s.version {
		return nil
	}
	from, err := s.last.state(f.Name)
	if err != nil {
		return err
	}
	t := native.Zeros(from.outside.DType, from.outside.Dims...)
	if err := s.last.loaded.State(from.feature, t); err != nil {
		return m.failed(f.Name, err)
	}
	if err := m.loaded.SetState(f.feature, retyped(t, f.outside.DType, f.outside.Dims)); err != nil {
		return m.failed(f.Name, err)
	}
	m.versions[f.Name] = s.version
	return nil
}

// fetchStates fetches all states.
func (m *Model) fetchStates() error {
	for _, f := range m.states {
		if err := m.fetchState(f); err != nil {
			return err
		}
	}
	return nil
}

// changed records that the model has the current value of a state.
func (m *Model) changed(f feature) {
	if s := m.shared[f.Name]; s != nil {
		s.version++
		s.last, m.versions[f.Name] = m, s.version
	}
}

// ran records the states that a run may have changed, not parameters. After a failed run,
// the previous values are current if another model has them.
func (m *Model) ran(err error) {
	for _, f := range m.states {
		switch {
		case f.Role != native.State:
		case err == nil:
			m.changed(f)
		case m.shared[f.Name] != nil && m.shared[f.Name].last != m:
			m.versions[f.Name] = unknown
		}
	}
}

// unknown is the version of a state that may be partly written.
const unknown = -1
