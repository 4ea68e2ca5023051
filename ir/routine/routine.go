// Package routine describes what a library of a device may compute in the place
// of kernels: which numbers make it out, what memory it reads and writes, and its
// plain meaning, by which a plan that calls it runs where that library is not.
package routine

import "github.com/rlx-go/rlx/internal/format"

// Routine is something that a library computes. Routines are comparable, and equal
// ones compute the same.
type Routine interface {
	// Name is the name of its kind, [a-z0-9_]+: "product".
	Name() string
	// Words are the numbers, none of them negative, that [Of] makes it of again.
	Words() []int
	// Arrays are what it is called with, in order.
	Arrays() []Array
	// Reference computes it on host memory: the contents of its arrays, as a
	// little-endian device has them. It writes to those that are Written.
	Reference(memory [][]byte)
}

// Array is a piece of memory that a routine is called with. One that is written
// overlaps no other.
type Array struct {
	Bytes   int
	Written bool
}

// kinds make routines of their words, by name.
var kinds = map[string]func(words []int) (Routine, error){"product": productOf}

// Of returns the routine with a name and words. The error says what is wrong with
// them; whatever they are, the arrays of what it returns have sizes that can be
// added up.
func Of(name string, words []int) (Routine, error) {
	kind, ok := kinds[name]
	if !ok {
		return nil, format.Errorf("there is no routine %q", name)
	}
	return kind(words)
}
