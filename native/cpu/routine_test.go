package cpu_test

import (
	"context"
	"math"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// factored are factorisations: each returns the difference of the product of the factors
// from x, and that of orthogonal factors from orthogonality.
var factored = map[string]func(b *ir.Builder, x ir.Value) (rest, turned ir.Value){
	"qr": func(b *ir.Builder, x ir.Value) (rest, turned ir.Value) {
		q, r := ops.QR(b, x, false)
		return apart(b, ops.MatMul(b, q, r), x), unturned(b, q)
	},
	"full qr": func(b *ir.Builder, x ir.Value) (rest, turned ir.Value) {
		q, r := ops.QR(b, x, true)
		return apart(b, ops.MatMul(b, q, r), x), unturned(b, q)
	},
	"svd": func(b *ir.Builder, x ir.Value) (rest, turned ir.Value) {
		u, s, vt := ops.SVD(b, x, false)
		y := ops.MatMul(b, ops.Mul(b, u, ops.ExpandDims(b, s, -2)), vt)
		return apart(b, y, x), ops.Max(b, unturned(b, u), unturned(b, ops.SwapAxes(b, vt, -1, -2)))
	},
	"eigh": func(b *ir.Builder, x ir.Value) (rest, turned ir.Value) {
		x = ops.MatMul(b, ops.SwapAxes(b, x, -1, -2), x)
		w, v := ops.Eigh(b, x)
		y := ops.MatMul(b, ops.Mul(b, v, ops.ExpandDims(b, w, -2)), ops.SwapAxes(b, v, -1, -2))
		return apart(b, y, x), unturned(b, v)
	},
	"lu": func(b *ir.Builder, x ir.Value) (rest, turned ir.Value) {
		lu, _, order := ops.LU(b, x)
		rows, _ := x.Dim(-2).Const()
		n, _ := x.Dim(-1).Const()
		n = min(n, rows)
		l := ops.SliceAxis(b, ops.Tril(b, lu, -1), -1, ir.N(0), ir.N(n))
		one := ops.Convert(b, ops.Eq(b, ops.Iota(b, ir.I32, 0, l.Shape()...), ops.Iota(b, ir.I32, 1, l.Shape()...)), x.DType())
		u := ops.SliceAxis(b, ops.Triu(b, lu, 0), -2, ir.N(0), ir.N(n))
		return apart(b, ops.MatMul(b, ops.Add(b, l, one), u), ops.Take(b, x, order, 0, ops.OutsideFill)), ir.Value{}
	},
	"cholesky": func(b *ir.Builder, x ir.Value) (rest, turned ir.Value) {
		x = ops.MatMul(b, ops.SwapAxes(b, x, -1, -2), x)
		n, _ := x.Dim(-1).Const()
		one := ops.Diag(b, ops.Const(b, x.DType(), 0.5, ir.N(n)), 0)
		x = ops.Add(b, ops.Div(b, x, ops.Add(b, ops.ReduceMax(b, x), ops.Const(b, x.DType(), 1e-30))), one)
		l := ops.Cholesky(b, x)
		return apart(b, ops.MatMul(b, l, ops.SwapAxes(b, l, -1, -2)), x), ir.Value{}
	},
	"solve": func(b *ir.Builder, x ir.Value) (rest, turned ir.Value) {
		n, _ := x.Dim(-1).Const()
		x = ops.SliceAxis(b, x, 0, ir.N(0), ir.N(n))
		x = ops.Div(b, x, ops.Add(b, ops.ReduceMax(b, ops.Abs(b, x)), ops.Const(b, x.DType(), 1e-30)))
		x = ops.Add(b, x, ops.Diag(b, ops.Const(b, x.DType(), float64(n), ir.N(n)), 0))
		y := ops.Iota(b, x.DType(), 1, ir.N(n), ir.N(3))
		return apart(b, ops.MatMul(b, x, ops.Solve(b, x, y, ops.SolveAttrs{})), y), ir.Value{}
	},
}

// apart returns the largest difference, in units of the largest element of x.
func apart(b *ir.Builder, y, x ir.Value) ir.Value {
	largest := ops.ReduceMax(b, ops.Abs(b, x))
	zero := ops.Eq(b, largest, ops.ZerosLike(b, largest))
	return ops.Div(b, ops.ReduceMax(b, ops.Abs(b, ops.Sub(b, y, x))), ops.Select(b, zero, ops.OnesLike(b, largest), largest))
}

// unturned returns the difference of qᵀ·q from the identity.
func unturned(b *ir.Builder, q ir.Value) ir.Value {
	y := ops.MatMul(b, ops.SwapAxes(b, q, -1, -2), q)
	n, _ := y.Dim(-1).Const()
	return ops.ReduceMax(b, ops.Abs(b, ops.Sub(b, y, ops.Diag(b, ops.Const(b, y.DType(), 1, ir.N(n)), 0))))
}

// kinds are matrices that are difficult for factorisations.
var kinds = map[string]func(i, j, n int, random float64) float64{
	"general":           func(_, _, _ int, random float64) float64 { return random },
	"zero":              func(_, _, _ int, _ float64) float64 { return 0 },
	"identity":          func(i, j, _ int, _ float64) float64 { return delta(i, j) },
	"of rank 1":         func(i, j, _ int, _ float64) float64 { return float64(i+1) * math.Sin(float64(j+1)) },
	"graded":            func(i, j, n int, random float64) float64 { return random * math.Pow(10, -6*float64(i+j)/float64(n)) },
	"equal eigenvalues": func(i, j, n int, _ float64) float64 { return 2*delta(i, j) - 1/float64(n) },
	"large":             func(_, _, _ int, random float64) float64 { return 1e16 * random },
	"zero columns":      func(_, j, _ int, random float64) float64 { return random * float64(j%2) },
}

func delta(i, j int) float64 {
	if i == j {
		return 1
	}
	return 0
}

// TestFactorisations multiplies the factors of matrices of many sizes and kinds, computed by
// the routines and by the bodies of the ops.
func TestFactorisations(t *testing.T) {
	for name, f := range factored {
		t.Run(name, func(t *testing.T) {
			for _, d := range []ir.DType{ir.F32, ir.F64} {
				for _, dims := range [][2]int{{2, 2}, {7, 3}, {16, 16}, {33, 33}, {70, 65}} {
					checkFactors(t, f, d, dims)
				}
			}
		})
	}
}

func checkFactors(t *testing.T, f func(b *ir.Builder, x ir.Value) (rest, turned ir.Value), d ir.DType, dims [2]int) {
	t.Helper()
	g, err := ir.Build("factors", func(b *ir.Builder) {
		rest, turned := f(b, b.Input("x", d, ir.Dims(dims[:]...)...))
		if b.Output("rest", rest); turned.Valid() {
			b.Output("turned", turned)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	bodies, err := passes.Run(g, passes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for form, g := range map[string]*ir.Graph{"routines": g, "bodies": bodies} {
		checkForm(t, g, form, d, dims)
	}
}

// checkForm runs a graph of [factored] for matrices of all kinds.
func checkForm(t *testing.T, g *ir.Graph, form string, d ir.DType, dims [2]int) {
	t.Helper()
	bound := 4 * d.Epsilon() * float64(dims[0]+8)
	p := compiled(t, g)
	defer p.Close(context.Background())
	for kind, element := range kinds {
		x := ir.NewArray(d, dims[0], dims[1])
		random := 0.5
		for i := range x.F {
			random = math.Mod(random*997+0.377, 1)
			x.F[i] = element(i/dims[1], i%dims[1], dims[1], 2*random-1)
		}
		for what, y := range runTwice(t, p, native.FromArray(x)) {
			if v, _ := y.Array(); !(v.F[0] <= bound) {
				t.Errorf("%s, %s of %v %s: %s is off by %.3g, more than %.3g", form, kind, dims, d, what, v.F[0], bound)
			}
		}
	}
}

func rerun(t *testing.T, g *ir.Graph, x native.Tensor) map[string]native.Tensor {
	t.Helper()
	p := compiled(t, g)
	defer p.Close(context.Background())
	return runTwice(t, p, x)
}

func runTwice(t *testing.T, p native.Program, x native.Tensor) map[string]native.Tensor {
	t.Helper()
	in := map[string]native.Tensor{"x": x}
	run(t, p, in) // its numbers remain in the memory of the next run
	return run(t, p, in)
}

func compiled(t testing.TB, g *ir.Graph) native.Program {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := cpu.Backend().Compile(context.Background(), m, native.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t testing.TB, p native.Program, in map[string]native.Tensor) map[string]native.Tensor {
	t.Helper()
	r, err := p.Run(context.Background(), "run", in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// BenchmarkMatrices measures linear algebra and Fourier transforms, by the
// routines and by the bodies of the ops.
func BenchmarkMatrices(b *testing.B) {
	for _, c := range []struct {
		name string
		dims []int
		f    func(b *ir.Builder, x ir.Value) ir.Value
	}{
		{"cholesky 512", []int{512, 512}, func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Cholesky(b, ops.Add(b, x, ops.Diag(b, ops.Const(b, ir.F32, 512, ir.N(512)), 0)))
		}},
		{"cholesky 256 of 32", []int{256, 32, 32}, func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Cholesky(b, ops.Add(b, x, ops.Diag(b, ops.Const(b, ir.F32, 32, ir.N(32)), 0)))
		}},
		{"solve 256", []int{256, 256}, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Solve(b, x, x, ops.SolveAttrs{}) }},
		{"eigh 64", []int{64, 64}, func(b *ir.Builder, x ir.Value) ir.Value { _, v := ops.Eigh(b, x); return v }},
		{"svd 64", []int{64, 64}, func(b *ir.Builder, x ir.Value) ir.Value { u, _, _ := ops.SVD(b, x, false); return u }},
		{"dft 16 of 4096", []int{16, 4096}, func(b *ir.Builder, x ir.Value) ir.Value { re, im := ops.DFT(b, x, x, false); return ops.Add(b, re, im) }},
		{"dft 16 of 1009", []int{16, 1009}, func(b *ir.Builder, x ir.Value) ir.Value { re, im := ops.DFT(b, x, x, false); return ops.Add(b, re, im) }},
	} {
		g, err := ir.Build("matrices", func(b *ir.Builder) { b.Output("y", c.f(b, b.Input("x", ir.F32, ir.Dims(c.dims...)...))) })
		if err != nil {
			b.Fatal(err)
		}
		bodies, err := passes.Run(g, passes.Options{})
		if err != nil {
			b.Fatal(err)
		}
		x := ir.NewArray(ir.F32, c.dims...)
		for i := range x.F {
			x.F[i] = math.Mod(float64(i)*0.7548776662, 1) - 0.5
		}
		for _, form := range []struct {
			name string
			g    *ir.Graph
		}{{"routines", g}, {"bodies", bodies}} {
			b.Run(c.name+"/"+form.name, func(b *testing.B) {
				p, in := compiled(b, form.g), map[string]native.Tensor{"x": native.FromArray(x)}
				defer p.Close(context.Background())
				for b.Loop() {
					run(b, p, in)
				}
			})
		}
	}
}
