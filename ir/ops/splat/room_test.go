package splat

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestNumbersOfPairsThatWrapAreAnError adds up counts whose sum is 0 in 32 bits.
func TestNumbersOfPairsThatWrapAreAnError(t *testing.T) {
	g, err := ir.Build("pairs", func(b *ir.Builder) {
		b.Output("n", checked(b, ops.Const(b, ir.I32, 1<<30, ir.N(4)), 5))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ir.Eval(g, nil, ir.EvalOptions{}); !errors.Is(err, ir.ErrIndex) {
		t.Errorf("error %v, want one of kind %v", err, ir.ErrIndex)
	}
}
