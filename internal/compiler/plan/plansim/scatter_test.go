package plansim_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// opScatterRows sets rows of a matrix: x[indices[p]] = updates[p] for one p after
// the other, indices out of range dropped. Its samples run with those of all ops.
const opScatterRows ir.Op = "test.scatter_rows"

func init() {
	def := scatterRows(opScatterRows, ir.ScatterSet)
	def.Eval = func(_ *ir.EvalContext, _ *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
		out := in[0].Clone()
		width := out.Dims[1]
		for p, row := range in[1].I {
			for w := range width {
				if at, from := int(row)*width+w, p*width+w; row >= 0 && int(row) < out.Dims[0] {
					if out.F != nil {
						out.F[at] = in[2].F[from]
					} else {
						out.I[at] = in[2].I[from]
					}
				}
			}
		}
		return []*ir.Array{out}, nil
	}
	def.Samples = scatterRowsSamples
	if err := ir.Register(def); err != nil {
		panic(err)
	}
}

func scatterRows(op ir.Op, mode ir.ScatterMode) *ir.Def {
	return &ir.Def{
		Op: op, Operands: []string{"x", "indices", "updates"}, NoGrad: "a test", NoTranspose: "a test", NoBatch: "a test",
		Infer: func(n *ir.Node) ([]ir.Type, error) { return n.InTypes()[:1], nil },
		Lower: &ir.ScatterLowering{
			Mode: mode,
			Space: func(n *ir.Node) (positions, window []int) {
				dims, _ := n.Input(2).Shape().Ints()
				return dims[:1], dims[1:]
			},
			Target: func(n *ir.Node, p, w ir.Index, load ir.Load) (ir.Index, scalar.Expr) {
				row, rows := load(1, p), n.Input(0).Dim(0)
				count, _ := rows.Const()
				inside := scalar.And(scalar.Ge(row, scalar.ConstI(ir.I32, 0)), scalar.Lt(row, scalar.ConstI(ir.I32, int64(count))))
				return ir.Index{row, w[0]}, inside
			},
			Update: func(_ *ir.Node, p, w ir.Index) ir.Index { return append(append(ir.Index{}, p...), w...) },
		},
	}
}

func scatterRowsSamples() []ir.Sample {
	sample := func(name string, d ir.DType, rows, width, updates int, index func(p int) int64) ir.Sample {
		x, indices, u := ir.NewArray(d, rows, width), ir.NewArray(ir.I32, updates), ir.NewArray(d, updates, width)
		for i := range indices.I {
			indices.I[i] = index(i)
		}
		for _, a := range []*ir.Array{x, u} {
			for i := range a.F {
				a.F[i] = float64(i%1021 + len(a.F))
			}
			for i := range a.I {
				a.I[i] = int64(i % 2)
			}
		}
		return ir.Sample{Name: name, In: []*ir.Array{x, indices, u}}
	}
	jump := func(p int) int64 { return int64(p*7%5) - 1 }
	return []ir.Sample{
		sample("the last of several", ir.F32, 3, 2, 9, jump),
		sample("all the same", ir.F32, 4, 3, 300, func(int) int64 { return 2 }),
		sample("cut over workgroups", ir.F32, 2, 1, 9000, func(p int) int64 { return int64(p / 4001 % 2) }),
		sample("zeros over numbers", ir.I32, 5, 7, 6, jump),
		sample("booleans", ir.Bool, 3, 3, 4, jump),
		sample("none", ir.F32, 2, 3, 0, jump),
		sample("one", ir.F32, 1, 1, 1, func(int) int64 { return 0 }),
		sample("all outside", ir.F32, 2, 2, 3, func(int) int64 { return -1 }),
	}
}

func TestUnknownScatterModeIsUnsupported(t *testing.T) {
	const op ir.Op = "test.scatter_unknown"
	if err := ir.Register(scatterRows(op, 7)); err != nil {
		t.Fatal(err)
	}
	g := schedtest.Build(t, func(b *ir.Builder) {
		b.Output("y", b.Add1(op, nil, b.Input("x", ir.F32, ir.Dims(3, 2)...), b.Input("i", ir.I32, ir.N(4)), b.Input("u", ir.F32, ir.Dims(4, 2)...)))
	})
	var e *ir.OpError
	if _, err := fusion.Build(g, fusion.DefaultOptions); !errors.Is(err, ir.ErrUnsupported) || !errors.As(err, &e) || e.Op != op {
		t.Errorf("error %v, want one of kind %q that names %s", err, ir.ErrUnsupported, op)
	}
}
