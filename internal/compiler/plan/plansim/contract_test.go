package plansim_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// position returns the offset of the element in row m and column n of a matrix product in row-major
// order.
type position func(m, n scalar.Expr, rows, columns int) scalar.Expr

func times(x scalar.Expr, by int) scalar.Expr { return scalar.Mul(x, scalar.ConstI(ir.I32, int64(by))) }

func rowMajor(m, n scalar.Expr, _, columns int) scalar.Expr {
	return scalar.Add(times(m, columns), n)
}

func columnMajor(m, n scalar.Expr, rows, _ int) scalar.Expr { return scalar.Add(m, times(n, rows)) }

// flatProduct multiplies matrices and returns the elements in one axis.
func flatProduct(op ir.Op, at position) *ir.Def {
	sizes := func(n *ir.Node) (m, k, c int) {
		a, _ := n.Input(0).Shape().Ints()
		b, _ := n.Input(1).Shape().Ints()
		return a[0], a[1], b[1]
	}
	return &ir.Def{
		Op: op, Operands: []string{"a", "b"}, NoGrad: "a test", NoTranspose: "a test", NoBatch: "a test",
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			m, _, c := sizes(n)
			return []ir.Type{ir.TypeOf(n.Input(0).DType(), ir.N(m*c))}, nil
		},
		Lower: &ir.ContractLowering{Spec: func(node *ir.Node) ir.Contraction {
			m, k, c := sizes(node)
			return ir.Contraction{
				M: []int{m}, N: []int{c}, K: []int{k}, Acc: node.Input(0).DType(),
				A:   func(_, free, k ir.Index) (ir.Index, scalar.Expr) { return ir.Index{free[0], k[0]}, nil },
				B:   func(_, free, k ir.Index) (ir.Index, scalar.Expr) { return ir.Index{k[0], free[0]}, nil },
				Out: func(_, row, column ir.Index) ir.Index { return ir.Index{at(row[0], column[0], m, c)} },
			}
		}},
	}
}

// evalFlat is the reference implementation of a flat product.
func evalFlat(place func(i, j, rows, columns int) int) func(*ir.EvalContext, *ir.Node, []*ir.Array) ([]*ir.Array, error) {
	return func(c *ir.EvalContext, _ *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
		a, b := in[0], in[1]
		rows, inner, columns := a.Dims[0], a.Dims[1], b.Dims[1]
		out := ir.NewArray(a.DType, rows*columns)
		for i := range rows {
			for j := range columns {
				for k := range inner {
					out.F[place(i, j, rows, columns)] += a.F[i*inner+k] * b.F[k*columns+j]
				}
			}
		}
		return []*ir.Array{c.Round(out)}, nil
	}
}

func init() {
	for op, d := range map[ir.Op]struct {
		at    position
		place func(i, j, rows, columns int) int
	}{
		"test.rows":    {rowMajor, func(i, j, _, columns int) int { return i*columns + j }},
		"test.columns": {columnMajor, func(i, j, rows, _ int) int { return j*rows + i }},
	} {
		def := flatProduct(op, d.at)
		def.Eval = evalFlat(d.place)
		def.Samples = func() (out []ir.Sample) {
			for _, size := range [][3]int{{3, 4, 5}, {1, 3, 7}, {7, 3, 1}, {1, 2, 1}, {40, 33, 70}} {
				a, b := ir.NewArray(ir.F32, size[0], size[1]), ir.NewArray(ir.F32, size[1], size[2])
				for _, x := range []*ir.Array{a, b} {
					for i := range x.F {
						x.F[i] = float64(i*7%11) - 5
					}
				}
				out = append(out, ir.Sample{Name: ir.Dims(size[:]...).String(), In: []*ir.Array{a, b}})
			}
			return out
		}
		if err := ir.Register(def); err != nil {
			panic(err)
		}
	}
}

// TestContractionsWithoutTransposeAreUnsupported has results whose positions do not distinguish
// rows from columns.
func TestContractionsWithoutTransposeAreUnsupported(t *testing.T) {
	for op, at := range map[ir.Op]position{
		"test.sum":        func(m, n scalar.Expr, _, _ int) scalar.Expr { return scalar.Add(m, n) },
		"test.overlap":    func(m, n scalar.Expr, _, columns int) scalar.Expr { return scalar.Add(times(m, columns-1), n) },
		"test.row_only":   func(m, _ scalar.Expr, _, _ int) scalar.Expr { return m },
		"test.row_twice":  func(m, _ scalar.Expr, rows, _ int) scalar.Expr { return scalar.Add(times(m, rows), m) },
		"test.difference": func(m, n scalar.Expr, _, columns int) scalar.Expr { return scalar.Sub(times(m, columns), n) },
	} {
		if err := ir.Register(flatProduct(op, at)); err != nil {
			t.Fatal(err)
		}
		g := schedtest.Build(t, func(b *ir.Builder) {
			b.Output("y", b.Add1(op, nil, b.Input("a", ir.F32, ir.Dims(3, 4)...), b.Input("b", ir.F32, ir.Dims(4, 5)...)))
		})
		var e *ir.OpError
		if _, err := fusion.Build(g, fusion.DefaultOptions); !errors.Is(err, ir.ErrUnsupported) || !errors.As(err, &e) || e.Op != op {
			t.Errorf("%s: error %v, want one of kind %q that names it", op, err, ir.ErrUnsupported)
		}
	}
}
