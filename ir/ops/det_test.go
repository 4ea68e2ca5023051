package ops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// leibniz returns the derivative of the determinant of x by some of its elements, row and
// column each: the sum over all permutations that take these elements, by Leibniz's formula.
func leibniz(x []float64, n int, by [][2]int) float64 {
	used, fixed := make([]bool, n), map[int]int{}
	for _, e := range by {
		if _, twice := fixed[e[0]]; twice {
			return 0
		}
		fixed[e[0]] = e[1]
	}
	var sum func(row int, sign float64) float64
	sum = func(row int, sign float64) float64 {
		if row == n {
			return sign
		}
		total, passed := 0.0, 0
		for col := range n {
			if used[col] {
				passed++ // inversions are counted by the columns to the left that are taken
				continue
			}
			turns := 0
			for c := col + 1; c < n; c++ {
				if used[c] {
					turns++
				}
			}
			factor := x[row*n+col]
			if want, is := fixed[row]; is {
				factor = 0
				if want == col {
					factor = 1
				}
			}
			if factor == 0 {
				continue
			}
			used[col] = true
			total += factor * sum(row+1, sign*math.Pow(-1, float64(turns)))
			used[col] = false
		}
		return total
	}
	return sum(0, 1)
}

// ofRank returns a matrix of whole numbers of a rank, or of less.
func ofRank(rng *rand.Rand, n, rank int) []float64 {
	x := make([]float64, n*n)
	for range rank {
		u, v := make([]float64, n), make([]float64, n)
		for i := range n {
			u[i], v[i] = float64(rng.IntN(5)-2), float64(rng.IntN(5)-2)
		}
		for i := range x {
			x[i] += u[i/n] * v[i%n]
		}
	}
	return x
}

// TestDerivativesOfDetAtAnyRank compares value and derivatives to fourth order along the
// elements of matrices with Leibniz's formula, and the mixed ones by reverse over reverse.
func TestDerivativesOfDetAtAnyRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 4; n++ {
		for rank := 0; rank <= n; rank++ {
			t.Run(fmt.Sprintf("rank %d of %d", rank, n), func(t *testing.T) {
				checkDet(t, ofRank(rng, n, rank), n, rng)
			})
		}
	}
	// Where PyTorch 2.11 has finite second derivatives, and an inverse has none.
	checkDet(t, []float64{1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0}, 4, rng)
}

