package ops_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func TestLiteralsOfAnotherSizeAreRefusedWithTheirPlace(t *testing.T) {
	for name, a := range map[string]*ir.Array{
		"too few":  ir.Floats(ir.F32, []float64{1, 2, 3}, 2, 2),
		"too many": ir.Ints(ir.I32, []int64{1, 2, 3, 4, 5}, 2, 2),
		"none":     nil,
	} {
		_, err := ir.Build("literal", func(b *ir.Builder) { b.Output("y", ops.Literal(b, a)) })
		var op *ir.OpError
		if !errors.Is(err, ir.ErrShape) || !errors.As(err, &op) || !strings.HasSuffix(op.Pos.File, "literal_test.go") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
