package padding

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// models are graphs with open sizes b and s and an output "loss" of rank 0.
var models = map[string]func(b *ir.Builder) ir.Value{
	"gpt": func(b *ir.Builder) ir.Value {
		tokens, labels := b.Input("ids", ir.I32, ir.Sym("b"), ir.Sym("s")), b.Input("labels", ir.I32, ir.Sym("b"), ir.Sym("s"))
		x := nn.Embedding(b, tokens, 11, 8)
		x = nn.PositionalEmbedding(b, x, 16)
		x = nn.TransformerBlock(b, x, 2, nn.TransformerOptions{Causal: true})
		logits := nn.Linear(b, nn.LayerNorm(b, x), 11)
		flat := ops.Reshape(b, logits, ir.Sym("b").Mul(ir.Sym("s")), ir.N(11))
		return ops.CrossEntropyMean(b, flat, ops.Reshape(b, labels, ir.Sym("b").Mul(ir.Sym("s"))))
	},
	"flat mean": func(b *ir.Builder) ir.Value { // its gradient is a number, repeated over all rows and then divided
		x := ops.Square(b, nn.Linear(b, sequence(b), 4))
		return ops.Mean(b, ops.Reshape(b, x, ir.Sym("b").Mul(ir.Sym("s")), ir.N(4)))
	},
	"regrouped": func(b *ir.Builder) ir.Value { // sizes that do not divide one another, beside axes with padding
		x := ops.Reshape(b, nn.Linear(b, sequence(b), 12), ir.Sym("b"), ir.Sym("s"), ir.N(3), ir.N(4))
		x = ops.Transpose(b, ops.Reshape(b, ops.Sin(b, x), ir.Sym("b"), ir.Sym("s"), ir.N(2), ir.N(6)), 0, 2, 3, 1)
		x = ops.Softmax(b, ops.Reshape(b, x, ir.Sym("b"), ir.N(4), ir.N(3), ir.Sym("s")), 3)
		x = ops.Reshape(b, ops.Transpose(b, x, 0, 3, 1, 2), ir.Sym("b"), ir.Sym("s").Mul(ir.N(3)), ir.N(4))
		return ops.Mean(b, ops.Square(b, x))
	},
	"dropout": func(b *ir.Builder) ir.Value {
		nn.Train(b)
		return ops.Mean(b, nn.Dropout(b, nn.Linear(b, sequence(b), 4), 0.3))
	},
	"lstm": func(b *ir.Builder) ir.Value {
		y, h, c := nn.LSTM(b, sequence(b), 4)
		return ops.Add(b, ops.Mean(b, y), ops.Add(b, ops.Mean(b, h), ops.Mean(b, c)))
	},
	"gru": func(b *ir.Builder) ir.Value {
		y, _ := nn.GRU(b, sequence(b), 4, nn.RecurrentOptions{Bidirectional: true})
		return ops.Mean(b, ops.Square(b, y))
	},
	"last step": func(b *ir.Builder) ir.Value {
		x := sequence(b)
		last := ops.SliceAxis(b, x, 1, ir.Sym("s").Sub(ir.N(1)), ir.N(1))
		return ops.Mean(b, ops.Square(b, nn.Linear(b, last, 2)))
	},
	"tokens before and after": func(b *ir.Builder) ir.Value {
		x := sequence(b)
		first := ops.BroadcastTo(b, b.Param("first", ir.F32, ir.Dims(1, 1, 6)...), ir.Shape{ir.Sym("b"), ir.N(1), ir.N(6)})
		x = ops.Concatenate(b, 1, first, x, ops.Neg(b, x), first)
		return ops.Mean(b, ops.Square(b, nn.Attention(b, x, 2)))
	},
	"convolution": func(b *ir.Builder) ir.Value {
		x := nn.Conv1d(b, sequence(b), 4, 3)
		return ops.Mean(b, ops.Square(b, ops.Gelu(b, x)))
	},
	"batch norm": func(b *ir.Builder) ir.Value {
		nn.Train(b)
		return ops.Mean(b, ops.Square(b, nn.Linear(b, nn.BatchNorm(b, b.Input("x", ir.F32, ir.Sym("b"), ir.N(6))), 3)))
	},
	"mamba": func(b *ir.Builder) ir.Value { return ops.Mean(b, ops.Square(b, nn.Mamba(b, sequence(b)))) },
	"loop": func(b *ir.Builder) ir.Value {
		x := sequence(b)
		carries, ys := ops.Scan(b, ops.Loop{
			Carries: []ir.Value{ops.Zeros(b, ir.F32, ir.Sym("b"), ir.N(6))}, Xs: []ir.Value{ops.Transpose(b, x, 1, 0, 2)},
			Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
				sum := ops.Add(b, carries[0], ops.Softmax(b, xs[0], 0)) // over the batch, which needs its true size
				return []ir.Value{sum}, []ir.Value{ops.Tanh(b, sum)}
			},
		})
		return ops.Add(b, ops.Mean(b, ops.Square(b, carries[0])), ops.Mean(b, ys[0]))
	},
	"branch": func(b *ir.Builder) ir.Value {
		x := sequence(b)
		out := ops.Cond(b, ops.Gt(b, ops.Mean(b, x), ops.Const(b, ir.F32, 100)), []ir.Value{x},
			func(b *ir.Builder, in []ir.Value) []ir.Value { return in },
			func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Softmax(b, in[0], 1)} })
		return ops.Mean(b, ops.Square(b, out[0]))
	},
	"while": func(b *ir.Builder) ir.Value {
		out := ops.WhileLoop(b, ops.While{
			Carries: []ir.Value{sequence(b)}, MaxSteps: 6,
			Cond: func(b *ir.Builder, _, carries []ir.Value) ir.Value {
				return ops.Gt(b, ops.ReduceMax(b, ops.Abs(b, carries[0])), ops.Const(b, ir.F32, 0.2))
			},
			Body: func(b *ir.Builder, _, carries []ir.Value) []ir.Value {
				return []ir.Value{ops.Mul(b, carries[0], ops.Const(b, ir.F32, 0.5))}
			},
		})
		return ops.Mean(b, ops.Square(b, out[0]))
	},
}

