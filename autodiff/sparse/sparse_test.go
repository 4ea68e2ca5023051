package sparse_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/sparse"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func build(t *testing.T, f func(b *ir.Builder)) *ir.Graph {
	t.Helper()
	g, err := ir.Build("f", f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// moved returns x with its elements moved on by k along an axis, zeros coming in.
func moved(b *ir.Builder, x ir.Value, axis, k int) ir.Value {
	lo, hi := make([]int, x.Rank()), make([]int, x.Rank())
	lo[axis], hi[axis] = k, -k
	return ops.Pad(b, x, ops.Const(b, x.DType(), 0), lo, hi, make([]int, x.Rank()))
}

// Each of these is a function of "x" with the passes that its derivative takes.
var problems = map[string]struct {
	dims   []int
	f      func(b *ir.Builder, x ir.Value) ir.Value
	passes int // of the Jacobian
	len    int // elements of it that may not be zero
}{
	"elementwise": {[]int{300}, ops.Tanh, 1, 300},
	"heat on a line": {[]int{300}, func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Mul(b, ops.Exp(b, x), ops.Add(b, moved(b, x, 0, 1), moved(b, x, 0, -1)))
	}, 3, 898},
	"band of seven": {[]int{200}, func(b *ir.Builder, x ir.Value) ir.Value {
		y := x
		for k := 1; k <= 3; k++ {
			y = ops.Add(b, y, ops.Sin(b, ops.Add(b, moved(b, x, 0, k), moved(b, x, 0, -k))))
		}
		return y
	}, 7, 7*200 - 2*(1+2+3)},
	"five points of a plane": {[]int{12, 15}, func(b *ir.Builder, x ir.Value) ir.Value {
		sides := ops.Add(b, ops.Add(b, moved(b, x, 0, 1), moved(b, x, 0, -1)), ops.Add(b, moved(b, x, 1, 1), moved(b, x, 1, -1)))
		return ops.Add(b, ops.Mul(b, x, x), sides)
	}, 0, 5*180 - 2*12 - 2*15},
	"convolution": {[]int{1, 1, 40}, func(b *ir.Builder, x ir.Value) ir.Value {
		w := ops.Literal(b, ir.Floats(ir.F64, []float64{1, -2, 1}, 1, 1, 3))
		return ops.Mul(b, x, ops.ConvGeneral(b, x, w, ops.ConvAttrs{PadLo: []int{1}, PadHi: []int{1}}))
	}, 3, 118},
	"products with a triangle of ones": {[]int{20}, func(b *ir.Builder, x ir.Value) ir.Value {
		n := ir.N(20)
		lower := ops.Ge(b, ops.Iota(b, ir.I32, 0, n, n), ops.Iota(b, ir.I32, 1, n, n))
		return ops.MatMul(b, ops.Convert(b, lower, ir.F64), ops.Exp(b, x))
	}, 20, 210},
	"running sums": {[]int{6, 5}, func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.CumSum(b, ops.Exp(b, x), ops.CumSumAttrs{Axis: 1})
	}, 5, 150},
	"elements at known places": {[]int{50}, func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Sin(b, ops.Take(b, x, ops.Literal(b, ir.Ints(ir.I32, []int64{4, 4, 49, 0}, 4)), 0, ops.OutsideClip))
	}, 1, 4},
	"sums of rows": {[]int{9, 8}, func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.ReduceSum(b, ops.Mul(b, x, x), 1)
	}, 1, 72},
	"a comparison in between": {[]int{30}, func(b *ir.Builder, x ir.Value) ir.Value {
		above := ops.Gt(b, ops.ReduceSum(b, x), ops.Const(b, ir.F64, 0))
		return ops.Select(b, ops.BroadcastInDim(b, above, x.Shape(), nil), ops.Sin(b, x), x)
	}, 1, 30},
}

func TestSparseJacobiansEqualDenseInFewPasses(t *testing.T) {
	for name, c := range problems {
		t.Run(name, func(t *testing.T) {
			g := build(t, func(b *ir.Builder) {
				x := b.Input("x", ir.F64, ir.Dims(c.dims...)...)
				b.Output("y", c.f(b, x))
				b.Output("beside", ops.Neg(b, x))
			})
			d, err := sparse.Jacobian(g, "y", "x")
			if err != nil {
				t.Fatal(err)
			}
			if d.Pattern.Len() != c.len {
				t.Errorf("%d elements may not be zero, want %d", d.Pattern.Len(), c.len)
			}
			// Five is the least for five points; taking columns in order may miss it.
			if most := max(c.passes, 1); c.passes > 0 && d.Passes != most || c.passes == 0 && (d.Passes < 5 || d.Passes > 7) {
				t.Errorf("%d passes, want %d", d.Passes, c.passes)
			}
			dense, err := autodiff.JacobianForward(g, "y", "x")
			if err != nil {
				t.Fatal(err)
			}
			compare(t, d, dense, autodiff.JacobianName("y", "x"), c.dims)
		})
	}
}

