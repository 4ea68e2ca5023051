// Package routine describes operations that a device library can compute instead of kernels.
//
// It is next to package loop: the compiler makes a [Routine] where a library is expected to be
// faster than a kernel, and a plan stores it as a name and words. An executor calls the library or,
// without one, the reference implementation. Start reading at routine.go.
package routine

import "github.com/rlx-go/rlx/internal/format"

// Routine is an operation of a library. Routines are comparable, and equal ones compute the
// same.
type Routine interface {
	// Name returns the name of its kind, [a-z0-9_]+: "product".
	Name() string
	// Words returns its encoding as non-negative numbers, the input of [Of].
	Words() []int
	// Arrays returns its operands in order.
	Arrays() []Array
	// Reference is the reference implementation on host memory: the contents of the arrays
	// in little-endian order. It writes the arrays that are Written.
	Reference(memory [][]byte)
}

// Array is an operand of a routine. A written one overlaps no other.
type Array struct {
	Bytes   int
	Written bool
}

// Of decodes the routine with a name and words, the inverse of Name and Words. The sizes of
// its arrays can be added without overflow.
func Of(name string, words []int) (Routine, error) {
	kind, ok := kinds[name]
	if !ok {
		return nil, format.Errorf("unknown routine %q", name)
	}
	return kind(words)
}
