package functiontest

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
)

// Refusal is a call that a function refuses.
type Refusal struct {
	Name  string
	Build func(b *ir.Builder)
	Kind  error
	Text  string // a part of the message
}

// Refuse checks that calls fail with errors of their kinds and texts.
func Refuse(t *testing.T, refusals []Refusal) {
	t.Helper()
	for _, r := range refusals {
		_, err := ir.Build("refused", r.Build)
		var op *ir.OpError
		if !errors.Is(err, r.Kind) || !errors.As(err, &op) || !strings.Contains(err.Error(), r.Text) {
			t.Errorf("%s: the error is %v, not of kind %v with %q", r.Name, err, r.Kind, r.Text)
		}
	}
}

// Keep checks that functions of values of narrow floats return values of their type.
func Keep(t *testing.T, functions map[string]func(b *ir.Builder, x ir.Value) ir.Value, dims ...int) {
	t.Helper()
	for name, f := range functions {
		for _, d := range []ir.DType{ir.F16, ir.BF16, ir.F64} {
			_, err := ir.Build("typed", func(b *ir.Builder) {
				if y := f(b, b.Input("x", d, ir.Dims(dims...)...)); b.Err() == nil && y.DType() != d {
					t.Errorf("%s of %s is %s", name, d, y.DType())
				}
			})
			if err != nil && !strings.Contains(err.Error(), "no outputs") {
				t.Errorf("%s of %s: %v", name, d, err)
			}
		}
	}
}