// compare holds the elements of a sparse matrix, and zeros elsewhere, against the
// dense one.
func compare(t *testing.T, d *sparse.Derivative, dense *ir.Graph, name string, dims []int) {
	t.Helper()
	x := ir.NewArray(ir.F64, dims...)
	for i := range x.F {
		x.F[i] = 0.8 * math.Sin(1+0.7*float64(i))
	}
	in := map[string]*ir.Array{"x": x}
	want, got := output(t, dense, in, name), output(t, d.Graph, in, d.Name)
	whole := make([]float64, len(want.F))
	k := 0
	for i, row := range d.Pattern.Rows {
		if !slices.IsSorted(row) {
			t.Errorf("row %d is not in order", i)
		}
		for _, j := range row {
			whole[i*d.Pattern.Columns+int(j)] = got.F[k]
			k++
		}
	}
	for i, w := range want.F {
		if !(math.Abs(whole[i]-w) <= 1e-12*max(1, math.Abs(w))) {
			t.Fatalf("element %d, %d is %v, want %v", i/d.Pattern.Columns, i%d.Pattern.Columns, whole[i], w)
		}
	}
}

func output(t *testing.T, g *ir.Graph, in map[string]*ir.Array, name string) *ir.Array {
	t.Helper()
	out, err := ir.Eval(g, in, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs() {
		if o.Name == name {
			return out[i]
		}
	}
	t.Fatalf("no output %q", name)
	return nil
}

// TestSparseHessiansEqualDenseInFewPasses takes Rosenbrock's chain, whose
// Hessian has three diagonals, and an arrow: a full row, a full column and the
// diagonal, which columns of different colours would need a pass each for.
func TestSparseHessiansEqualDenseInFewPasses(t *testing.T) {
	first := func(b *ir.Builder, x ir.Value, from, n int) ir.Value {
		return ops.Slice(b, x, ir.Dims(from), ir.Dims(n), []int{1})
	}
	for name, c := range map[string]struct {
		n, passes int
		f         func(b *ir.Builder, x ir.Value) ir.Value
	}{
		"chain": {60, 3, func(b *ir.Builder, x ir.Value) ir.Value {
			u, v := first(b, x, 0, 59), first(b, x, 1, 59)
			d := ops.Sub(b, v, ops.Mul(b, u, u))
			return ops.ReduceSum(b, ops.Add(b, ops.Mul(b, ops.Mul(b, d, d), ops.ConstLike(b, d, 100)), ops.Mul(b, u, u)))
		}},
		"arrow": {40, 2, func(b *ir.Builder, x ir.Value) ir.Value {
			head := ops.Reshape(b, first(b, x, 0, 1))
			return ops.ReduceSum(b, ops.Mul(b, ops.Exp(b, x), ops.BroadcastInDim(b, head, x.Shape(), nil)))
		}},
		"arrow with its head last": {40, 2, func(b *ir.Builder, x ir.Value) ir.Value {
			head := ops.Reshape(b, first(b, x, 39, 1))
			return ops.ReduceSum(b, ops.Mul(b, ops.Exp(b, x), ops.BroadcastInDim(b, head, x.Shape(), nil)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := build(t, func(b *ir.Builder) { b.Output("loss", c.f(b, b.Input("x", ir.F64, ir.N(c.n)))) })
			d, err := sparse.Hessian(g, "loss", "x")
			if err != nil {
				t.Fatal(err)
			}
			if d.Passes != c.passes {
				t.Errorf("%d passes, want %d", d.Passes, c.passes)
			}
			dense, err := autodiff.Hessian(g, "loss", "x")
			if err != nil {
				t.Fatal(err)
			}
			compare(t, d, dense, autodiff.HessianName("x", "x"), []int{c.n})
		})
	}
}

func TestGraphsWithoutPatternAreRefused(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.Sym("n"))
		b.Output("y", ops.Exp(b, x))
		b.Output("i", b.Input("k", ir.I32))
	})
	for name, c := range map[string]struct {
		output, port string
		want         error
	}{
		"symbolic":  {"y", "x", ir.ErrShape},
		"no output": {"z", "x", ir.ErrName},
		"integers":  {"i", "x", ir.ErrDType},
		"no port":   {"y", "z", ir.ErrName},
	} {
		if _, err := sparse.Jacobian(g, c.output, c.port); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want one of kind %v", name, err, c.want)
		}
	}
}

// TestStarColoringOfPaths tries star colourings of random symmetric patterns.
func TestStarColoringOfPaths(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 4 + r.IntN(10)
		p := &sparse.Pattern{Columns: n, Rows: make([][]int32, n)}
		for i := range n {
			for j := range i {
				if r.IntN(3) == 0 {
					p.Rows[i] = append(p.Rows[i], int32(j))
					p.Rows[j] = append(p.Rows[j], int32(i))
				}
			}
		}
		of := p.ColorStars().Of
		for a := range p.Rows {
			for _, b := range p.Rows[a] {
				if of[a] == of[b] {
					t.Fatalf("seed %d: neighbours %d and %d have one colour", seed, a, b)
				}
				for _, c := range p.Rows[b] {
					for _, d := range p.Rows[c] {
						if int(c) != a && d != b && int(d) != a && of[a] == of[c] && of[b] == of[d] {
							t.Fatalf("seed %d: the path %d %d %d %d has two colours", seed, a, b, c, d)
						}
					}
				}
			}
		}
	}
}
