package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestTransposedConvolutions compares transposed convolutions, with windows longer and shorter than the
// strides, so that some results have no terms, with the definition in f64.
func TestTransposedConvolutions(t *testing.T) {
	const batch, h, w, in, out = 2, 10, 11, 20, 8
	for _, c := range []struct {
		kernel, strides [2]int
		groups, pad     int
		planes          bool
	}{
		{[2]int{3, 4}, [2]int{2, 3}, 1, 1, false},
		{[2]int{4, 3}, [2]int{2, 2}, 1, 1, true},
		{[2]int{2, 5}, [2]int{3, 2}, 2, 0, false},
	} {
		x, weight := random(batch*h*w*in), random(c.kernel[0]*c.kernel[1]*in*out/c.groups)
		g := build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.Dims(batch, h, w, in)...)
			pad := []int{c.pad, c.pad}
			y := ops.ConvTranspose(b, x, b.Input("w", ir.F32, ir.Dims(c.kernel[0], c.kernel[1], in, out/c.groups)...), ir.Value{}, ops.ConvTransposeAttrs{
				Strides: c.strides[:], PadLo: pad, PadHi: pad, Groups: c.groups,
			})
			y = ops.Add(b, y, ops.Const(b, ir.F32, 1)) // an epilogue
			if c.planes {
				y = ops.Transpose(b, y, 0, 3, 1, 2)
			}
			b.Output("y", y)
		})
		height, wide := (h-1)*c.strides[0]+c.kernel[0]-2*c.pad, (w-1)*c.strides[1]+c.kernel[1]-2*c.pad
		want := make([]float64, batch*height*wide*out)
		for i := range want {
			want[i] = 1
		}
		from, to := in/c.groups, out/c.groups
		for at := range batch * h * w * in {
			n, row, col, ch := at/(h*w*in), at/(w*in)%h, at/in%w, at%in
			for tap := range c.kernel[0] * c.kernel[1] * to {
				k, o := tap/to, ch/from*to+tap%to
				i, j := row*c.strides[0]+k/c.kernel[1]-c.pad, col*c.strides[1]+k%c.kernel[1]-c.pad
				if i < 0 || i >= height || j < 0 || j >= wide {
					continue
				}
				place := ((n*height+i)*wide+j)*out + o
				if c.planes {
					place = ((n*out+o)*height+i)*wide + j
				}
				want[place] += float64(x[at]) * float64(weight[(k*in+ch)*to+tap%to])
			}
		}
		everyLevel(t, func(t *testing.T) {
			p := compileGraphs(t, ir.Entry{Name: "run", Graph: g})
			got, err := run(t, p, map[string]native.Tensor{
				"x": native.Float32s(x, batch, h, w, in), "w": native.Float32s(weight, c.kernel[0], c.kernel[1], in, to),
			})["y"].Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				near(t, "y", i, got[i], want[i], 1e-4)
			}
		})
	}
}
