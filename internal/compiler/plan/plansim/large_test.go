package plansim_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

const edge = 60000 // its square is more than an i32 counts

// outer returns the square matrix x[i] + 2·x[j].
func outer(b *ir.Builder) ir.Value {
	x := b.Input("x", ir.F32, ir.N(edge))
	rows := ops.BroadcastInDim(b, x, ir.Dims(edge, edge), []int{0})
	columns := ops.BroadcastInDim(b, ops.Add(b, x, x), ir.Dims(edge, edge), []int{1})
	return ops.Add(b, rows, columns)
}

// TestOnlyStoredOrIteratedSizesAreBounded works with a matrix that has more
// elements than can be counted.
func TestOnlyStoredOrIteratedSizesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		make func(b *ir.Builder, m ir.Value) ir.Value
		fits bool
	}{
		"a corner of it": {func(b *ir.Builder, m ir.Value) ir.Value {
			return ops.Slice(b, m, ir.Dims(edge-3, edge-2), ir.Dims(3, 2), nil)
		}, true},
		"its sums along an axis": {func(b *ir.Builder, m ir.Value) ir.Value { return ops.ReduceSum(b, m, 1) }, true},
		"sums of its transpose": {func(b *ir.Builder, m ir.Value) ir.Value {
			return ops.ReduceSum(b, ops.Exp(b, ops.Transpose(b, m, 1, 0)), 0)
		}, true},
		"itself":      {func(_ *ir.Builder, m ir.Value) ir.Value { return m }, false},
		"its softmax": {func(b *ir.Builder, m ir.Value) ir.Value { return ops.Softmax(b, m, 1) }, false},
		"the sum of all": {func(b *ir.Builder, m ir.Value) ir.Value {
			return ops.ReduceSum(b, m)
		}, false},
		"other axes, counted through all": {func(b *ir.Builder, m ir.Value) ir.Value {
			return ops.Slice(b, ops.Reshape(b, m, ir.N(edge/2), ir.N(2*edge)), ir.Dims(0, 0), ir.Dims(3, 2), nil)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := plansim.Open(moduleOf(t, schedtest.Build(t, func(b *ir.Builder) { b.Output("y", c.make(b, outer(b))) })), plan.WebGPU())
			if !c.fits {
				var e *ir.OpError
				if !errors.Is(err, ir.ErrUnsupported) || !errors.As(err, &e) {
					t.Errorf("error %v, want one of kind %q that names a node", err, ir.ErrUnsupported)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if name == "a corner of it" {
				checkCorner(t, s)
			}
		})
	}
}

func checkCorner(t *testing.T, s *plansim.Program) {
	t.Helper()
	x := ir.NewArray(ir.F32, edge)
	for i := range x.F {
		x.F[i] = float64(i)
	}
	out, err := s.Run("run", map[string]*ir.Array{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	for i, y := range out["y"].F {
		if want := float64(edge - 3 + i/2 + 2*(edge-2+i%2)); y != want {
			t.Errorf("element %d is %v, want %v", i, y, want)
		}
	}
}
