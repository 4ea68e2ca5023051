package conformance

import (
	"math"
	"math/rand/v2"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// model is a graph that combines many ops.
type model struct {
	name string
	// build adds the model. If it has an output "loss", training minimises that.
	build func(b *ir.Builder)
	use   use
	// steps is the number of runs, each with new inputs.
	steps int
	// scoreBytes is the target's.
	scoreBytes int
}

// use is how a model's graph is used.
type use uint8

const (
	inference use = iota // run as it is
	gradient             // run with its VJP
	training             // trained with Adam on its output "loss"
)

// models lists graphs that exercise several passes together.
var models = []model{
	{name: "mlp adam", build: mlp, use: training, steps: 5},
	{name: "cnn adam", build: cnn, use: training, steps: 3},
	{name: "rnn adam", build: rnn, use: training, steps: 3},
	{name: "attention", build: attention, use: gradient, steps: 1},
	{name: "causal attention", build: causalAttention, use: gradient, steps: 1},
	{name: "attention in blocks", build: biasedAttention, use: gradient, steps: 1, scoreBytes: 1},
	{name: "layer norm", build: layerNorm, use: gradient, steps: 1},
	{name: "embedding", build: embedding, use: gradient, steps: 1},
	{name: "dropout", build: dropout, use: gradient, steps: 1},
	{name: "random numbers", build: randomNumbers, use: inference, steps: 2},
	{name: "running mean", build: runningMean, use: inference, steps: 4},
	{name: "long sums", build: longSums, use: gradient, steps: 1},
	{name: "matrix products", build: matrixProducts, use: gradient, steps: 1},
	{name: "loops without a bound", build: unboundedLoops, use: inference, steps: 3},
}

func mlp(b *ir.Builder) {
	x, labels := b.Input("x", ir.F32, ir.Dims(16, 20)...), b.Input("labels", ir.I32, ir.N(16))
	h := x
	for i, w := range []ir.Value{b.Param("w0", ir.F32, ir.Dims(20, 33)...), b.Param("w1", ir.F32, ir.Dims(33, 4)...)} {
		bias := b.Param([]string{"b0", "b1"}[i], ir.F32, w.Dim(1))
		if h = ops.Linear(b, h, w, bias); i == 0 {
			h = ops.Relu(b, h)
		}
	}
	b.Output("loss", ops.CrossEntropyMean(b, h, labels))
}

func cnn(b *ir.Builder) {
	x, labels := b.Input("x", ir.F32, ir.Dims(4, 8, 8, 2)...), b.Input("labels", ir.I32, ir.N(4))
	k, bias := b.Param("k", ir.F32, ir.Dims(3, 3, 2, 5)...), b.Param("bias", ir.F32, ir.N(5))
	h := ops.Conv2D(b, x, k, bias, ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}})
	h = ops.MaxPool(b, ops.Relu(b, h), ops.PoolAttrs{Sizes: []int{2, 2}})
	w, c := b.Param("w", ir.F32, ir.Dims(80, 4)...), b.Param("c", ir.F32, ir.N(4))
	b.Output("loss", ops.CrossEntropyMean(b, ops.Linear(b, ops.Reshape(b, h, ir.Dims(4, 80)...), w, c), labels))
}

// rnn reads a sequence and is trained on its last state.
func rnn(b *ir.Builder) {
	xs, target := b.Input("x", ir.F32, ir.Dims(7, 3, 5)...), b.Input("target", ir.F32, ir.Dims(3, 6)...)
	wx, wh := b.Param("wx", ir.F32, ir.Dims(5, 6)...), b.Param("wh", ir.F32, ir.Dims(6, 6)...)
	last, _ := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{wx, wh}, Carries: []ir.Value{ops.Zeros(b, ir.F32, ir.Dims(3, 6)...)}, Xs: []ir.Value{xs},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			h := ops.Tanh(b, ops.Add(b, ops.MatMul(b, xs[0], consts[0]), ops.MatMul(b, carries[0], consts[1])))
			return []ir.Value{h}, nil
		},
	})
	d := ops.Sub(b, last[0], target)
	b.Output("loss", ops.Mean(b, ops.Mul(b, d, d)))
}

func attention(b *ir.Builder) {
	attend(b, ops.AttentionAttrs{Scale: 1 / math.Sqrt(8)}, 13, 11, ir.Value{})
}

