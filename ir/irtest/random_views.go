package irtest

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// ints returns the sizes of a shape, which are all constant here.
func ints(v ir.Value) []int {
	dims, _ := v.Shape().Ints()
	return dims
}

func reshape(r *generator) {
	x := r.float()
	dims := ints(x.Value)
	r.Shuffle(len(dims), func(i, j int) { dims[i], dims[j] = dims[j], dims[i] })
	switch {
	case len(dims) > 1 && r.chance(50):
		dims = append([]int{dims[0] * dims[1]}, dims[2:]...)
	case r.chance(50):
		dims = slices.Insert(dims, r.IntN(len(dims)+1), 1)
	}
	r.keep(ops.Reshape(r.b, x.Value, ir.Dims(dims...)...), x.most)
}

func transpose(r *generator) {
	x := r.float()
	if x.Rank() > 0 {
		r.keep(ops.Transpose(r.b, x.Value, r.Perm(x.Rank())...), x.most)
	}
}

func broadcast(r *generator) {
	x := r.float()
	shape := x.Shape().Clone()
	axes := make([]int, len(shape))
	at, n := r.IntN(len(shape)+1), 1+r.IntN(3)
	for i, d := range shape {
		axes[i] = i
		if i >= at {
			axes[i]++
		}
		if d.Is(1) && r.chance(50) {
			shape[i] = ir.N(1 + r.IntN(3))
		}
	}
	shape = slices.Insert(shape, at, ir.N(n))
	if fits(shape) {
		r.keep(ops.BroadcastInDim(r.b, x.Value, shape, axes), x.most)
	}
}

func slice(r *generator) {
	x := r.float()
	dims := ints(x.Value)
	start, size, stride := make([]ir.Dim, len(dims)), make([]ir.Dim, len(dims)), make([]int, len(dims))
	for i, n := range dims {
		first := r.IntN(n/2 + 1)
		stride[i] = 1 + r.IntN(2)
		count := (n - first + stride[i] - 1) / stride[i]
		start[i], size[i] = ir.N(first), ir.N(max(count-r.IntN(2), min(count, 1)))
	}
	r.keep(ops.Slice(r.b, x.Value, start, size, stride), x.most)
}

func pad(r *generator) {
	x := r.float()
	low, high, interior := make([]int, x.Rank()), make([]int, x.Rank()), make([]int, x.Rank())
	shape := x.Shape().Clone()
	for i := range low {
		low[i], high[i] = r.IntN(2), r.IntN(2)
		if r.chance(20) {
			interior[i] = 1
		}
		shape[i] = shape[i].Mul(ir.N(1 + interior[i])).Add(ir.N(low[i] + high[i]))
	}
	if fits(shape) {
		r.keep(ops.Pad(r.b, x.Value, ops.Const(r.b, ir.F32, float64(r.IntN(2))), low, high, interior), x.most+1)
	}
}

func concatenate(r *generator) {
	x := r.float()
	if x.Rank() == 0 || !fits(append(ir.Shape{ir.N(2)}, x.Shape()...)) {
		return
	}
	axis, y := r.IntN(x.Rank()), bounded{r.ofType(x.Value), maxBound}
	if r.chance(30) { // pieces of one value, perhaps in order
		n, _ := x.Dim(axis).Const()
		cut := ir.N(r.IntN(n + 1))
		y = x
		first := ops.SliceAxis(r.b, x.Value, axis, ir.N(0), cut)
		second := ops.SliceAxis(r.b, x.Value, axis, cut, x.Dim(axis).Sub(cut))
		if r.chance(30) {
			first, second = second, first
		}
		r.keep(ops.Concatenate(r.b, axis, first, second), x.most)
		return
	}
	r.keep(ops.Concatenate(r.b, axis, x.Value, y.Value), max(x.most, y.most))
}

func reverse(r *generator) {
	x := r.float()
	if x.Rank() > 0 {
		r.keep(ops.Reverse(r.b, x.Value, r.Perm(x.Rank())[:1]...), x.most)
	}
}
