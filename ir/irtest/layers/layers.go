// Package layers has training steps of single layers, in shapes and layouts that models have, for benchmarks that look for
// slow kernels: reductions over every set of axes, products, convolutions of pixels and of planes, pools, resized images,
// attention, reads by indices and recurrences. Read layers.go first.
package layers

import (
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Layer is a layer with its operands.
type Layer struct {
	// Name has the layer and its sizes.
	Name string
	// Below is the bound of the integers that the layer takes.
	Below int
	build func(b *ir.Builder) ir.Value
}

// Loss is the mean of the squares of the layer's result. The error is that of the layer's ops.
func (l Layer) Loss() (*ir.Graph, error) {
	return ir.Build("layer", func(b *ir.Builder) { b.Output("loss", ops.Mean(b, ops.Square(b, l.build(b)))) })
}

// Step is a training step of the layer alone by SGD: its float operands are parameters. The error is that of the layer's ops.
func (l Layer) Step() (*ir.Graph, error) {
	g, err := l.Loss()
	if err != nil {
		return nil, err
	}
	return optim.Step(g, "loss", optim.SGD{}, optim.Options{Schedule: optim.Constant(1e-3), ConstantKeys: true})
}

// All returns all layers, by kind.
func All() []Layer {
	return slices.Concat(
		reductions(), moves(), products(), pointwise(), convolutions(), generalConvolutions(), windows(), norms(), batchNorms(),
		attentions(), attentionVariants(), indexed(), aggregations(), recurrences(), scans(), costs(), matrices(), spectra())
}

// of is a layer without integers.
func of(name string, build func(b *ir.Builder) ir.Value) Layer { return Layer{name, 1, build} }

// floats is a parameter, and ints an input.
func floats(b *ir.Builder, name string, dims ...int) ir.Value {
	return b.Param(name, ir.F32, ir.Dims(dims...)...)
}

func ints(b *ir.Builder, name string, dims ...int) ir.Value {
	return b.Input(name, ir.I32, ir.Dims(dims...)...)
}

// shapes are those that axes are chosen of.
var shapes = [][]int{{64, 32, 56, 56}, {8, 12, 300, 300}, {4096, 1000}, {7, 50, 80, 200}, {16, 3, 512, 512}, {2000, 5, 7, 100}}

// reductions reduces every shape over every set of its axes, by one of three reductions.
func reductions() (out []Layer) {
	for _, s := range shapes {
		for set := 1; set < 1<<len(s); set++ {
			var axes []int
			for i := range s {
				if set>>i&1 == 1 {
					axes = append(axes, i)
				}
			}
			name := fmt.Sprint(s, " over ", axes)
			switch set % 3 {
			case 0:
				out = append(out, of("standardize "+name, func(b *ir.Builder) ir.Value { return ops.Standardize(b, floats(b, "x", s...), 1e-5, axes...) }))
			case 1:
				out = append(out, of("max "+name, func(b *ir.Builder) ir.Value { return ops.ReduceMax(b, floats(b, "x", s...), axes...) }))
			default:
				out = append(out, of("norm "+name, func(b *ir.Builder) ir.Value { return ops.Norm(b, floats(b, "x", s...), 2, axes...) }))
			}
		}
	}
	return out
}

// moves are layers along each axis of every shape, and transposes.
func moves() (out []Layer) {
	along := []struct {
		name string
		f    func(b *ir.Builder, x ir.Value, axis int) ir.Value
	}{
		{"softmax", ops.Softmax},
		{"sum so far", func(b *ir.Builder, x ir.Value, axis int) ir.Value {
			return ops.CumSum(b, x, ops.CumSumAttrs{Axis: axis})
		}},
		{"maximum so far", func(b *ir.Builder, x ir.Value, axis int) ir.Value {
			return ops.CumMax(b, x, ops.CumSumAttrs{Axis: axis})
		}},
		{"sort", func(b *ir.Builder, x ir.Value, axis int) ir.Value {
			return ops.Sort(b, ops.SortAttrs{Axis: axis}, x)[0]
		}},
		{"roll", func(b *ir.Builder, x ir.Value, axis int) ir.Value { return ops.Mul(b, x, ops.Roll(b, x, axis, 1)) }},
		{"concatenate", func(b *ir.Builder, x ir.Value, axis int) ir.Value {
			return ops.Concatenate(b, axis, x, ops.Reverse(b, x, axis), ops.Relu(b, x))
		}},
	}
	for _, s := range shapes {
		for axis := range s {
			for _, l := range along {
				out = append(out, of(fmt.Sprint(l.name, " ", s, " along ", axis), func(b *ir.Builder) ir.Value { return l.f(b, floats(b, "x", s...), axis) }))
			}
		}
		for _, order := range [][]int{{0, 2, 3, 1}, {0, 2, 1, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}} {
			if len(s) == len(order) {
				out = append(out, of(fmt.Sprint("transpose ", s, " to ", order), func(b *ir.Builder) ir.Value {
					x := floats(b, "x", s...)
					return ops.Mul(b, ops.Transpose(b, x, order...), ops.Transpose(b, ops.Relu(b, x), order...))
				}))
			}
		}
	}
	return out
}

// products are batched products of many shapes, plain and with both operands transposed, and contractions of other forms.
func products() (out []Layer) {
	for _, m := range [][4]int{
		{1, 1000, 1000, 1000},
		{1, 333, 777, 555},
		{64, 100, 33, 100},
		{512, 17, 64, 31},
		{8, 1000, 7, 1000},
		{3, 5000, 3, 300},
		{1, 100000, 16, 5},
		{1, 1, 100000, 64},
		{16, 64, 2000, 64},
		{1000, 8, 8, 8},
		{1, 12, 12, 500000},
		{128, 1, 512, 512},
		{1, 4097, 1023, 129},
		{20, 257, 257, 257},
		{10000, 4, 4, 1},
		{1, 65536, 1, 64},
		{48, 512, 64, 512},
		{1, 30, 30000, 30},
	} {
		out = append(out,
			of(fmt.Sprint("product ", m), func(b *ir.Builder) ir.Value {
				return ops.MatMul(b, floats(b, "x", m[0], m[1], m[2]), floats(b, "y", m[0], m[2], m[3]))
			}),
			of(fmt.Sprint("product transposed ", m), func(b *ir.Builder) ir.Value {
				return ops.MatMul(b, ops.SwapAxes(b, floats(b, "x", m[0], m[2], m[1]), 1, 2), ops.SwapAxes(b, floats(b, "y", m[0], m[3], m[2]), 1, 2))
			}))
	}
	for _, e := range []struct {
		equation string
		x, y     []int
	}{
		{"bhqd,bkhd->bhqk", []int{8, 12, 200, 64}, []int{8, 200, 12, 64}},
		{"bcxy,cd->bdxy", []int{16, 64, 64, 64}, []int{64, 96}},
		{"bxyc,bxyd->bcd", []int{16, 64, 64, 64}, []int{16, 64, 64, 48}},
		{"nij,njk->ik", []int{64, 128, 256}, []int{64, 256, 100}},
		{"bik,bjk->bijk", []int{16, 64, 64}, []int{16, 64, 64}},
		{"bijk,bjl->bikl", []int{16, 40, 50, 60}, []int{16, 50, 30}},
		{"ab,cd->acbd", []int{300, 40}, []int{200, 30}},
		{"bn,bn->b", []int{10000, 512}, []int{10000, 512}},
		{"bnm,bm->bn", []int{512, 100, 300}, []int{512, 300}},
		{"bhn,hnm->bhm", []int{4000, 8, 32}, []int{8, 32, 48}},
	} {
		out = append(out, of("einsum "+e.equation, func(b *ir.Builder) ir.Value {
			return ops.Einsum(b, e.equation, floats(b, "x", e.x...), floats(b, "y", e.y...))
		}))
	}
	return out
}
