package routine

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Refusals is an immutable set of routines that a library has no algorithm for. Nil is the
// empty set.
type Refusals struct{ routines map[Routine]bool }

// Has reports whether the set contains a routine.
func (r *Refusals) Has(x Routine) bool { return r != nil && r.routines[x] }

// With returns the set with more routines.
func (r *Refusals) With(more ...Routine) *Refusals {
	out := &Refusals{map[Routine]bool{}}
	if r != nil {
		maps.Copy(out.routines, r.routines)
	}
	for _, x := range more {
		out.routines[x] = true
	}
	return out
}

// String returns a canonical text, equal exactly for equal sets.
func (r *Refusals) String() string {
	if r == nil {
		return "none"
	}
	var out []string
	for p := range r.routines {
		var words []string
		for _, w := range p.Words() {
			words = append(words, strconv.Itoa(w))
		}
		out = append(out, strings.Join(words, ","))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
