package cpu_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestLargeFactorisations multiplies the factors of matrices of several blocks of reflections and several
// levels of divide and conquer.
func TestLargeFactorisations(t *testing.T) {
	for _, name := range []string{"qr", "full qr", "eigh", "svd"} {
		t.Run(name, func(t *testing.T) {
			for _, d := range []ir.DType{ir.F32, ir.F64} {
				for _, dims := range [][2]int{{140, 140}, {150, 70}, {70, 150}} {
					g, err := ir.Build("factors", func(b *ir.Builder) {
						rest, turned := factored[name](b, b.Input("x", d, ir.Dims(dims[:]...)...))
						b.Output("rest", rest)
						b.Output("turned", turned)
					})
					if err != nil {
						t.Fatal(err)
					}
					checkForm(t, g, "routines", d, dims)
				}
			}
		})
	}
}

// TestCloseEigenvalues has glued matrices of Wilkinson, whose eigenvalues are close in groups: without the
// refined weights of the secular equation the eigenvectors are not orthogonal.
func TestCloseEigenvalues(t *testing.T) {
	const block, count, glue = 21, 7, 1e-7
	x := ir.NewArray(ir.F64, block*count, block*count)
	for i := range block * count {
		x.F[i*block*count+i] = math.Abs(float64(i%block - block/2))
		if i == 0 {
			continue
		}
		beside := 1.0
		if i%block == 0 {
			beside = glue
		}
		x.F[i*block*count+i-1], x.F[(i-1)*block*count+i] = beside, beside
	}
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.Dims(block*count, block*count)...)
		w, v := ops.Eigh(b, x)
		y := ops.MatMul(b, ops.Mul(b, v, ops.ExpandDims(b, w, -2)), ops.SwapAxes(b, v, -1, -2))
		b.Output("rest", apart(b, y, x))
		b.Output("turned", unturned(b, v))
	})
	for what, y := range rerun(t, g, native.FromArray(x)) {
		if v, _ := y.Array(); !(v.F[0] <= 1e-13) {
			t.Errorf("%s is off by %.3g", what, v.F[0])
		}
	}
}
