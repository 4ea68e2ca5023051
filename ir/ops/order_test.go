package ops_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestSortsScattersAndScans holds references against numbers that
// are worked out by hand.
func TestSortsScattersAndScans(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	row := func(x ...float64) *ir.Array { return ir.Floats(ir.F64, x, len(x)) }
	places := func(x ...int64) *ir.Array { return ir.Ints(ir.I32, x, len(x), 1) }
	rows := ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}}
	scattered := func(op func(b *ir.Builder, x, i, u ir.Value, a ops.ScatterAttrs) ir.Value) func(b *ir.Builder, in values) ir.Value {
		return func(b *ir.Builder, in values) ir.Value { return op(b, in[0], in[1], in[2], rows) }
	}
	for name, c := range map[string]struct {
		in    []*ir.Array
		build func(b *ir.Builder, in values) ir.Value
		want  []float64
	}{
		"sort": {
			[]*ir.Array{row(3, nan, -inf, 1, -2)},
			func(b *ir.Builder, in values) ir.Value { return ops.Sort(b, ops.SortAttrs{}, in[0])[0] },
			[]float64{-inf, -2, 1, 3, nan},
		},
		"sort, largest first": {
			[]*ir.Array{row(3, nan, -inf, 1, -2)},
			func(b *ir.Builder, in values) ir.Value {
				return ops.Sort(b, ops.SortAttrs{Descending: true}, in[0])[0]
			},
			[]float64{nan, 3, 1, -2, -inf},
		},
		"payload of ties": {
			[]*ir.Array{row(1, 0, 1, math.Copysign(0, -1), 1), row(10, 20, 30, 40, 50)},
			func(b *ir.Builder, in values) ir.Value {
				return ops.Sort(b, ops.SortAttrs{Descending: true}, in[0], in[1])[1]
			},
			[]float64{10, 30, 50, 20, 40},
		},
		"places of the two smallest": {
			[]*ir.Array{row(5, -1, 7, -1)},
			func(b *ir.Builder, in values) ir.Value {
				_, at := ops.TopK(b, in[0], ops.TopKAttrs{K: 2, Smallest: true})
				return ops.Convert(b, at, ir.F64)
			},
			[]float64{1, 3},
		},
		"scatter":     {[]*ir.Array{row(1, 2, 3), places(2, 0, 2, 9), row(10, 20, 30, 40)}, scattered(ops.Scatter), []float64{20, 2, 30}},
		"scatter_add": {[]*ir.Array{row(1, 2, 3), places(2, 0, 2, -1), row(10, 20, 30, 40)}, scattered(ops.ScatterAdd), []float64{21, 2, 43}},
		"scatter_mul": {[]*ir.Array{row(1, 2, 3), places(2, 0, 2, 3), row(10, 20, 30, 40)}, scattered(ops.ScatterMul), []float64{20, 2, 900}},
		"scatter_min": {[]*ir.Array{row(1, 2, 3), places(2, 0, 2), row(-1, 20, 30)}, scattered(ops.ScatterMin), []float64{1, 2, -1}},
		"scatter_max": {[]*ir.Array{row(1, 2, 3), places(2, 0, 1), row(-1, 20, nan)}, scattered(ops.ScatterMax), []float64{20, nan, 3}},
		"cumprod": {
			[]*ir.Array{row(2, 3, -4)},
			func(b *ir.Builder, in values) ir.Value {
				return ops.CumProd(b, in[0], ops.CumSumAttrs{Exclusive: true})
			},
			[]float64{1, 2, 6},
		},
		"cummax": {
			[]*ir.Array{row(2, 3, -4, 5)},
			func(b *ir.Builder, in values) ir.Value { return ops.CumMax(b, in[0], ops.CumSumAttrs{}) },
			[]float64{2, 3, 3, 5},
		},
		"cummin from the end": {
			[]*ir.Array{row(2, 3, -4, 5)},
			func(b *ir.Builder, in values) ir.Value { return ops.CumMin(b, in[0], ops.CumSumAttrs{Reverse: true}) },
			[]float64{-4, -4, -4, 5},
		},
		"cumlogsumexp": {
			[]*ir.Array{row(-inf, math.Log(2), math.Log(3), 1000)},
			func(b *ir.Builder, in values) ir.Value { return ops.CumLogSumExp(b, in[0], ops.CumSumAttrs{}) },
			[]float64{-inf, math.Log(2), math.Log(5), 1000},
		},
		"recurrence": {
			[]*ir.Array{row(7, 2, 3), row(1, 10, 100)},
			func(b *ir.Builder, in values) ir.Value {
				return ops.LinearRecurrence(b, in[0], in[1], ops.CumSumAttrs{})
			},
			[]float64{1, 12, 136},
		},
		"Fibonacci's numbers": {
			[]*ir.Array{row(1, 1, 1, 1, 1), row(0, 0, 0, 0, 0), row(1, 0, 0, 0, 0)},
			func(b *ir.Builder, in values) ir.Value {
				one, zero := in[0], in[1]
				return ops.LinearRecurrences(b, []ir.Value{one, one, one, zero}, []ir.Value{in[2], zero}, ops.CumSumAttrs{})[0]
			},
			[]float64{1, 1, 2, 3, 5},
		},
		"composed maps": { // x → b − x, one after the other
			[]*ir.Array{row(-1, -1, -1), row(5, 2, 1)},
			func(b *ir.Builder, in values) ir.Value {
				return ops.AssociativeScan(b, ops.AssociativeAttrs{}, in, func(b *ir.Builder, x, y []ir.Value) []ir.Value {
					return []ir.Value{ops.Mul(b, x[0], y[0]), ops.Add(b, ops.Mul(b, y[0], x[1]), y[1])}
				})[1]
			},
			[]float64{5, -3, 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := must(ir.Build("g", func(b *ir.Builder) {
				var in values
				for i, a := range c.in {
					in = append(in, b.Port(ir.InputPort, string(rune('a'+i)), a.Type()))
				}
				b.Output("y", c.build(b, in))
			}))(t)
			got := runHeld(t, g, c.in)[0]
			for i, want := range c.want {
				if x := got.F[i]; math.Abs(x-want) > 1e-12 || math.IsNaN(x) != math.IsNaN(want) || math.IsInf(want, 0) && x != want {
					t.Errorf("element %d is %v, want %v", i, x, want)
				}
			}
		})
	}
}
