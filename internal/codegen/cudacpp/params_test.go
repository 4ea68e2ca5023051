package cudacpp_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

func TestScalarsAreLaidOutAsTheStruct(t *testing.T) {
	k := &loop.Kernel{Scalars: []dtype.DType{dtype.F32, dtype.F64, dtype.Bool, dtype.Invalid, dtype.I32}}
	scalars := []scalar.Value{{F: 1}, {F: -2}, {I: 1}, {}, {I: -3}}
	want := []byte{
		0, 0, 0x80, 0x3f, 0, 0, 0, 0, // float, and to the next multiple of 8
		0, 0, 0, 0, 0, 0, 0, 0xc0, // double
		1, 0, 0, 0, 0, 0, 0, 0, 0xfd, 0xff, 0xff, 0xff, // bool, unread, int
	}
	if got := cudacpp.Scalars(k, scalars); !slices.Equal(got, want) {
		t.Errorf("% x, not % x", got, want)
	}
}
