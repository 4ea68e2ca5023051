package irtest

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func reduce(r *generator) {
	x := r.float()
	axes := r.someAxes(x.Value)
	n := 1
	for _, a := range axes {
		d, _ := x.Dim(a).Const()
		n *= d
	}
	if n == 0 || axes == nil {
		return // the extremum of nothing is infinite
	}
	switch r.IntN(5) {
	case 0, 1:
		r.keep(ops.ReduceSum(r.b, x.Value, axes...), x.most*float64(n))
	case 2:
		r.keep(ops.ReduceMax(r.b, x.Value, axes...), x.most)
	case 3:
		r.keep(ops.ReduceMin(r.b, x.Value, axes...), x.most)
	case 4:
		r.keep(ops.Mean(r.b, x.Value, axes...), x.most)
	}
}

// normalise is for ops along one axis.
func normalise(r *generator) {
	x := r.float()
	if x.Rank() == 0 {
		return
	}
	axis := r.IntN(x.Rank())
	n, _ := x.Dim(axis).Const()
	switch {
	case n == 0:
	case r.chance(40):
		r.keep(ops.Softmax(r.b, x.Value, axis), 1)
	case r.chance(50):
		r.keep(ops.LogSoftmax(r.b, x.Value, axis), 2*x.most+math.Log(float64(n)))
	case r.chance(30):
		a := ops.CumSumAttrs{Axis: axis, Reverse: r.chance(50)}
		r.keep(ops.LinearRecurrence(r.b, ops.Tanh(r.b, x.Value), x.Value, a), x.most*float64(n))
	default:
		r.keep(ops.CumSum(r.b, x.Value, ops.CumSumAttrs{Axis: axis, Reverse: r.chance(50), Exclusive: r.chance(30)}), x.most*float64(n))
	}
}

// product contracts two values along axes of one size.
func product(r *generator) {
	x, y := r.float(), r.float()
	for _, i := range r.Perm(x.Rank()) {
		for _, j := range r.Perm(y.Rank()) {
			if x.Dim(i) != y.Dim(j) {
				continue
			}
			n, _ := x.Dim(i).Const()
			rest := slices.Concat(slices.Delete(x.Shape().Clone(), i, i+1), slices.Delete(y.Shape().Clone(), j, j+1))
			if fits(rest) {
				a := ops.DotAttrs{LhsContract: []int{i}, RhsContract: []int{j}}
				r.keep(ops.DotGeneral(r.b, x.Value, y.Value, a), x.most*y.most*float64(n))
			}
			return
		}
	}
}

func gather(r *generator) {
	x, i := r.float(), pickOne(r, r.ints)
	if x.Rank() == 0 {
		return
	}
	axis := r.IntN(x.Rank())
	if fits(slices.Concat(slices.Delete(x.Shape().Clone(), axis, axis+1), i.Shape())) {
		outside := pickOne(r, []string{ops.OutsideFill, ops.OutsideClip})
		r.keep(ops.Take(r.b, x.Value, i, axis, outside), x.most)
	}
}

func scatter(r *generator) {
	x, i := r.float(), pickOne(r, r.ints)
	if x.Rank() == 0 {
		return
	}
	shape := slices.Concat(i.Shape(), x.Shape()[1:])
	n, _ := i.Shape().Size().Const()
	if !fits(shape) || n == 0 {
		return
	}
	a := ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}, Outside: ops.OutsideDrop}}
	updates := ops.Convert(r.b, ops.Rem(r.b, r.someIota(shape), ops.Const(r.b, ir.I32, 3)), ir.F32)
	r.keep(ops.ScatterAdd(r.b, x.Value, ops.ExpandDims(r.b, i, -1), updates, a), x.most+2*float64(n))
}
