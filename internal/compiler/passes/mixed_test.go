package passes_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// lines returns the text of a graph after the usual passes, a node a line.
func lines(t *testing.T, g *ir.Graph) string {
	t.Helper()
	g, err := passes.Run(g, passes.Options{Verify: ir.Verify})
	if err != nil {
		t.Fatal(err)
	}
	return g.String()
}

func mixed(t *testing.T, half ir.DType, f func(b *ir.Builder)) *ir.Graph {
	t.Helper()
	g, err := ir.Build("f", f)
	if err != nil {
		t.Fatal(err)
	}
	if g, err = passes.Mixed(g, half); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestMixedEqualsHandWrittenGraph compares with the same graph written by hand.
func TestMixedEqualsHandWrittenGraph(t *testing.T) {
	graph := func(name string, wide, narrow func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder) {
		return func(b *ir.Builder) {
			x, w := b.Input("x", ir.F32, ir.Dims(3, 4)...), b.Param("w", ir.F32, ir.Dims(4, 4)...)
			k := b.Input("k", ir.F32, ir.Dims(2, 1, 2, 2)...)
			whole := b.Input("n", ir.I32, ir.Dims(4, 4)...)
			h := wide(b, ops.MatMul(b, narrow(b, x), narrow(b, w)))
			soft := ops.Softmax(b, ops.Relu(b, h), -1)
			y := wide(b, ops.MatMul(b, narrow(b, soft), ops.Transpose(b, narrow(b, w), 1, 0)))
			image := ops.Reshape(b, narrow(b, y), ir.Dims(1, 1, 3, 4)...)
			b.Output("y", y)
			b.Output("conv", wide(b, ops.ConvGeneral(b, image, narrow(b, k), ops.ConvAttrs{})))
			b.Output("whole", ops.MatMul(b, whole, whole))
		}
	}
	same := func(_ *ir.Builder, x ir.Value) ir.Value { return x }
	for _, half := range []ir.DType{ir.F16, ir.BF16} {
		got := mixed(t, half, graph("f", same, same))
		want, err := ir.Build("f", graph("f",
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.Convert(b, x, ir.F32) },
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.Convert(b, x, half) }))
		if err != nil {
			t.Fatal(err)
		}
		if g, w := lines(t, got), lines(t, want); g != w {
			t.Errorf("%s:\n%s\nnot\n%s", half, g, w)
		}
	}
}

func TestMixedReachesIntoSubgraphsAndComposites(t *testing.T) {
	g := mixed(t, ir.BF16, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(2, 2)...), b.Param("w", ir.F32, ir.Dims(2, 2)...)
		body := func(b *ir.Builder, consts, carry, _ []ir.Value) ([]ir.Value, []ir.Value) {
			return []ir.Value{ops.MatMul(b, carry[0], consts[0])}, nil
		}
		out, _ := ops.Scan(b, ops.Loop{Consts: []ir.Value{w}, Carries: []ir.Value{x}, Length: ir.N(3), Body: body})
		q := ops.Reshape(b, out[0], ir.Dims(1, 2, 2)...)
		b.Output("y", ops.Attention(b, q, q, q, ir.Value{}, ops.AttentionAttrs{Causal: true}))
	})
	text := g.String()
	for _, want := range []string{"dot_general(", "attention("} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	eachNode(g, func(n *ir.Node) {
		if op := n.Op(); (op == ops.OpDotGeneral || op == ops.OpAttention) && n.Input(0).DType() != ir.BF16 {
			t.Errorf("%s of %s", op, n.Input(0).Type())
		}
	})
	if o := g.Outputs()[0].Value; o.DType() != ir.F32 {
		t.Errorf("the output is %s", o.Type())
	}
}

// TestMixedSumsLeaveLoops has the weight gradient of a recurrent network: it is one product over all
// steps, rounded once.
func TestMixedSumsLeaveLoops(t *testing.T) {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(7, 2, 3)...), b.Param("w", ir.F32, ir.Dims(3, 3)...)
		out, _ := ops.Scan(b, ops.Loop{
			Consts: []ir.Value{w}, Carries: []ir.Value{ops.Zeros(b, ir.F32, ir.Dims(2, 3)...)}, Xs: []ir.Value{x},
			Body: func(b *ir.Builder, consts, carry, xs []ir.Value) ([]ir.Value, []ir.Value) {
				return []ir.Value{ops.Tanh(b, ops.Add(b, xs[0], ops.MatMul(b, carry[0], consts[0])))}, nil
			},
		})
		b.Output("loss", ops.ReduceSum(b, out[0]))
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{Schedule: optim.Constant(1)})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = passes.Mixed(g, ir.BF16); err != nil {
		t.Fatal(err)
	}
	over := 0
	for _, n := range g.Nodes() {
		if n.Op() == ops.OpDotGeneral && n.Input(0).DType() == ir.BF16 && len(n.Attrs().(*ops.DotAttrs).LhsContract) == 2 {
			over++
		}
	}
	if over != 1 {
		t.Errorf("%d products over all steps, not 1:\n%s", over, g)
	}
}