func causalAttention(b *ir.Builder) {
	attend(b, ops.AttentionAttrs{Scale: 0.5, Softcap: 5, Causal: true}, 9, 9, ir.Value{})
}

// biasedAttention has more queries and keys than a block.
func biasedAttention(b *ir.Builder) {
	attend(b, ops.AttentionAttrs{Scale: 0.5, Softcap: 5, Causal: true}, 70, 75, b.Input("bias", ir.F32, ir.Dims(4, 1, 75)...))
}

// attend has two heads of queries to one of keys and values.
func attend(b *ir.Builder, a ops.AttentionAttrs, queries, keys int, mask ir.Value) {
	q := b.Input("q", ir.F32, ir.Dims(2, 4, queries, 8)...)
	k, v := b.Input("k", ir.F32, ir.Dims(2, 2, keys, 8)...), b.Input("v", ir.F32, ir.Dims(2, 2, keys, 6)...)
	b.Output("y", ops.Attention(b, q, k, v, mask, a))
}

func layerNorm(b *ir.Builder) {
	x := b.Input("x", ir.F32, ir.Dims(70, 65)...)
	b.Output("y", ops.LayerNorm(b, x, b.Input("scale", ir.F32, ir.N(65)), b.Input("bias", ir.F32, ir.N(65)), 1e-5))
}

// embedding reads rows, some of them often: its gradient is a scatter.
func embedding(b *ir.Builder) {
	table, ids := b.Input("table", ir.F32, ir.Dims(4, 9)...), b.Input("ids", ir.I32, ir.Dims(5, 7)...)
	b.Output("y", ops.Softmax(b, ops.Embedding(b, table, ids), -1))
}

func dropout(b *ir.Builder) {
	x, key := b.Input("x", ir.F32, ir.Dims(30, 41)...), b.Input("key", ir.U32, ir.N(2))
	b.Output("y", ops.Dropout(b, x, key, 0.3))
}

// randomNumbers draws exact random bits and converts them to numbers. The key is a state
// that is split in every run.
func randomNumbers(b *ir.Builder) {
	keys := ops.SplitKey(b, b.State("key", ir.U32, ir.N(2)), ir.N(2))
	row := func(i int) ir.Value { return ops.Squeeze(b, ops.SliceAxis(b, keys, 0, ir.N(i), ir.N(1)), 0) }
	b.SetState("key", row(0))
	b.Output("bits", ops.RandomBits(b, row(1), ir.Dims(33, 17)...))
	b.Output("uniform", ops.Uniform(b, row(1), ir.F32, ir.N(501)))
	b.Output("normal", ops.Normal(b, row(1), ir.F32, ir.N(501)))
	b.Output("both", ops.ThreefryBoth.Bits(b, row(1), ir.Dims(33, 17)...))
	b.Output("both-13", ops.ThreefryBoth13.Bits(b, row(1), ir.N(1<<14)))
	b.Output("normal-both", ops.ThreefryBoth.Normal(b, row(1), ir.F32, ir.N(501)))
}

// runningMean reads states before, during and after their update.
func runningMean(b *ir.Builder) {
	mean, count := b.State("mean", ir.F32, ir.Dims(6, 50)...), b.State("count", ir.I32)
	x := b.Input("x", ir.F32, ir.Dims(6, 50)...)
	next := ops.Add(b, count, ops.Const(b, ir.I32, 1))
	moved := ops.Add(b, mean, ops.Div(b, ops.Sub(b, x, mean), ops.Convert(b, next, ir.F32)))
	b.SetState("mean", moved)
	b.SetState("count", next)
	b.Output("before", ops.ReduceMax(b, ops.Reverse(b, mean, 1), 0))
	b.Output("after", ops.ReduceSum(b, moved, 1))
}

// longSums has reductions that are split over workgroups.
func longSums(b *ir.Builder) {
	x := b.Input("x", ir.F32, ir.Dims(3, 5003)...)
	b.Output("sum", ops.ReduceSum(b, x))
	b.Output("rows", ops.ReduceSum(b, x, 1))
	b.Output("softmax", ops.Softmax(b, x, 1))
	b.Output("greatest", ops.ReduceMax(b, x, 1))
}

