package cudacpp

import (
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// TestEveryTypeOfTheDialectHasNames finds a type that the table of support promises and
// that would be printed as nothing.
func TestEveryTypeOfTheDialectHasNames(t *testing.T) {
	for _, d := range dtype.All() {
		if d.On(dtype.CUDA) != dtype.Unsupported && (typeNames[d] == "" || vectorNames[d] == "") {
			t.Errorf("%s is %q, and %q in vectors", d, typeNames[d], vectorNames[d])
		}
	}
}