// TestMixedKeepsFactorisations factors a matrix that is larger than a block, whose body has products.
func TestMixedKeepsFactorisations(t *testing.T) {
	g := mixed(t, ir.BF16, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(100, 100)...)
		l := ops.Cholesky(b, x)
		b.Output("y", ops.MatMul(b, ops.TriangularSolve(b, l, x, ops.TriangularAttrs{LeftSide: true, Lower: true}), x))
	})
	var got []ir.Op
	eachNode(g, func(n *ir.Node) {
		if op := n.Op(); op == ops.OpCholesky || op == ops.OpTriangularSolve || op == ops.OpDotGeneral {
			got = append(got, op)
		}
	})
	if want := []ir.Op{ops.OpCholesky, ops.OpTriangularSolve, ops.OpDotGeneral}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

func eachNode(g *ir.Graph, f func(n *ir.Node)) {
	for _, n := range g.Nodes() {
		f(n)
		for _, sub := range n.Subgraphs() {
			eachNode(sub, f)
		}
	}
}

// TestMixedTrainingStepRoundsEachWeightOnce looks at a whole step of a language
// model: all products are in half, forward and backward, every weight is rounded
// once, and states are f32.
func TestMixedTrainingStepRoundsEachWeightOnce(t *testing.T) {
	loss, err := irtest.GPT{Vocab: 11, Context: 4, Width: 8, Heads: 2, Blocks: 2, Batch: 2}.Loss()
	if err != nil {
		t.Fatal(err)
	}
	step, err := optim.Step(loss, "loss", optim.AdamW{}, optim.Options{ClipNorm: 1})
	if err != nil {
		t.Fatal(err)
	}
	if step, err = passes.Mixed(step, ir.BF16); err != nil {
		t.Fatal(err)
	}
	for _, p := range step.Ports() {
		if p.Value.DType() == ir.BF16 {
			t.Errorf("port %s is %s", p.Name, p.Value.Type())
		}
	}
	claim := func(n *ir.Node) bool { return n.Op() == ops.OpAttentionForward || n.Op() == ops.OpAttentionBackward }
	g, err := passes.Run(step, passes.Options{Claim: claim})
	if err != nil {
		t.Fatal(err)
	}
	rounded, products := map[string]int{}, map[string]int{}
	eachNode(g, func(n *ir.Node) {
		switch n.Op() {
		case ops.OpDotGeneral, ops.OpAttentionForward, ops.OpAttentionBackward:
			products[fmt.Sprint(n.Op(), " of ", n.Input(0).DType())]++
		case ops.OpConvert:
			if p, ok := n.Input(0).Node().Attrs().(*ir.PortAttrs); ok {
				rounded[p.Name]++
			}
		}
	})
	// A block has six products with two derivatives each; so does the head.
	want := map[string]int{"dot_general of bf16": 3 * (2*6 + 1), "attention_forward of bf16": 2, "attention_backward of bf16": 2}
	if fmt.Sprint(products) != fmt.Sprint(want) {
		t.Errorf("products %v, want %v", products, want)
	}
	if n := rounded["block0/up/w"]; n != 1 || len(rounded) != 2*6+1 {
		t.Errorf("weights are rounded %v times", rounded)
	}
}