// sequence is an input of b sequences of s steps.
func sequence(b *ir.Builder) ir.Value { return b.Input("x", ir.F32, ir.Sym("b"), ir.Sym("s"), ir.N(6)) }

// TestModels compares the losses and gradients of models with those of the true sizes.
func TestModels(t *testing.T) {
	for name := range models {
		t.Run(name, func(t *testing.T) {
			if o, err := tryModel(t, name); o != equal {
				t.Error(o, fmt.Sprintf("%.3000v", err))
			}
		})
	}
}

// tryModel compares a model and its gradients.
func tryModel(t *testing.T, name string) (outcome, error) {
	t.Helper()
	g, err := ir.Build(name, func(b *ir.Builder) { b.Output("loss", models[name](b)) })
	if err != nil {
		t.Fatal(err)
	}
	if g, err = autodiff.GradWith(g, autodiff.GradOptions{Loss: "loss", Wrt: wrt(g), Missing: autodiff.MissingIsZero}); err != nil {
		t.Fatal(err)
	}
	sizes, in := map[string]int{"b": 3, "s": 5}, map[string]*ir.Array{}
	if err := addCotangents(g, in, sizes); err != nil {
		t.Fatal(err)
	}
	for _, a := range in {
		for i := range a.I {
			a.I[i] = int64(i*3%11) & 7
		}
	}
	return tryPadded(t, g, in, sizes, irtest.Tolerance{Abs: 1e-4, Rel: 1e-4})
}

// wrt returns the floating ports of a graph.
func wrt(g *ir.Graph) []string {
	var out []string
	for _, p := range g.Ports() {
		if p.Value.DType() == ir.F32 && p.Kind != ir.StatePort {
			out = append(out, p.Name)
		}
	}
	return out
}

// TestEveryPrimitiveHasARule finds ops whose open sizes would be refused for want of a rule.
func TestEveryPrimitiveHasARule(t *testing.T) {
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		_, isLoop := d.Lower.(*ir.ControlLowering)
		derived := d.Scalar != nil || d.Body != nil || isLoop || op == ir.OpPort || op == ir.OpConstant
		if !derived && d.Pad == nil && rules[op] == nil {
			t.Errorf("%s has no rule", op)
		}
	}
}
