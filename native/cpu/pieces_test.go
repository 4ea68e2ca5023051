package cpu_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// floatsOf runs a graph with inputs of f32 and returns the output "y".
func floatsOf(t *testing.T, g *ir.Graph, in map[string]native.Tensor, dims ...int) []float32 {
	t.Helper()
	out := map[string]native.Tensor{"y": native.Zeros(ir.F32, dims...)}
	runBound(t, bind(t, compileGraphs(t, ir.Entry{Name: "run", Graph: g}), "run", in, out))
	y, err := out["y"].Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// TestConcatenationsInPieces joins parts of several widths along each axis, negated ones among
// them, in tensors large enough to be cut.
func TestConcatenationsInPieces(t *testing.T) {
	sizes := []int{3, 1, 16, 0, 7, 40}
	const total = 3 + 1 + 16 + 7 + 40
	for axis := range 3 {
		dims := []int{60, 50, 70}
		dims[axis] = total
		in, parts := map[string]native.Tensor{}, map[string][]float32{}
		g := build(t, func(b *ir.Builder) {
			var list []ir.Value
			for i, n := range sizes {
				part := append([]int{}, dims...)
				part[axis] = n
				name := string(rune('a' + i))
				parts[name] = random(part[0] * part[1] * part[2])
				in[name] = native.Float32s(parts[name], part...)
				x := b.Input(name, ir.F32, ir.Dims(part...)...)
				if i%2 == 1 {
					x = ops.Neg(b, x)
				}
				list = append(list, x)
			}
			b.Output("y", ops.Concatenate(b, axis, list...))
		})
		y := floatsOf(t, g, in, dims...)
		for i := range y {
			at := []int{i / dims[2] / dims[1], i / dims[2] % dims[1], i % dims[2]}
			part := 0
			for ; at[axis] >= sizes[part]; part++ {
				at[axis] -= sizes[part]
			}
			of := append([]int{}, dims...)
			of[axis] = sizes[part]
			want := parts[string(rune('a'+part))][(at[0]*of[1]+at[1])*of[2]+at[2]]
			if part%2 == 1 {
				want = -want
			}
			if y[i] != want {
				t.Fatalf("axis %d: element %d is %g, not %g", axis, i, y[i], want)
			}
		}
	}
}

// TestShiftsInPieces adds a tensor to itself shifted along an axis, with zeros where nothing
// was, as the gradient of a dilated convolution does.
func TestShiftsInPieces(t *testing.T) {
	const rows, length, width, shift = 8, 300, 40, 77
	x := random(rows * length * width)
	g := build(t, func(b *ir.Builder) {
		v := b.Input("x", ir.F32, ir.Dims(rows, length, width)...)
		zero := ops.Const(b, ir.F32, 0)
		later := ops.Pad(b, v, zero, []int{0, shift, 0}, []int{0, -shift, 0}, []int{0, 0, 0})
		b.Output("y", ops.Add(b, ops.Mul(b, v, v), later))
	})
	y := floatsOf(t, g, map[string]native.Tensor{"x": native.Float32s(x, rows, length, width)}, rows, length, width)
	for i := range y {
		want := x[i] * x[i]
		if i/width%length >= shift {
			want += x[i-shift*width]
		}
		if y[i] != want {
			t.Fatalf("element %d is %g, not %g", i, y[i], want)
		}
	}
}

// TestContiguousLanes sums over axes that are not neighbours, of widths below and around that of a
// vector, after a product with a factor for each element of the last axes.
func TestContiguousLanes(t *testing.T) {
	for _, width := range []int{2, 3, 4, 8, 17} {
		const batch, length, groups = 3, 130, 5
		x, scale := random(batch*length*groups*width), random(groups*width)
		g := build(t, func(b *ir.Builder) {
			v := b.Input("x", ir.F32, ir.Dims(batch, length, groups, width)...)
			v = ops.Mul(b, v, b.Input("scale", ir.F32, ir.Dims(groups, width)...))
			mean := ops.KeepDims(b, ops.Mean, v, 1, 3)
			b.Output("y", ops.Mean(b, ops.Square(b, ops.Sub(b, v, mean)), 1, 3))
		})
		y := floatsOf(t, g, map[string]native.Tensor{
			"x": native.Float32s(x, batch, length, groups, width), "scale": native.Float32s(scale, groups, width),
		}, batch, groups)
		for i := range y {
			n, group := i/groups, i%groups
			sum, square := 0.0, 0.0
			for l := range length {
				for w := range width {
					v := float64(x[((n*length+l)*groups+group)*width+w]) * float64(scale[group*width+w])
					sum, square = sum+v, square+v*v
				}
			}
			count := float64(length * width)
			want := square/count - sum/count*sum/count
			if !(math.Abs(float64(y[i])-want) <= 1e-6) {
				t.Errorf("width %d: variance %d is %g, not %g", width, i, y[i], want)
			}
		}
	}
}