// TestMixedProductsRoundAndSumAsStated has a product whose value f16 and bf16
// distinguish from f32: closed forms.
func TestMixedProductsRoundAndSumAsStated(t *testing.T) {
	x := []float64{1 + 0x1p-9, 1, 1, 1}
	for half, want := range map[ir.DType]float64{
		ir.F16:  4, // 4 + 2⁻⁹ is not an f16: near 4 these are 2⁻⁸ apart, so it is half way, to even
		ir.BF16: 4, // 1 + 2⁻⁹ is 1 already
	} {
		g := mixed(t, half, func(b *ir.Builder) {
			v := b.Input("x", ir.F32, ir.N(4))
			b.Output("y", ops.MatMul(b, v, ops.OnesLike(b, v)))
			b.Output("sum", ops.ReduceSum(b, v))
		})
		out, err := ir.Eval(g, map[string]*ir.Array{"x": ir.Floats(ir.F32, x)}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := out[0].F[0]; got != want {
			t.Errorf("%s: the product is %v, want %v", half, got, want)
		}
		if got := out[1].F[0]; got != 4+0x1p-9 {
			t.Errorf("%s: the sum is %v", half, got)
		}
	}
}

func TestMixedRefusesOtherTypes(t *testing.T) {
	g, err := ir.Build("f", func(b *ir.Builder) { b.Output("y", b.Input("x", ir.F32)) })
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []ir.DType{ir.F32, ir.F8E4M3, ir.I8, ir.C64} {
		if _, err := passes.Mixed(g, d); !errors.Is(err, ir.ErrDType) {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// TestMixedSumsOperandsOfProducts has a layer's gradient: that of the bias sums the
// rounded elements that the gradient of the weights multiplies, 1 + 2⁻⁹ in bf16 being
// 1. A value that is stored anyway, or has another user, is summed unrounded.
func TestMixedSumsOperandsOfProducts(t *testing.T) {
	x := []float64{1 + 0x1p-9, 1, 1, 1}
	g := mixed(t, ir.BF16, func(b *ir.Builder) {
		v := b.Input("x", ir.F32, ir.Dims(1, 4)...)
		double, other := ops.Add(b, v, v), ops.Mul(b, v, ops.Const(b, ir.F32, 4))
		b.Output("product", ops.MatMul(b, double, ops.Transpose(b, double, 1, 0)))
		b.Output("sum", ops.ReduceSum(b, double))
		b.Output("again", ops.MatMul(b, other, ops.Transpose(b, v, 1, 0)))
		b.Output("sum of another", ops.ReduceSum(b, other))
		b.Output("other", ops.Neg(b, other))
	})
	out, err := ir.Eval(g, map[string]*ir.Array{"x": ir.Floats(ir.F32, x, 1, 4)}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]float64{0: 16, 1: 8, 2: 16, 3: 16 + 0x1p-7} {
		if got := out[i].F[0]; got != want {
			t.Errorf("%s is %v, not %v", g.Outputs()[i].Name, got, want)
		}
	}
}

// TestMixedUnpacksWeightsForManyRows has products with packed weights: those of many rows are of numbers in half
// precision, those of few read the packed weights.
func TestMixedUnpacksWeightsForManyRows(t *testing.T) {
	for rows, want := range map[int]bool{1: false, 8: false, 64: true} {
		g := mixed(t, ir.BF16, func(b *ir.Builder) {
			b.Output("y", ops.QuantizedMatMul(b, b.Input("x", ir.F32, ir.Dims(rows, 64)...), b.Input("w", ir.U8, ir.Dims(8, 36)...), "q4_0"))
		})
		half := slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
			return n.Op() == ops.OpDotGeneral && n.Input(0).DType() == ir.BF16 && n.Input(1).DType() == ir.BF16
		})
		packed := slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return n.Op() == ops.OpQuantizedMatMul })
		if half != want || packed == want {
			t.Errorf("%d rows: a product in bf16 %t, of packed weights %t\n%s", rows, half, packed, g)
		}
	}
}

// TestMixedUnpacksGroupsOfManyRows has grouped products with packed weights: with many rows a group, a loop unpacks one matrix at a time for a
// product in half precision.
func TestMixedUnpacksGroupsOfManyRows(t *testing.T) {
	const groups = 3
	for rows, want := range map[int]bool{groups: false, 128 * groups: true} {
		g := mixed(t, ir.BF16, func(b *ir.Builder) {
			x, w := b.Input("x", ir.F32, ir.Dims(rows, 64)...), b.Input("w", ir.U8, ir.Dims(groups, 8, 36)...)
			b.Output("y", ops.QuantizedGroupedMatMul(b, x, w, b.Input("groups", ir.I32, ir.N(rows)), "q4_0"))
		})
		var half, packed bool
		var look func(g *ir.Graph)
		look = func(g *ir.Graph) {
			for _, n := range g.Nodes() {
				half = half || n.Op() == ops.OpDotGeneral && n.Input(1).Type().Equal(ir.TypeOf(ir.BF16, ir.Dims(8, 64)...))
				packed = packed || n.Op() == ops.OpQuantizedGroupedMatMul
				for _, sub := range n.Subgraphs() {
					look(sub)
				}
			}
		}
		if look(g); half != want || packed == want {
			t.Errorf("%d rows: a product in bf16 %t, of packed weights %t\n%s", rows, half, packed, g)
		}
	}
}

