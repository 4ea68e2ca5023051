package irtest

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	steps = append(steps, pool, convolve, attend, norm, randomly)
}

// image returns a float value as images with one channel, false where it has
// too few axes.
func (r *generator) image() (bounded, bool) {
	x := r.float()
	s := x.Shape()
	switch {
	case x.Rank() == 2:
		return bounded{ops.Reshape(r.b, x.Value, ir.N(1), s[0], s[1], ir.N(1)), x.most}, true
	case x.Rank() == 3:
		return bounded{ops.Reshape(r.b, x.Value, s[0], s[1], s[2], ir.N(1)), x.most}, true
	case x.Rank() == 4:
		return x, true
	}
	return x, false
}

// window draws the sizes of a window that fits into an image.
func (r *generator) window(x ir.Value) []int {
	sizes := make([]int, 2)
	for i := range sizes {
		n, _ := x.Dim(i + 1).Const()
		sizes[i] = 1 + r.IntN(max(1, min(n, 3)))
	}
	return sizes
}

func pool(r *generator) {
	x, ok := r.image()
	if !ok || x.Shape().Size().Is(0) {
		return
	}
	a := ops.PoolAttrs{Sizes: r.window(x.Value)}
	if r.chance(50) {
		a.Strides = []int{1, 1}
		a.PadLo, a.PadHi = ops.SamePadding(a.Sizes, nil)
	}
	if r.chance(50) {
		r.keep(ops.MaxPool(r.b, x.Value, a), x.most)
		return
	}
	r.keep(ops.AvgPool(r.b, x.Value, ops.AvgPoolAttrs{PoolAttrs: a, CountIncludePad: r.chance(50)}), x.most)
}

func convolve(r *generator) {
	x, ok := r.image()
	if !ok || x.Shape().Size().Is(0) {
		return
	}
	window := r.window(x.Value)
	channels, _ := x.Dim(-1).Const()
	w := ir.NewArray(ir.F32, window[0], window[1], channels, 1+r.IntN(3))
	for i := range w.F {
		w.F[i] = ir.F32.Round(r.Float64() - 0.5)
	}
	a := ops.Conv2DAttrs{Strides: []int{1 + r.IntN(2), 1 + r.IntN(2)}}
	if r.chance(50) {
		a.PadLo, a.PadHi = ops.SamePadding(window, nil)
	}
	y := ops.Conv2D(r.b, x.Value, ops.Literal(r.b, w), ir.Value{}, a)
	r.keep(y, x.most*float64(window[0]*window[1]*channels)/2)
}

// attend lets the rows of a value attend to each other. Scores are kept small,
// as the exponential makes more of their rounding.
func attend(r *generator) {
	x := r.float()
	if x.Rank() < 2 || x.Shape().Size().Is(0) {
		return
	}
	if scores := append(x.Shape()[:x.Rank()-1:x.Rank()-1], x.Dim(-2)); !fits(scores) {
		return
	}
	q := ops.Tanh(r.b, x.Value)
	r.keep(ops.Attention(r.b, q, q, x.Value, ir.Value{}, ops.AttentionAttrs{Causal: r.chance(50)}), x.most)
}

// norm keeps away from the variance of equal elements, which is mostly
// rounding.
func norm(r *generator) {
	x := r.float()
	if x.Rank() == 0 || x.Shape().Size().Is(0) {
		return
	}
	n, _ := x.Dim(-1).Const()
	r.keep(ops.LayerNorm(r.b, x.Value, ops.Ones(r.b, ir.F32, x.Dim(-1)), ir.Value{}, 0.1), math.Sqrt(float64(n)))
}

func randomly(r *generator) {
	x := r.float()
	key := ops.Key(r.b, uint64(r.IntN(1000)))
	if r.chance(50) {
		r.keep(ops.Dropout(r.b, x.Value, key, 0.25), 2*x.most)
		return
	}
	r.keep(ops.Mul(r.b, x.Value, ops.Uniform(r.b, key, ir.F32, x.Shape()...)), x.most)
}