// matrixProducts has sizes below, at and above the tile sizes.
func matrixProducts(b *ir.Builder) {
	for i, n := range [][3]int{{130, 67, 65}, {1, 300, 70}, {64, 64, 64}, {200, 33, 1}} {
		name := func(s string) string { return s + string(rune('0'+i)) }
		x, y := b.Input(name("x"), ir.F32, ir.Dims(n[0], n[1])...), b.Input(name("y"), ir.F32, ir.Dims(n[1], n[2])...)
		b.Output(name("z"), ops.MatMul(b, x, y))
	}
}

// unboundedLoops counts up to a number: alone, in each step of a scan, in a branch.
func unboundedLoops(b *ir.Builder) {
	upTo := func(b *ir.Builder, x ir.Value, least float64) ir.Value {
		return ops.WhileLoop(b, ops.While{
			Carries: []ir.Value{x},
			Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value {
				return ops.Lt(b, c[0], ops.Const(b, ir.F32, least))
			},
			Body: func(b *ir.Builder, _, c []ir.Value) []ir.Value {
				return []ir.Value{ops.Add(b, c[0], ops.Const(b, ir.F32, 1))}
			},
		})[0]
	}
	x := b.Input("x", ir.F32, ir.N(3))
	first := ops.ReduceMax(b, x)
	b.Output("alone", upTo(b, first, 70)) // about 70 iterations, several checks of the condition
	_, each := ops.Scan(b, ops.Loop{Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, _, xs []ir.Value) (next, ys []ir.Value) {
		return nil, []ir.Value{upTo(b, xs[0], 3)}
	}})
	b.Output("each", each[0])
	b.Output("branch", ops.Cond(b, ops.Gt(b, first, ops.Const(b, ir.F32, 0.5)), []ir.Value{first},
		func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{upTo(b, in[0], 12)} },
		func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Neg(b, in[0])} })[0])
}

// graph returns the model's graph for its use.
func (m model) graph() (*ir.Graph, error) {
	g, err := ir.Build(m.name, m.build)
	if err != nil {
		return nil, err
	}
	switch m.use {
	case gradient:
		return autodiff.VJP(g)
	case training:
		return optim.Step(g, "loss", optim.Adam{}, optim.Options{})
	}
	return g, nil
}

// module runs the model on random values.
func (m model) module() (*Module, error) {
	g, err := m.graph()
	if err != nil {
		return nil, err
	}
	c := Case{Name: "model " + m.name, Entry: "run", State: map[string]*ir.Array{}}
	rng := rand.New(rand.NewPCG(3, 4))
	values := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		if p.Kind == ir.InputPort {
			continue
		}
		dims, _ := p.Value.Shape().Ints()
		if values[p.Name] = ir.NewArray(p.Value.DType(), dims...); !optim.IsState(p) {
			values[p.Name] = random(rng, p.Value.Type(), 0.5)
		}
		c.State[p.Name] = values[p.Name]
	}
	for range m.steps {
		run, err := m.run(g, rng, values)
		if err != nil {
			return nil, err
		}
		c.Runs = append(c.Runs, *run)
	}
	module, err := ir.NewModule("model "+m.name, ir.Entry{Name: c.Entry, Graph: g})
	return &Module{Module: module, ScoreBytes: m.scoreBytes, Cases: []Case{c}}, err
}

// learningRate is the learning rate of trained models.
const learningRate = 0.01

// run draws inputs, computes the expected results, and advances the states.
func (m model) run(g *ir.Graph, rng *rand.Rand, values map[string]*ir.Array) (*Run, error) {
	run := &Run{Inputs: map[string]*ir.Array{}}
	for _, p := range g.Ports() {
		if p.Kind != ir.InputPort {
			continue
		}
		a := random(rng, p.Value.Type(), 1)
		if p.Name == optim.RateInput {
			a = ir.Float(ir.F32, learningRate)
		}
		run.Inputs[p.Name], values[p.Name] = a, a
	}
	want, err := ir.Eval(g, values, ir.EvalOptions{Reference: true})
	if err != nil {
		return nil, err
	}
	for i, o := range g.Outputs() {
		run.Want = append(run.Want, Result{Output: o.Name, About: m.name, Array: want[i], Tolerance: irtest.LooseToleranceFor(want[i].DType)})
		if o.State {
			values[o.Name] = want[i]
		}
	}
	return run, nil
}