// TestMixedGathersRoundedParts: what products alone use is gathered in half precision, as it is for the forward and
// moved for the backward pass; what others use, too, stays f32.
func TestMixedGathersRoundedParts(t *testing.T) {
	mesh := ops.MeshAttrs{MeshAxis: "data", Devices: 2}
	g := mixed(t, ir.BF16, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(3, 4)...)
		w := ops.AllGather(b, b.Param("w", ir.F32, ir.Dims(2, 5)...), mesh, 0)
		shared := ops.AllGather(b, b.Param("shared", ir.F32, ir.Dims(2, 5)...), mesh, 0)
		y := ops.MatMul(b, x, w)
		b.Output("y", ops.MatMul(b, y, ops.Transpose(b, w, 1, 0)))
		b.Output("z", ops.MatMul(b, x, shared))
		b.Output("norm", ops.ReduceSum(b, ops.Mul(b, shared, shared), 0, 1))
	})
	g, err := passes.Run(g, passes.Options{Claim: ops.IsCollective, Verify: ir.Verify})
	if err != nil {
		t.Fatal(err)
	}
	var got []ir.DType
	for _, n := range g.Nodes() {
		if n.Op() == ops.OpAllGather {
			got = append(got, n.Result(0).DType())
		}
	}
	if !slices.Equal(got, []ir.DType{ir.BF16, ir.F32}) {
		t.Errorf("gathers of %v:\n%s", got, g)
	}
}

// TestMixedConcatenatesRoundedResults: a convolution's result with a bias and the pooled input of a DenseNet's block
// are concatenated in bf16. Where a residual stream or an input is among the operands, or the result is an output, they stay f32, as in f16.
func TestMixedConcatenatesRoundedResults(t *testing.T) {
	joins := func(half ir.DType, f func(b *ir.Builder, result, pooled, x ir.Value) ir.Value) ir.DType {
		g := mixed(t, half, func(b *ir.Builder) {
			x, w := b.Input("x", ir.F32, ir.Dims(1, 4, 4, 2)...), b.Param("w", ir.F32, ir.Dims(1, 1, 2, 2)...)
			result := ops.Conv2D(b, x, w, b.Param("b", ir.F32, ir.N(2)), ops.Conv2DAttrs{})
			pooled := ops.MaxPool(b, ops.Relu(b, result), ops.PoolAttrs{Sizes: []int{1, 1}})
			b.Output("y", f(b, result, pooled, x))
		})
		for _, n := range g.Nodes() {
			if n.Op() == ops.OpConcatenate {
				return n.Result(0).DType()
			}
		}
		t.Fatal("no concatenation:\n", g)
		return 0
	}
	dense := func(b *ir.Builder, result, pooled, _ ir.Value) ir.Value {
		return ops.Exp(b, ops.Concatenate(b, 3, pooled, result))
	}
	if got := joins(ir.BF16, dense); got != ir.BF16 {
		t.Errorf("a dense block's operands are concatenated in %v", got)
	}
	if got := joins(ir.F16, dense); got != ir.F32 {
		t.Errorf("where f16 is the type of products, they are concatenated in %v", got)
	}
	for name, f := range map[string]func(b *ir.Builder, result, pooled, x ir.Value) ir.Value{
		"residual stream": func(b *ir.Builder, result, pooled, _ ir.Value) ir.Value {
			return ops.Exp(b, ops.Concatenate(b, 3, ops.Add(b, pooled, result), result))
		},
		"input": func(b *ir.Builder, result, _, x ir.Value) ir.Value {
			return ops.Exp(b, ops.Concatenate(b, 3, x, result))
		},
		"no product": func(b *ir.Builder, _, pooled, _ ir.Value) ir.Value {
			return ops.Exp(b, ops.Concatenate(b, 3, pooled, pooled))
		},
		"output": func(b *ir.Builder, result, pooled, _ ir.Value) ir.Value { return ops.Concatenate(b, 3, pooled, result) },
	} {
		if got := joins(ir.BF16, f); got != ir.F32 {
			t.Errorf("%s: concatenated in %v", name, got)
		}
	}
}
