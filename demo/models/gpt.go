package models

import (
	"math"
	"strconv"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Names of the inputs and outputs of a GPT.
const (
	Tokens      = "tokens"      // i32[batch,context]
	Next        = "next"        // i32[batch,context]: the tokens that follow them
	Length      = "length"      // i32, the number of tokens of a text
	Temperature = "temperature" // f32 above 0; 1 for the model's own probabilities
	Drawn       = "drawn"       // i32[1], the next token
	Weights     = "weights"     // f32[blocks,heads,context,context]: of attention, from a token (row) to those that it reads
	Expected    = "expected"    // f32[context,vocab]: the probabilities of the token after each one
)

// GPT is a GPT-2 in nanoGPT's variant for characters: no biases, tied token embeddings, learned
// positions.
type GPT struct {
	Vocab, Context, Width, Heads, Blocks, Batch int
	// Dropout is the dropout rate in training: after the embeddings, of attention's weights, and at
	// the end of each residual branch.
	Dropout float64
	// Rate is the maximum learning rate, Steps the number of steps until it has fallen to a tenth.
	Rate  float64
	Steps int
}

// LossGraph returns the graph of the mean cross-entropy of the next token in training. The state
// Key is the random key of the step.
func (m GPT) LossGraph() (*ir.Graph, error) {
	return ir.Build("gpt", func(b *ir.Builder) {
		key := b.State(Key, ir.U32, ir.N(2))
		b.SetState(Key, ops.FoldIn(b, key, ops.Const(b, ir.U32, 0)))
		l := m.layers(b)
		l.key, l.rate = key, m.Dropout
		logits := l.head(m.features(l, m.tokens(b, Tokens, m.Batch)))
		b.Output(Loss, ops.CrossEntropyMean(b, logits, m.tokens(b, Next, m.Batch)))
	})
}

// EvalGraph returns the graph of the same loss without dropout.
func (m GPT) EvalGraph() (*ir.Graph, error) {
	return ir.Build("gpt_eval", func(b *ir.Builder) {
		l := m.layers(b)
		logits := l.head(m.features(l, m.tokens(b, Tokens, m.Batch)))
		b.Output(Loss, ops.CrossEntropyMean(b, logits, m.tokens(b, Next, m.Batch)))
	})
}

// DrawGraph returns the graph that samples the token after the first Length ones of Tokens,
// i32[1,context].
func (m GPT) DrawGraph() (*ir.Graph, error) {
	return ir.Build("gpt_draw", func(b *ir.Builder) {
		tokens, length := m.tokens(b, Tokens, 1), b.Input(Length, ir.I32)
		b.Output(Drawn, m.draw(b, tokens, length, seedKey(b)))
	})
}

// draw samples the token after the first length ones, i32[1]. It declares the input Temperature.
func (m GPT) draw(b *ir.Builder, tokens, length, key ir.Value) ir.Value {
	temperature := b.Input(Temperature, ir.F32)
	l := m.layers(b)
	x := m.features(l, tokens)
	last := ops.Take(b, x, ops.Sub(b, length, ops.Const(b, ir.I32, 1)), 1, ops.OutsideClip)
	return ops.Categorical(b, key, ops.Div(b, l.head(last), temperature), -1)
}

// seedKey declares the input Seed and returns the random key made from it.
func seedKey(b *ir.Builder) ir.Value {
	seed := ops.Reshape(b, b.Input(Seed, ir.U32), ir.N(1))
	return ops.Concatenate(b, 0, ops.Zeros(b, ir.U32, ir.N(1)), seed)
}

// Training returns nanoGPT's training options: AdamW with β₂ 0.99 and decay 0.1, a learning rate
// that rises for 100 steps and falls along a cosine, gradients clipped to norm 1; weights normal
// with deviation 0.02, less before sums.
func (m GPT) Training(seed uint32) rlx.Training {
	o := rlx.Training{
		Optimizer: optim.AdamW{Beta2: 0.99, WeightDecay: 0.1},
		Options: optim.Options{
			ClipNorm: 1,
			Schedule: optim.WarmUp(100, optim.Cosine(m.Rate, m.Rate/10, max(1, m.Steps-100))),
		},
		Seed:      seed,
		StopOnNaN: true,
		Init: map[string]rlx.Initializer{
			Key:         func(_ *ir.Builder, key ir.Value, _ ir.Type) ir.Value { return key },
			"table":     rlx.Normal(0, 0.02),
			"positions": rlx.Normal(0, 0.02),
		},
	}
	last := rlx.Normal(0, 0.02/math.Sqrt(2*float64(m.Blocks)))
	for i := range m.Blocks {
		name := block(i) + "/"
		o.Init[name+"qkv"], o.Init[name+"up"] = rlx.Normal(0, 0.02), rlx.Normal(0, 0.02)
		o.Init[name+"out"], o.Init[name+"down"] = last, last
	}
	return o
}

// Params returns the number of parameters.
func (m GPT) Params() int {
	perBlock := 12*m.Width*m.Width + 2*m.Width
	return (m.Vocab+m.Context)*m.Width + m.Blocks*perBlock + m.Width
}

func block(i int) string { return "block" + strconv.Itoa(i) }

func (m GPT) tokens(b *ir.Builder, name string, rows int) ir.Value {
	return b.Input(name, ir.I32, ir.Dims(rows, m.Context)...)
}

// layers adds layers to a graph and holds their shared values.
type layers struct {
	*ir.Builder
	table   ir.Value // of tokens, f32[vocab,width]
	key     ir.Value
	rate    float64    // dropout rate, 0 outside of training
	drops   int        // so far
	look    bool       // attention appends its weights to weights
	weights []ir.Value // of each block, f32[rows,heads,context,context]
}

func (m GPT) layers(b *ir.Builder) *layers {
	return &layers{Builder: b, table: b.Param("table", ir.F32, ir.Dims(m.Vocab, m.Width)...)}
}

// drop applies dropout to x in training.
func (l *layers) drop(x ir.Value) ir.Value {
	if l.rate == 0 {
		return x
	}
	l.drops++
	return ops.Dropout(l.Builder, x, ops.FoldIn(l.Builder, l.key, ops.Const(l.Builder, ir.U32, float64(l.drops))), l.rate)
}

// dense is a layer without a bias.
func (l *layers) dense(name string, x ir.Value, out int) ir.Value {
	in, _ := x.Dim(-1).Const()
	return ops.MatMul(l.Builder, x, l.Param(name, ir.F32, ir.Dims(in, out)...))
}

func (l *layers) norm(name string, x ir.Value) ir.Value {
	return ops.LayerNorm(l.Builder, x, l.Param(name, ir.F32, x.Dim(-1)), ops.Zeros(l.Builder, ir.F32, x.Dim(-1)), 1e-5)
}

// head returns the scores of all tokens.
func (l *layers) head(x ir.Value) ir.Value {
	return ops.MatMul(l.Builder, x, ops.Transpose(l.Builder, l.table, 1, 0))
}

// features returns the hidden state of each token, f32[rows,context,width].
func (m GPT) features(l *layers, tokens ir.Value) ir.Value {
	b := l.Builder
	x := ops.Add(b, ops.Embedding(b, l.table, tokens), b.Param("positions", ir.F32, ir.Dims(m.Context, m.Width)...))
	x = l.drop(x)
	for i := range m.Blocks {
		b.Scope(block(i), func() { x = m.block(l, x) })
	}
	return l.norm("norm", x)
}

func (m GPT) block(l *layers, x ir.Value) ir.Value {
	b := l.Builder
	rows := x.Dim(0)
	qkv := l.dense("qkv", l.norm("norm1", x), 3*m.Width)
	qkv = ops.Reshape(b, qkv, rows, ir.N(m.Context), ir.N(3), ir.N(m.Heads), ir.N(m.Width/m.Heads))
	qkv = ops.Transpose(b, qkv, 2, 0, 3, 1, 4)
	part := func(i int) ir.Value {
		return ops.Squeeze(b, ops.SliceAxis(b, qkv, 0, ir.N(i), ir.N(1)), 0)
	}
	a := ops.Reshape(b, ops.Transpose(b, l.attention(part(0), part(1), part(2)), 0, 2, 1, 3), rows, ir.N(m.Context), ir.N(m.Width))
	x = ops.Add(b, x, l.drop(l.dense("out", a, m.Width)))
	h := ops.Gelu(b, l.dense("up", l.norm("norm2", x), 4*m.Width))
	return ops.Add(b, x, l.drop(l.dense("down", h, m.Width)))
}

// attention is causal attention of f32[rows,heads,context,features]. With dropout, and to look at its
// weights, it is composed of other ops, since [ops.Attention] has neither.
func (l *layers) attention(q, k, v ir.Value) ir.Value {
	b := l.Builder
	if l.rate == 0 && !l.look {
		return ops.Attention(b, q, k, v, ir.Value{}, ops.AttentionAttrs{Causal: true})
	}
	features, _ := q.Dim(-1).Const()
	q = ops.Mul(b, q, ops.ConstLike(b, q, 1/math.Sqrt(float64(features))))
	scores := ops.MatMul(b, q, ops.Transpose(b, k, 0, 1, 3, 2))
	at := func(axis int) ir.Value { return ops.Iota(b, ir.I32, axis, scores.Shape()...) }
	seen := ops.Select(b, ops.Ge(b, at(2), at(3)), scores, ops.ConstLike(b, scores, math.Inf(-1)))
	weights := ops.Softmax(b, seen, -1)
	if l.look {
		l.weights = append(l.weights, weights)
	}
	return ops.MatMul(b, l.drop(weights), v)
}
