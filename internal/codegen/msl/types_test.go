package msl

import (
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// TestEveryTypeOfTheDialectHasAName finds a type that the table of support promises and
// that would be printed as nothing.
func TestEveryTypeOfTheDialectHasAName(t *testing.T) {
	for _, d := range dtype.All() {
		if d.On(dtype.MSL) != dtype.Unsupported && typeNames[d] == "" {
			t.Errorf("%s has no name", d)
		}
	}
}
