package cpu_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestProductsOfBF16 compares products and convolutions in bf16, of even and odd numbers of summed elements,
// with sums in f64.
func TestProductsOfBF16(t *testing.T) {
	tensor := func(x []float64, dims ...int) native.Tensor {
		out := native.Zeros(ir.BF16, dims...)
		for i, v := range x {
			bits := dtype.BF16.FloatBits(v)
			out.Data[2*i], out.Data[2*i+1] = byte(bits), byte(bits>>8)
		}
		return out
	}
	rounded := func(n int) []float64 {
		out := make([]float64, n)
		for i, v := range random(n) {
			out[i] = dtype.BF16.FloatFromBits(dtype.BF16.FloatBits(float64(v)))
		}
		return out
	}
	check := func(t *testing.T, g *ir.Graph, want []float64, x, w native.Tensor) {
		t.Helper()
		everyLevel(t, func(t *testing.T) {
			y := run(t, compileGraphs(t, ir.Entry{Name: "run", Graph: g}), map[string]native.Tensor{"x": x, "w": w})["y"]
			got, err := y.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if !(math.Abs(float64(got[i])-want[i]) <= 1e-5*(1+math.Abs(want[i]))) {
					t.Fatalf("element %d is %g, not %g", i, got[i], want[i])
				}
			}
		})
	}
	for _, size := range [][3]int{{19, 37, 50}, {19, 37, 51}, {4, 32, 300}, {12, 32, 128}} { // the last two are of one panel
		m, n, k := size[0], size[1], size[2]
		x, w := rounded(m*k), rounded(k*n)
		want := make([]float64, m*n)
		for i := range want {
			for l := range k {
				want[i] += x[i/n*k+l] * w[l*n+i%n]
			}
		}
		check(t, build(t, func(b *ir.Builder) {
			x, w := b.Input("x", ir.BF16, ir.Dims(m, k)...), b.Input("w", ir.BF16, ir.Dims(k, n)...)
			b.Output("y", ops.MatMul(b, ops.Convert(b, x, ir.F32), ops.Convert(b, w, ir.F32)))
		}), want, tensor(x, m, k), tensor(w, k, n))
	}
	for _, in := range []int{6, 9} { // channels of padded images
		const batch, h, wide, out = 2, 9, 7, 20
		x, w := rounded(batch*h*wide*in), rounded(9*in*out)
		want := make([]float64, batch*h*wide*out)
		for i := range want {
			n, row, col, o := i/(h*wide*out), i/(wide*out)%h, i/out%wide, i%out
			for k := range 9 * in {
				at := [2]int{row + k/in/3 - 1, col + k/in%3 - 1}
				if at[0] >= 0 && at[0] < h && at[1] >= 0 && at[1] < wide {
					want[i] += x[((n*h+at[0])*wide+at[1])*in+k%in] * w[k*out+o]
				}
			}
		}
		check(t, build(t, func(b *ir.Builder) {
			x, w := b.Input("x", ir.BF16, ir.Dims(batch, h, wide, in)...), b.Input("w", ir.BF16, ir.Dims(3, 3, in, out)...)
			b.Output("y", ops.Conv2D(b, ops.Convert(b, x, ir.F32), ops.Convert(b, w, ir.F32), ir.Value{}, ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}))
		}), want, tensor(x, batch, h, wide, in), tensor(w, 3, 3, in, out))
	}
}
