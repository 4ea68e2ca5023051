package ops_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestSumAllIsTheSumOfCounts adds up 0, 1, … n-1 of several shapes: n·(n-1)/2 each.
func TestSumAllIsTheSumOfCounts(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		var in []ir.Value
		for _, shape := range []ir.Shape{ir.Dims(10), ir.Dims(3, 4), {}, ir.Dims(0), ir.Dims(2, 3, 5)} {
			size, _ := shape.Size().Const()
			in = append(in, ops.Reshape(b, ops.Iota(b, ir.F32, 0, ir.N(size)), shape...))
		}
		b.Output("sum", ops.SumAll(b, in...))
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := evalHeld(g, nil, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := 45.0 + 66 + 0 + 0 + 435; out[0].F[0] != want {
		t.Errorf("sum %v, want %v", out[0].F[0], want)
	}
}

func TestSumAllRefusesInvalidOperands(t *testing.T) {
	for name, c := range map[string]struct {
		in   []ir.DType
		want error
	}{
		"nothing":       {nil, ir.ErrShape},
		"integers":      {[]ir.DType{ir.I32}, ir.ErrDType},
		"several types": {[]ir.DType{ir.F32, ir.F16}, ir.ErrDType},
	} {
		_, err := ir.Build("g", func(b *ir.Builder) {
			var in []ir.Value
			for i, d := range c.in {
				in = append(in, b.Input(string(rune('a'+i)), d, ir.N(3)))
			}
			b.Output("sum", ops.SumAll(b, in...))
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want one of kind %q", name, err, c.want)
		}
	}
}
