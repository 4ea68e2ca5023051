package cpu_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestLargeFactorisations multiplies the factors of matrices of several blocks and several levels of divide and
// conquer.
func TestLargeFactorisations(t *testing.T) {
	for _, name := range []string{"qr", "full qr", "eigh", "svd", "lu", "cholesky"} {
		t.Run(name, func(t *testing.T) {
			for _, d := range []ir.DType{ir.F32, ir.F64} {
				for _, dims := range [][2]int{{140, 140}, {150, 70}, {70, 150}} {
					g, err := ir.Build("factors", func(b *ir.Builder) {
						rest, turned := factored[name](b, b.Input("x", d, ir.Dims(dims[:]...)...))
						if b.Output("rest", rest); turned.Valid() {
							b.Output("turned", turned)
						}
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

// TestSmallNumbers decomposes matrices far below 1, whose errors are in proportion.
func TestSmallNumbers(t *testing.T) {
	const n = 80
	for _, name := range []string{"eigh", "svd"} {
		x := ir.NewArray(ir.F64, n, n)
		for i, v := range random(n * n) {
			x.F[i] = float64(v) * 3e-5
		}
		g := build(t, func(b *ir.Builder) {
			rest, turned := factored[name](b, b.Input("x", ir.F64, ir.Dims(n, n)...))
			b.Output("rest", rest)
			b.Output("turned", turned)
		})
		for what, y := range rerun(t, g, native.FromArray(x)) {
			if v, _ := y.Array(); !(v.F[0] <= 1e-13) {
				t.Errorf("%s: %s is off by %.3g", name, what, v.F[0])
			}
		}
	}
}

// TestTriangularSystems multiplies solutions of several blocks by their triangles, on both sides, with few and with
// many columns.
func TestTriangularSystems(t *testing.T) {
	const n = 90
	for _, d := range []ir.DType{ir.F32, ir.F64} {
		for at := range 16 {
			a := ops.TriangularAttrs{LeftSide: at&1 > 0, Lower: at&2 > 0, TransposeA: at&4 > 0, UnitDiagonal: at&8 > 0}
			for _, columns := range []int{1, 7, 200} {
				dims := []int{columns, n}
				if a.LeftSide {
					dims = []int{n, columns}
				}
				g := build(t, func(b *ir.Builder) {
					x, y := b.Input("x", d, ir.Dims(n, n)...), b.Input("y", d, ir.Dims(dims...)...)
					b.Output("rest", apart(b, multipliedBy(b, x, ops.TriangularSolve(b, x, y, a), a), y))
				})
				p, x := compiled(t, g), ir.NewArray(d, n, n)
				for i, v := range random(n * n) {
					x.F[i] = float64(v)/n + 3*delta(i/n, i%n)
				}
				y := ir.NewArray(d, dims...)
				for i, v := range random(n * columns) {
					y.F[i] = float64(v)
				}
				x.Round()
				y.Round()
				out := run(t, p, map[string]native.Tensor{"x": native.FromArray(x), "y": native.FromArray(y)})
				if v, _ := out["rest"].Array(); !(v.F[0] <= 8*d.Epsilon()) {
					t.Errorf("%s, %+v for %d: off by %.3g", d, a, columns, v.F[0])
				}
			}
		}
	}
}

// multipliedBy multiplies y by the triangle of x of a system.
func multipliedBy(b *ir.Builder, x, y ir.Value, a ops.TriangularAttrs) ir.Value {
	if a.Lower {
		x = ops.Tril(b, x, 0)
	} else {
		x = ops.Triu(b, x, 0)
	}
	if a.UnitDiagonal {
		one := ops.Diag(b, ops.Const(b, x.DType(), 1, x.Dim(0)), 0)
		x = ops.Select(b, ops.Ne(b, one, ops.ZerosLike(b, one)), one, x)
	}
	if a.TransposeA {
		x = ops.SwapAxes(b, x, 0, 1)
	}
	if a.LeftSide {
		return ops.MatMul(b, x, y)
	}
	return ops.MatMul(b, y, x)
}

// TestTinyPivots divides by numbers whose inverse is not finite.
func TestTinyPivots(t *testing.T) {
	const n, tiny = 40, 0x1p-1040
	x, y := ir.NewArray(ir.F64, n, n), ir.NewArray(ir.F64, n, 9)
	for i := range n {
		x.F[i*n+i] = tiny
	}
	for i := range y.F {
		y.F[i] = float64(i) * tiny
	}
	g := build(t, func(b *ir.Builder) {
		x, y := b.Input("x", ir.F64, ir.Dims(n, n)...), b.Input("y", ir.F64, ir.Dims(n, 9)...)
		b.Output("z", ops.TriangularSolve(b, x, y, ops.TriangularAttrs{LeftSide: true, Lower: true}))
	})
	out := run(t, compiled(t, g), map[string]native.Tensor{"x": native.FromArray(x), "y": native.FromArray(y)})
	z, _ := out["z"].Array()
	for i, v := range z.F {
		if v != float64(i) {
			t.Fatalf("element %d is %v", i, v)
		}
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
