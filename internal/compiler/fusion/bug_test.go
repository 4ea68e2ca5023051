package fusion_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

const opBroken ir.Op = "test.broken"

func init() {
	if err := ir.Register(&ir.Def{
		Op: opBroken, Operands: []string{"x"}, NoGrad: "a test",
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			return n.InTypes(), nil
		},
		Lower: &ir.MapLowering{Element: func(*ir.Node, int, ir.Index, ir.Load) scalar.Expr { panic("no element") }},
	}); err != nil {
		panic(err)
	}
}

func TestBrokenLoweringIsAnError(t *testing.T) {
	g := build(t, func(b *ir.Builder) { b.Output("y", b.Add1(opBroken, nil, b.Input("x", ir.F32, ir.N(3)))) })
	_, err := fusion.Build(g, fusion.DefaultOptions)
	if err == nil || !strings.Contains(err.Error(), `graph "g"`) || !strings.Contains(err.Error(), "no element") {
		t.Errorf("error %v, which should name the graph and what went wrong", err)
	}
}

func TestCompositesAreRefused(t *testing.T) {
	g := build(t, func(b *ir.Builder) { b.Output("y", ops.Softmax(b, b.Input("x", ir.F32, ir.N(3)), 0)) })
	var e *ir.OpError
	if _, err := fusion.Build(g, fusion.DefaultOptions); !errors.Is(err, ir.ErrUnsupported) || !errors.As(err, &e) || e.Op != ops.OpSoftmax {
		t.Errorf("error %v, want one that names softmax", err)
	}
}

// TestNodesWithoutReadersAreNotComputed has nodes that nothing reads, as rewrites leave some, whose expression reads more values
// than a kernel binds: none of them becomes a group, which would read a reduction that has none.
func TestNodesWithoutReadersAreNotComputed(t *testing.T) {
	size := ir.Dims(4, 8)
	g, err := ir.Transform("unread", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, size...)
		unread := ops.Add(b, ops.BroadcastTo(b, ops.ReduceSum(b, x, 0, 1), size), x)
		for i := range fusion.DefaultOptions.Tensors + 1 {
			name := "x" + strconv.Itoa(i)
			other := b.Input(name, ir.F32, size...)
			unread = ops.Mul(b, unread, other)
			b.Output("negated_"+name, ops.Neg(b, other))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fusion.Build(g, fusion.DefaultOptions); err != nil {
		t.Error(err)
	}
}
