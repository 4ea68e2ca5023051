//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// dense is a row-major matrix.
type dense struct {
	rows, cols int
	x          []float64
}

func (m dense) at(i, j int) float64 { return m.x[i*m.cols+j] }

func (m dense) transposed() dense {
	out := dense{m.cols, m.rows, make([]float64, len(m.x))}
	for i := range m.rows {
		for j := range m.cols {
			out.x[j*m.rows+i] = m.at(i, j)
		}
	}
	return out
}

func (m dense) times(y dense) dense {
	out := dense{m.rows, y.cols, make([]float64, m.rows*y.cols)}
	for i := range m.rows {
		for k := range m.cols {
			for j, f := 0, m.at(i, k); j < y.cols; j++ {
				out.x[i*y.cols+j] += f * y.at(k, j)
			}
		}
	}
	return out
}

// differs returns the largest difference of elements.
func (m dense) differs(y dense) (most float64) {
	for i, v := range m.x {
		if d := math.Abs(v - y.x[i]); !(d <= most) {
			most = d
		}
	}
	return most
}

// triangle returns the elements for which keep holds, and zeros.
func (m dense) triangle(keep func(i, j int) bool) dense {
	out := dense{m.rows, m.cols, slices.Clone(m.x)}
	for i := range out.x {
		if !keep(i/m.cols, i%m.cols) {
			out.x[i] = 0
		}
	}
	return out
}

func unit(n int) dense {
	out := dense{n, n, make([]float64, n*n)}
	for i := range n {
		out.x[i*n+i] = 1
	}
	return out
}

// factorisation is an op with a check of its results, which returns the largest error.
type factorisation struct {
	op         ir.Op
	attrs      ir.Attrs
	rows, cols int
	check      func(t *testing.T, x dense, out []dense) float64
}

// factorisations are of the least sizes that cuSOLVER factors where it is installed.
var factorisations = []factorisation{
	{ops.OpCholesky, nil, 193, 193, func(_ *testing.T, x dense, out []dense) float64 {
		l := out[0].triangle(func(i, j int) bool { return i >= j })
		return max(l.differs(out[0]), l.times(l.transposed()).differs(x))
	}},
	{ops.OpLU, nil, 257, 257, func(t *testing.T, x dense, out []dense) float64 {
		lu, pivots, order := out[0], out[1].x, out[2].x
		l, u := lu.triangle(func(i, j int) bool { return i > j }), lu.triangle(func(i, j int) bool { return i <= j })
		moved, at := dense{x.rows, x.cols, nil}, make([]float64, x.rows)
		for i := range at {
			at[i] = float64(i)
			moved.x = append(moved.x, x.x[int(order[i])*x.cols:][:x.cols]...)
		}
		for i, p := range pivots {
			at[i], at[int(p)] = at[int(p)], at[i]
		}
		if !slices.Equal(at, order) {
			t.Errorf("the pivots give the order %v, not %v", at, order)
		}
		return dense{l.rows, l.cols, sum(l.times(u).x, u.x)}.differs(moved)
	}},
	{ops.OpQR, &ops.FullAttrs{}, 1281, 64, func(_ *testing.T, x dense, out []dense) float64 {
		q, r := out[0], out[1].triangle(func(i, j int) bool { return i <= j })
		return max(r.differs(out[1]), q.times(r).differs(x), q.transposed().times(q).differs(unit(q.cols)))
	}},
	{ops.OpEigh, nil, 193, 193, func(t *testing.T, x dense, out []dense) float64 {
		w, v := out[0].x, out[1]
		if !slices.IsSorted(w) {
			t.Error("the eigenvalues are not in ascending order")
		}
		scaled := dense{v.rows, v.cols, slices.Clone(v.x)}
		for j := range w {
			sign := 0.0
			for i := range v.rows {
				scaled.x[i*v.cols+j] *= w[j]
				sign += v.at(i, j) / (float64(i) + math.Sqrt2)
			}
			if sign < -1e-6 {
				t.Errorf("eigenvector %d has the wrong sign", j)
			}
		}
		return max(scaled.times(v.transposed()).differs(x), v.transposed().times(v).differs(unit(v.cols)))
	}},
}