func checkDet(t *testing.T, x []float64, n int, rng *rand.Rand) {
	t.Helper()
	const orders = 4
	along := make([][2]int, orders)
	for i := range along {
		along[i] = [2]int{rng.IntN(n), rng.IntN(n)}
	}
	if n == orders {
		along = [][2]int{{2, 1}, {0, 3}, {1, 0}, {3, 2}} // which no row and no column has twice
	}
	f := func(b *ir.Builder, x ir.Value) ir.Value { return ops.Det(b, x) }
	g := must(ir.Build("det", func(b *ir.Builder) { b.Output("y", f(b, b.Input("x", ir.F64, ir.Dims(n, n)...))) }))(t)
	inputs := map[string]*ir.Array{"x": ir.Floats(ir.F64, x, n, n)}
	for order := 1; order <= orders; order++ {
		if order%2 == 1 {
			g = gradientOf(t, g)
		}
		g = alongElement(t, g, n, along[order-1], order%2 == 1)
		want := leibniz(x, n, along[:order])
		for _, g := range []*ir.Graph{g, must(passes.Run(g, passes.Options{}))(t)} {
			out, err := ir.Eval(g, inputs, ir.EvalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := out[0].F[0]; !(math.Abs(got-want) <= 1e-9*(1+math.Abs(want))) {
				t.Errorf("of %v by the elements %v: %v, want %v", x, along[:order], got, want)
			}
		}
	}
}

// gradientOf returns the graph of the gradient by x of the one output.
func gradientOf(t *testing.T, g *ir.Graph) *ir.Graph {
	t.Helper()
	return only(t, must(autodiff.ValueAndGrad(g, g.Outputs()[0].Name, "x"))(t), "grad/x", "")
}

// alongElement returns the graph of one element of a gradient, or the derivative of a number
// by one element of x in forward mode.
func alongElement(t *testing.T, g *ir.Graph, n int, at [2]int, isGradient bool) *ir.Graph {
	t.Helper()
	if isGradient {
		return must(ir.Build("element", func(b *ir.Builder) {
			d := b.Splice(g, []ir.Value{b.Input("x", ir.F64, ir.Dims(n, n)...)})[0]
			b.Output("d", ops.Reshape(b, ops.Slice(b, d, ir.Dims(at[:]...), ir.Dims(1, 1), nil)))
		}))(t)
	}
	one := ir.NewArray(ir.F64, n, n)
	one.F[at[0]*n+at[1]] = 1
	jvp := must(autodiff.JVP(g))(t)
	return must(ir.Build("tangent", func(b *ir.Builder) {
		in := make([]ir.Value, len(jvp.Ports()))
		for i, p := range jvp.Ports() {
			if p.Name == "tangent/x" {
				in[i] = ops.Literal(b, one)
			} else {
				in[i] = b.Input(p.Name, p.Value.DType(), p.Value.Shape()...)
			}
		}
		for i, v := range b.Splice(jvp, in) {
			if jvp.Outputs()[i].Name == autodiff.TangentName(g.Outputs()[0].Name) {
				b.Output("d", v)
			}
		}
	}))(t)
}

// TestSingularMatrices holds what functions of matrices and their first two derivatives are at
// diag(1, 2, 0): finite where the function is smooth there or takes a rank as given, and not
// finite where it has no value, as in JAX and PyTorch.
func TestSingularMatrices(t *testing.T) {
	x := ir.Floats(ir.F64, []float64{1, 0, 0, 0, 2, 0, 0, 0, 0}, 3, 3)
	sum := func(b *ir.Builder, y ir.Value) ir.Value { return ops.ReduceSum(b, y) }
	for name, c := range map[string]struct {
		f      func(b *ir.Builder, x ir.Value) ir.Value
		finite [3]bool // value, first and second derivative
	}{
		"det":             {ops.Det, [3]bool{true, true, true}},
		"cofactor":        {func(b *ir.Builder, x ir.Value) ir.Value { return sum(b, ops.Cofactor(b, x)) }, [3]bool{true, true, true}},
		"pinv":            {func(b *ir.Builder, x ir.Value) ir.Value { return sum(b, ops.Pinv(b, x, -1)) }, [3]bool{true, true, true}},
		"matrix_power 3":  {func(b *ir.Builder, x ir.Value) ir.Value { return sum(b, ops.MatrixPower(b, x, 3)) }, [3]bool{true, true, true}},
		"matrix_power -1": {func(b *ir.Builder, x ir.Value) ir.Value { return sum(b, ops.MatrixPower(b, x, -1)) }, [3]bool{}},
		"inv":             {func(b *ir.Builder, x ir.Value) ir.Value { return sum(b, ops.Inv(b, x)) }, [3]bool{}},
		"solve": {func(b *ir.Builder, x ir.Value) ir.Value {
			return sum(b, ops.Solve(b, x, ops.Ones(b, ir.F64, ir.N(3)), ops.SolveAttrs{}))
		}, [3]bool{}},
		"slogdet": {func(b *ir.Builder, x ir.Value) ir.Value { _, y := ops.Slogdet(b, x); return y }, [3]bool{}},
	} {
		g := must(ir.Build("f", func(b *ir.Builder) { b.Output("y", c.f(b, b.Input("x", ir.F64, ir.Dims(3, 3)...))) }))(t)
		for order, want := range c.finite {
			if order > 0 {
				g = gradientOf(t, g)
				g = must(ir.Build("sum", func(b *ir.Builder) {
					b.Output("y", sum(b, b.Splice(g, []ir.Value{b.Input("x", ir.F64, ir.Dims(3, 3)...)})[0]))
				}))(t)
			}
			out, err := ir.Eval(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if y := out[0].F[0]; (y-y == 0) != want {
				t.Errorf("%s: derivative %d is %v, finite: %t", name, order, y, want)
			}
		}
	}
}
