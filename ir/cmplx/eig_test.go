package cmplx_test

import (
	"errors"
	"math"
	"math/cmplx"
	"testing"

	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/ir"
	rlxcmplx "github.com/rlx-go/rlx/ir/cmplx"
	"github.com/rlx-go/rlx/ir/ops"
)

// matrices returns n by n elements sin(1 + 0.7·i²).
func matrices(d ir.DType, dims ...int) *ir.Array {
	x := ir.NewArray(d, dims...)
	for i := range x.F {
		x.F[i] = math.Sin(1 + 0.7*float64(i*i))
	}
	return x
}

func eigGraph(t *testing.T, d ir.DType, dims ...int) *ir.Graph {
	t.Helper()
	g, err := ir.Build("eig", func(b *ir.Builder) {
		for i, y := range bothParts(b, b.Input("x", d, ir.Dims(dims...)...)) {
			b.Output([]string{"wr", "wi", "vr", "vi"}[i], y)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestEigenvectorsSatisfyTheEquation has sizes of which no values are stored.
func TestEigenvectorsSatisfyTheEquation(t *testing.T) {
	for _, n := range []int{1, 2, 8} {
		x := matrices(ir.F64, n, n)
		out, err := ir.Eval(eigGraph(t, ir.F64, n, n), map[string]*ir.Array{"x": x}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		of := func(i, k int) complex128 { return complex(out[i].F[k], out[i+1].F[k]) }
		for i := range n {
			for c := range n {
				sum := -of(0, c) * of(2, i*n+c)
				for j := range n {
					sum += complex(x.F[i*n+j], 0) * of(2, j*n+c)
				}
				if !(cmplx.Abs(sum) < 1e-13) {
					t.Errorf("n = %d: row %d of vector %d is off by %v", n, i, c, sum)
				}
			}
		}
	}
}

func TestDerivativesOfEigAreDifferences(t *testing.T) {
	in := map[string]*ir.Array{"x": matrices(ir.F64, 2, 2)}
	if err := gradcheck.Check(eigGraph(t, ir.F64, 2, 2), in, gradcheck.Options{Order: 2, Tol: 1e-5}); err != nil {
		t.Error(err)
	}
}

// TestEigOnWebGPU runs its kernels in the simulator.
func TestEigOnWebGPU(t *testing.T) {
	g := eigGraph(t, ir.F32, 3, 3)
	in := map[string]*ir.Array{"x": matrices(ir.F32, 3, 3)}
	want, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	module, err := ir.NewModule("eig", ir.Entry{Name: "eig", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := plansim.Open(module, plan.WebGPU())
	if err != nil {
		t.Fatal(err)
	}
	got, err := simulated.Run("eig", in)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs() {
		for k, w := range want[i].F {
			if x := got[o.Name].F[k]; !(math.Abs(x-w) <= 1e-5) {
				t.Errorf("%s[%d] is %v, want %v", o.Name, k, x, w)
			}
		}
	}
}

func TestEigRefusesWhatIsNoSquareMatrix(t *testing.T) {
	for _, c := range []struct {
		d    ir.DType
		dims []ir.Dim
		kind error
	}{
		{ir.I32, ir.Dims(2, 2), ir.ErrDType},
		{ir.F32, ir.Dims(2, 3), ir.ErrShape},
		{ir.F32, ir.Dims(2), ir.ErrShape},
		{ir.F32, ir.Dims(0, 0), ir.ErrShape},
		{ir.F32, []ir.Dim{ir.Sym("n"), ir.Sym("n")}, ir.ErrSymbol},
	} {
		for name, f := range map[string]func(b *ir.Builder, x ir.Value) ir.Value{"eigvals": rlxcmplx.Eigvals, "eig": func(b *ir.Builder, x ir.Value) ir.Value {
			_, v := rlxcmplx.Eig(b, x)
			return v
		}} {
			_, err := ir.Build("bad", func(b *ir.Builder) { b.Output("y", ops.Real(b, f(b, b.Input("x", c.d, c.dims...)))) })
			if !errors.Is(err, c.kind) {
				t.Errorf("%s of %v%v: %v", name, c.d, c.dims, err)
			}
		}
	}
}