func sum(x, y []float64) []float64 {
	out := slices.Clone(x)
	for i, v := range y {
		out[i] += v
	}
	return out
}

// matrix returns a random matrix, symmetric if it is square, with a large diagonal for a Cholesky factorisation.
func (f factorisation) matrix() dense {
	rng := rand.New(rand.NewPCG(5, 6))
	x := dense{f.rows, f.cols, make([]float64, f.rows*f.cols)}
	for i := range x.x {
		x.x[i] = float64(float32(rng.Float64() - 0.5))
	}
	if f.op == ops.OpCholesky || f.op == ops.OpEigh {
		for i := range f.rows {
			for j := range i {
				x.x[j*f.cols+i] = x.at(i, j)
			}
			if f.op == ops.OpCholesky {
				x.x[i*f.cols+i] += float64(f.rows)
			}
		}
	}
	return x
}

// tensor returns a matrix as elements of a type.
func (m dense) tensor(d ir.DType) native.Tensor {
	if d == ir.F64 {
		return native.Float64s(m.x, m.rows, m.cols)
	}
	x := make([]float32, len(m.x))
	for i, v := range m.x {
		x[i] = float32(v)
	}
	return native.Float32s(x, m.rows, m.cols)
}

func (f factorisation) compile(t *testing.T, b native.Backend, d ir.DType) native.Program {
	t.Helper()
	g, err := ir.Build(string(f.op), func(b *ir.Builder) {
		for i, y := range b.Add(f.op, f.attrs, b.Input("x", d, ir.Dims(f.rows, f.cols)...)) {
			b.Output(fmt.Sprint("y", i), ops.Convert(b, y, ir.F64))
		}
	})
	must(t, err)
	return compile(t, b, g)
}

// run runs a program of the op on x and returns its results.
func (f factorisation) run(t *testing.T, p native.Program, x native.Tensor) (out []dense) {
	t.Helper()
	r, err := p.Run(context.Background(), "step", map[string]native.Tensor{"x": x})
	must(t, err)
	got, err := r.Wait(context.Background())
	must(t, err)
	for i := range len(got) {
		y := got[fmt.Sprint("y", i)]
		values, err := y.Float64s()
		must(t, err)
		out = append(out, dense{y.Dims[0], y.Dims[len(y.Dims)-1], values})
	}
	return out
}

func TestCuSOLVERFactorsLargeMatrices(t *testing.T) {
	gpu := fake.Install(t, true)
	fake.Solver(t, gpu.Dir, 13)
	for _, f := range factorisations {
		t.Run(string(f.op), func(t *testing.T) {
			b := cuda.New(0)
			p := f.compile(t, b, ir.F64)
			gpu.Calls(t)
			if d := b.Info().Description; !strings.HasSuffix(d, "cuSOLVER") {
				t.Errorf("the device is %s", d)
			}
			if worst := f.check(t, f.matrix(), f.run(t, p, f.matrix().tensor(ir.F64))); worst > 1e-10 {
				t.Errorf("an element is off by %g", worst)
			}
			calls := gpu.Calls(t)
			factored := slices.IndexFunc(calls, func(c string) bool { return strings.HasPrefix(c, "factor ") })
			if graph := slices.Index(calls, "cuGraphLaunch"); factored < 0 || graph > factored || graph >= 0 != (f.op != ops.OpEigh) {
				t.Errorf("a run makes the calls\n%s", strings.Join(calls, "\n"))
			}
		})
	}
}

func TestWithoutCuSOLVERKernelsFactor(t *testing.T) {
	f := factorisations[0]
	for what, prepare := range map[string]func(dir string){
		"no library":          func(string) {},
		"one of CUDA 12":      func(dir string) { fake.Solver(t, dir, 12) },
		"a greater workspace": func(dir string) { fake.Solver(t, dir, 13); t.Setenv("RLX_FAKE_SOLVER", "large") },
		"no support":          func(dir string) { fake.Solver(t, dir, 13); t.Setenv("RLX_FAKE_SOLVER", "9") },
	} {
		t.Run(what, func(t *testing.T) {
			gpu := fake.Install(t, true)
			prepare(gpu.Dir)
			p := f.compile(t, cuda.New(0), ir.F64)
			gpu.Calls(t)
			if worst := f.check(t, f.matrix(), f.run(t, p, f.matrix().tensor(ir.F64))); worst > 1e-10 {
				t.Errorf("an element is off by %g", worst)
			}
			if slices.ContainsFunc(gpu.Calls(t), func(c string) bool { return strings.HasPrefix(c, "factor ") }) {
				t.Error("the library is called")
			}
		})
	}
}

func TestCuSOLVERErrorsAreReported(t *testing.T) {
	gpu := fake.Install(t, true)
	fake.Solver(t, gpu.Dir, 13)
	t.Setenv("RLX_FAKE_SOLVER", "7")
	g, err := ir.Build("cholesky", func(b *ir.Builder) {
		b.Output("y", ops.Cholesky(b, b.Input("x", ir.F32, ir.Dims(200, 200)...)))
	})
	must(t, err)
	m, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: g})
	must(t, err)
	_, err = cuda.New(0).Compile(context.Background(), m, native.Options{})
	var e *native.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "cusolverDnXpotrf: CUSOLVER_STATUS_INTERNAL_ERROR (7)") {
		t.Errorf("error %v", err)
	}
}

// TestGPUFactorsLargeMatrices checks the factors of larger matrices in both types, and those of matrices that have
// none: an indefinite one, one with a NaN and, for LU, a singular one.
func TestGPUFactorsLargeMatrices(t *testing.T) {
	b := gpu(t)
	for _, f := range factorisations {
		for d, bound := range map[ir.DType]float64{ir.F32: 3e-7, ir.F64: 1e-15} {
			t.Run(fmt.Sprint(f.op, d), func(t *testing.T) {
				p := f.compile(t, b, d)
				x := f.matrix()
				if worst := f.check(t, x, f.run(t, p, x.tensor(d))); worst > bound*float64(10*f.rows) {
					t.Errorf("an element is off by %g", worst)
				}
				f.checkFailures(t, p, d)
			})
		}
	}
}

// checkFailures runs a program on matrices that have no factors, or not all of them.
func (f factorisation) checkFailures(t *testing.T, p native.Program, d ir.DType) {
	t.Helper()
	x := f.matrix()
	x.x[100*f.cols+50], x.x[50*f.cols+min(100, f.cols-1)] = math.NaN(), math.NaN()
	bad := f.run(t, p, x.tensor(d))[0]
	if f.op == ops.OpCholesky || f.op == ops.OpEigh {
		if n := slices.IndexFunc(bad.x, func(v float64) bool { return !math.IsNaN(v) }); n >= 0 {
			t.Errorf("element %d of a matrix with a NaN is %g", n, bad.x[n])
		}
	}
	switch f.op {
	case ops.OpCholesky:
		x = f.matrix()
		x.x[150*f.cols+150] = -1
		bad = f.run(t, p, x.tensor(d))[0]
		if n := slices.IndexFunc(bad.x, func(v float64) bool { return !math.IsNaN(v) }); n >= 0 {
			t.Errorf("element %d of an indefinite matrix is %g", n, bad.x[n])
		}
	case ops.OpLU:
		x = f.matrix()
		for i := range f.rows {
			x.x[i*f.cols+20] = 0
		}
		if worst := f.check(t, x, f.run(t, p, x.tensor(d))); !(worst < 1e-3) {
			t.Errorf("an element of a singular matrix is off by %g", worst)
		}
	}
}
