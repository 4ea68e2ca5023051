package nn_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestBadOptionsAreRefused gives each layer values outside its domain. The error has its kind and
// names the scope of the layer.
func TestBadOptionsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		kind error
		f    func(b *ir.Builder, x ir.Value) ir.Value
	}{
		"no outputs": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Linear(b, x, 0) }},
		"two options": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Linear(b, x, 2, nn.LinearOptions{}, nn.LinearOptions{})
		}},
		"unknown rule": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Linear(b, x, 2, nn.LinearOptions{Init: ir.Initial{Rule: "he"}})
		}},
		"rule's numbers": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Linear(b, x, 2, nn.LinearOptions{Init: nn.Normal(0, -1)})
		}},
		"integers": {ir.ErrDType, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Linear(b, ops.Convert(b, x, ir.I32), 2) }},
		"symbolic width": {ir.ErrSymbol, func(b *ir.Builder, _ ir.Value) ir.Value {
			return nn.Linear(b, b.Input("s", ir.F32, ir.N(2), ir.Sym("n")), 2)
		}},
		"scalar":         {ir.ErrShape, func(b *ir.Builder, _ ir.Value) ir.Value { return nn.Linear(b, b.Input("s", ir.F32), 2) }},
		"no value":       {ir.ErrGraph, func(b *ir.Builder, _ ir.Value) ir.Value { return nn.Linear(b, ir.Value{}, 2) }},
		"float ids":      {ir.ErrDType, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Embedding(b, x, 3, 2) }},
		"no rows":        {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Embedding(b, ops.Convert(b, x, ir.I32), 0, 2) }},
		"rank of conv":   {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Conv2d(b, x, 2, 3) }},
		"groups of conv": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Conv1d(b, x, 4, 3, nn.ConvOptions{Groups: 3}) }},
		"stride of conv": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Conv1d(b, x, 4, 3, nn.ConvOptions{Stride: []int{0}})
		}},
		"strides of conv": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Conv1d(b, x, 4, 3, nn.ConvOptions{Stride: []int{1, 1}})
		}},
		"kernel": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Conv1d(b, x, 4, 0) }},
		"pads of conv": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Conv1d(b, x, 4, 3, nn.ConvOptions{Same: true, Pad: []int{1}})
		}},
		"padding mode": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Conv1d(b, x, 4, 3, nn.ConvOptions{PaddingMode: "mirror"})
		}},
		"padding mode, transposed": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.ConvTranspose1d(b, x, 4, 3, nn.ConvOptions{PaddingMode: nn.PadReflect})
		}},
		"symbolic size, rounded up": {ir.ErrSymbol, func(b *ir.Builder, _ ir.Value) ir.Value {
			return nn.AvgPool(b, b.Input("s", ir.F32, ir.N(2), ir.Sym("n"), ir.N(1)), 2, nn.PoolOptions{CeilMode: true})
		}},
		"window longer than x, rounded up": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.MaxPool(b, x, 99, nn.PoolOptions{CeilMode: true})
		}},
		"reset before of rnn": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			y, _ := nn.RNN(b, x, 2, nn.RecurrentOptions{ResetBefore: true})
			return y
		}},
		"mode of bags": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.EmbeddingBag(b, ops.Convert(b, x, ir.I32), 3, 2, nn.EmbeddingBagOptions{Mode: "product"})
		}},
		"output pad": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Conv1d(b, x, 4, 3, nn.ConvOptions{OutputPad: []int{1}})
		}},
		"all is cut off": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.ConvTranspose1d(b, x, 4, 3, nn.ConvOptions{Pad: []int{9}})
		}},
		"same, transposed": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.ConvTranspose1d(b, x, 4, 3, nn.ConvOptions{Same: true})
		}},
		"window of pool": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.MaxPool(b, x, 0) }},
		"padding of pool": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.AvgPool(b, x, 2, nn.PoolOptions{CeilMode: true, Pad: []int{1 << 30}})
		}},
		"rank of pool":      {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value { return nn.GlobalAvgPool(b, ops.ReduceSum(b, x, 0)) }},
		"epsilon":           {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.LayerNorm(b, x, nn.NormOptions{Epsilon: -1}) }},
		"groups of norm":    {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.GroupNorm(b, x, 3) }},
		"momentum":          {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.BatchNorm(b, x, nn.BatchNormOptions{Momentum: 2}) }},
		"norm without mode": {ir.ErrGraph, func(b *ir.Builder, x ir.Value) ir.Value { return nn.BatchNorm(b, x) }},
		"batch of one": {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value {
			nn.Train(b)
			return nn.BatchNorm(b, ops.SliceAxis(b, ops.Reshape(b, x, ir.N(10), ir.N(8)), 0, ir.N(0), ir.N(1)))
		}},
		"dropout without mode": {ir.ErrGraph, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Dropout(b, x, 0.5) }},
		"kernel longer than x": {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Conv1d(b, x, 2, 6) }},
		"kernel longer than an image": {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Conv2d(b, ops.Reshape(b, x, ir.Dims(2, 5, 8, 1)...), 2, 7, nn.ConvOptions{Pad: []int{0, 3}})
		}},
		"dropout rate": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Dropout(b, x, 1) }},
		"heads":        {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Attention(b, x, 3) }},
		"key heads": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Attention(b, x, 4, nn.AttentionOptions{KVHeads: 3})
		}},
		"context": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Attention(b, x, 4, nn.AttentionOptions{Context: x, Causal: true})
		}},
		"odd rotation": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Attention(b, x, 8, nn.AttentionOptions{Rope: &nn.RopeOptions{}})
		}},
		"mask": {ir.ErrDType, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Attention(b, x, 4, nn.AttentionOptions{Mask: b.Input("m", ir.I32, ir.Dims(5, 5)...)})
		}},
		"cache without causal": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			nn.Cache(b, 8)
			return nn.Attention(b, x, 4)
		}},
		"no cache":   {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { nn.Cache(b, 0); return x }},
		"activation": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.MLP(b, x, 4, nn.MLPOptions{Activation: "elu"}) }},
		"depth and init": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.TransformerBlock(b, x, 2, nn.TransformerOptions{Depth: 2, Init: nn.HeNormal()})
		}},
		"long positions": {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value { return nn.PositionalEmbedding(b, x, 4) }},
		"no hidden":      {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { y, _ := nn.GRU(b, x, 0); return y }},
		"relu of gru": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			y, _ := nn.GRU(b, x, 2, nn.RecurrentOptions{Relu: true})
			return y
		}},
		"experts":        {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { y, _ := nn.MoE(b, x, 1); return y }},
		"negative state": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Mamba(b, x, nn.MambaOptions{State: -1}) }},
		"rank of lora":   {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value { nn.LoRA(b, nn.LoRAOptions{Rank: -1}, func() {}); return x }},
		"target of lora": {ir.ErrName, func(b *ir.Builder, x ir.Value) (y ir.Value) {
			nn.LoRA(b, nn.LoRAOptions{Targets: []string{"q_prj"}}, func() { y = nn.Linear(b, x, 2, nn.LinearOptions{Name: "q_proj"}) })
			return y
		}},
		"nothing to tie": {ir.ErrName, func(b *ir.Builder, _ ir.Value) ir.Value { return nn.Tie(b, "w") }},
		"residual's shape": {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Residual(b, x, func(x ir.Value) ir.Value { return nn.Linear(b, x, 2) })
		}},
		"no function":        {ir.ErrGraph, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Residual(b, x, nil) }},
		"metric's shape":     {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value { nn.Metric(b, "m", x); return x }},
		"metric's type":      {ir.ErrDType, func(b *ir.Builder, x ir.Value) ir.Value { nn.Metric(b, "m", ops.Const(b, ir.Bool, 1)); return x }},
		"metric's name":      {ir.ErrName, func(b *ir.Builder, x ir.Value) ir.Value { nn.Metric(b, "", ops.Const(b, ir.F32, 1)); return x }},
		"perplexity's shape": {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value { nn.Perplexity(b, x); return x }},
		"labels of a column": {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Accuracy(b, x, b.Input("l", ir.I32, ir.Dims(2, 5, 1)...))
		}},
		"labels of floats": {ir.ErrDType, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Accuracy(b, x, b.Input("l", ir.F32, ir.Dims(2, 5)...))
		}},
		"k above classes": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.TopKAccuracy(b, x, b.Input("l", ir.I32, ir.Dims(2, 5)...), 9)
		}},
		"scores of one class": {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value {
			nn.AUC(b, "auc", ops.Reshape(b, x, ir.Dims(80, 1)...), b.Input("l", ir.I32, ir.N(80)))
			return x
		}},
		"one feature": {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.DotInteraction(b, ops.Reshape(b, x, ir.Dims(10, 1, 8)...))
		}},
		"k of top k": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.TopKAccuracy(b, x, b.Input("l", ir.I32, ir.Dims(2, 5)...), 0)
		}},
		"classes": {ir.ErrAttr, func(b *ir.Builder, x ir.Value) ir.Value {
			labels := ops.Const(b, ir.I32, 0, ir.N(4))
			nn.Confusion(b, "m", labels, labels, 1)
			return x
		}},
		"predictions": {ir.ErrDType, func(b *ir.Builder, x ir.Value) ir.Value {
			nn.Confusion(b, "m", x, ops.Const(b, ir.I32, 0, x.Shape()...), 2)
			return x
		}},
		"labels of auc":  {ir.ErrDType, func(b *ir.Builder, x ir.Value) ir.Value { nn.AUC(b, "m", x, x); return x }},
		"shapes of auc":  {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value { nn.AUC(b, "m", x, ops.Const(b, ir.I32, 0)); return x }},
		"no name of auc": {ir.ErrName, func(b *ir.Builder, x ir.Value) ir.Value { nn.AUC(b, "", x, x); return x }},
		"same name": {ir.ErrName, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Linear(b, nn.Linear(b, x, 8, nn.LinearOptions{Name: "a"}), 8, nn.LinearOptions{Name: "a"})
		}},
		"state in a scan": {ir.ErrGraph, func(b *ir.Builder, x ir.Value) ir.Value {
			nn.Train(b)
			return nn.Stack(b, "s", 2, x, func(b *ir.Builder, x ir.Value) ir.Value { return nn.BatchNorm(b, x) }, nn.StackOptions{Scan: true})
		}},
		"type of a block": {ir.ErrShape, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.Stack(b, "s", 2, x, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Linear(b, x, 2) }, nn.StackOptions{Scan: true})
		}},
	} {
		_, err := graphOf(func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.In(b, "outer", func() ir.Value { return c.f(b, x) })
		})
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, which is not of kind %v", name, err, c.kind)
			continue
		}
		var op *ir.OpError
		if !errors.As(err, &op) || !strings.HasSuffix(op.Pos.File, "layer_test.go") {
			if !slices.Contains([]string{"state in a scan", "type of a block"}, name) { // built by builders of their own
				t.Errorf("%s: %v, without the caller's line", name, err)
			}
			continue
		}
		if !strings.HasPrefix(op.Label, "outer") && !slices.Contains([]string{"no value", "no function", "type of a block"}, name) {
			t.Errorf("%s: %v, without the scope", name, err)
		}
	}
}

// values returns a value for each parameter of the graphs, drawn by its rule.
func values(t *testing.T, graphs ...*ir.Graph) map[string]rlx.Tensor {
	t.Helper()
	all := map[string]rlx.Tensor{}
	for _, g := range graphs {
		var params []string
		for _, p := range g.Ports() {
			if p.Kind == ir.ParamPort {
				params = append(params, p.Name)
			}
		}
		if len(params) == 0 {
			continue
		}
		init, err := rlx.InitGraph(g, params, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := compiled(t, ir.Entry{Name: "init", Graph: init})
		if _, err := p.Call(ctx, "init", rlx.Inputs{rlx.SeedInput: rlx.Uint32(3)}); err != nil {
			t.Fatal(err)
		}
		for _, name := range params {
			x, err := p.Get(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = x
		}
	}
	return all
}

// pattern returns n numbers that look random.
func pattern(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(7*i*i + 3*i)))
	}
	return x
}

// floats returns the elements of an output of an entry.
func floats(t *testing.T, p *rlx.Program, entry, output string, in rlx.Inputs) []float32 {
	t.Helper()
	out, err := p.Call(ctx, entry, in)
	if err != nil {
		t.Fatal(err)
	}
	x, err := out[output].Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// close32 fails unless the values are equal up to a tolerance.
func close32(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, not %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tolerance) {
			t.Fatalf("%s: %v at %d, not %v", what, got[i], i, want[i])
		}
	}
}

// TestDropoutDropsInTrainingOnly counts zeros, checks that each step and each call drops others and
// that inference passes x on without a random state.
func TestDropoutDropsInTrainingOnly(t *testing.T) {
	ones := func(b *ir.Builder) ir.Value { return b.Input("x", ir.F32, ir.N(20000)) }
	train := must(ir.Build("train", func(b *ir.Builder) {
		nn.Train(b)
		b.Output("first", nn.Dropout(b, ones(b), 0.25))
		x, _ := b.Declared("x")
		b.Output("second", nn.Dropout(b, x.Value, 0.25))
	}))
	infer := must(ir.Build("infer", func(b *ir.Builder) {
		nn.Infer(b)
		b.Output("y", nn.Dropout(b, ones(b), 0.25))
	}))
	if n := len(infer.Ports()); n != 1 {
		t.Errorf("inference has %d ports, not its input alone", n)
	}
	p := compiled(t, ir.Entry{Name: "train", Graph: train})
	x := make([]float32, 20000)
	for i := range x {
		x[i] = 3
	}
	in := rlx.Inputs{"x": rlx.Float32s(x)}
	var drawn [][]float32
	for range 2 {
		out, err := p.Call(ctx, "train", in)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"first", "second"} {
			y, _ := out[name].Float32s()
			drawn = append(drawn, y)
		}
	}
	for i, y := range drawn {
		zeros := 0
		for _, v := range y {
			if v == 0 {
				zeros++
			} else if v != 4 {
				t.Fatalf("an element is %v, neither 0 nor 4", v)
			}
		}
		if !(math.Abs(float64(zeros)-5000) <= 5*math.Sqrt(20000*0.25*0.75)) {
			t.Errorf("%d of 20,000 are dropped, not a quarter", zeros)
		}
		for k, other := range drawn[:i] {
			if slices.Equal(y, other) {
				t.Errorf("draws %d and %d are the same", k, i)
			}
		}
	}
}

// TestTheRandomStreamResumes interrupts a training with dropout and resumes it from its checkpoint: the
// losses are those of a training that was not cut.
func TestTheRandomStreamResumes(t *testing.T) {
	loss := must(ir.Build("loss", func(b *ir.Builder) {
		nn.Train(b)
		h := nn.Dropout(b, ops.Relu(b, nn.Linear(b, b.Input("x", ir.F32, ir.Dims(8, 4)...), 16)), 0.5)
		b.Output("loss", ops.ReduceSum(b, ops.Square(b, nn.Linear(b, h, 1))))
	}))
	session := must(rlx.Open("cpu"))
	train := func() *rlx.Trainer {
		tr, err := session.Train(ctx, loss, rlx.Training{Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Program().Close(ctx) })
		return tr
	}
	steps := func(tr *rlx.Trainer, n int) []float32 {
		for range n {
			check(tr.Step(ctx, rlx.Inputs{"x": rlx.Float32s(pattern(32), 8, 4)}))
		}
		return must(tr.Losses(ctx))
	}
	whole := steps(train(), 8)
	first, file := train(), strings.Builder{}
	steps(first, 3)
	check(first.Save(ctx, &file))
	second := train()
	check(second.Load(ctx, strings.NewReader(file.String())))
	if rest := steps(second, 5); !slices.Equal(rest, whole[3:]) {
		t.Errorf("after a cut the losses are %v, not %v", rest, whole[3:])
	}
}

// TestSharedBatchNorm runs a batch norm twice in one run: its statistics move twice, as those of PyTorch's BatchNorm1d, whose
// values these are.
func TestSharedBatchNorm(t *testing.T) {
	g := must(ir.Build("twice", func(b *ir.Builder) {
		nn.Train(b)
		b.Output("first", nn.BatchNorm(b, b.Input("x", ir.F32, ir.Dims(3, 2)...)))
		nn.Shared(b, func() { b.Output("second", nn.BatchNorm(b, b.Input("z", ir.F32, ir.Dims(3, 2)...))) })
	}))
	p := compiled(t, ir.Entry{Name: "f", Graph: g})
	check(p.Load(ctx, map[string]rlx.Tensor{
		"batch_norm0/weight": rlx.Float32s([]float32{1.5, 0.5}), "batch_norm0/bias": rlx.Float32s([]float32{0.25, -1}),
		"batch_norm0/running_mean": rlx.Float32s([]float32{0, 0}), "batch_norm0/running_var": rlx.Float32s([]float32{1, 1}),
	}))
	floats(t, p, "f", "second", rlx.Inputs{
		"x": rlx.Float32s([]float32{1, 2, 3, -1, 2, 5}, 3, 2), "z": rlx.Float32s([]float32{0, 1, 4, 4, -7, 2}, 3, 2),
	})
	for name, want := range map[string][]float32{"running_mean": {0.08, 0.413333327}, "running_var": {4, 1.85333323}} {
		close32(t, name, must(must(p.Get(ctx, "batch_norm0/"+name)).Float32s()), want, 1e-6)
	}
}

// TestTiedParametersAddTheirGradients compares x·w·wᵀ by Tie and by Shared with the product written
// out.
func TestTiedParametersAddTheirGradients(t *testing.T) {
	f := func(tie func(b *ir.Builder, y ir.Value) ir.Value) func(b *ir.Builder, x ir.Value) ir.Value {
		return func(b *ir.Builder, x ir.Value) ir.Value {
			return tie(b, nn.Linear(b, x, 8, nn.LinearOptions{NoBias: true, Name: "w"}))
		}
	}
	forms := map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"tie": f(func(b *ir.Builder, y ir.Value) ir.Value { return ops.MatMul(b, y, nn.Tie(b, "w/weight")) }),
		"shared": f(func(b *ir.Builder, y ir.Value) (z ir.Value) {
			nn.Shared(b, func() { z = nn.Linear(b, y, 8, nn.LinearOptions{NoBias: true, Name: "w"}) })
			return z
		}),
		"weight": func(b *ir.Builder, x ir.Value) ir.Value {
			w := b.Param("w/weight", ir.F32, ir.Dims(8, 8)...)
			for range 2 {
				x = nn.Linear(b, x, 8, nn.LinearOptions{NoBias: true, Weight: w})
			}
			return x
		},
	}
	var want []float32
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		g := must(ir.Build(name, func(b *ir.Builder) {
			y := forms[name](b, b.Input("x", ir.F32, ir.Dims(3, 8)...))
			b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, y)))
		}))
		p := compiled(t, ir.Entry{Name: "f", Graph: must(autodiff.Grad(g, "loss"))})
		check(p.Load(ctx, map[string]rlx.Tensor{"w/weight": rlx.Float32s(pattern(64), 8, 8)}))
		got := floats(t, p, "f", "grad/w/weight", rlx.Inputs{"x": rlx.Float32s(pattern(24), 3, 8)})
		if want == nil {
			want = got
		}
		close32(t, name, got, want, 1e-3)
	}
	// Finite differences of the loss by one element.
	at := func(w []float32) (sum float64) {
		x := pattern(24)
		for i := range 3 {
			row := x[8*i : 8*i+8]
			for range 2 {
				next := make([]float32, 8)
				for k := range row {
					for j := range next {
						next[j] += row[k] * w[8*k+j]
					}
				}
				row = next
			}
			for _, v := range row {
				sum += float64(v) * float64(v)
			}
		}
		return sum
	}
	up, down := pattern(64), pattern(64)
	up[11], down[11] = up[11]+0.01, down[11]-0.01
	if d := (at(up) - at(down)) / 0.02; !(math.Abs(d-float64(want[11])) <= 1e-2*math.Abs(d)) {
		t.Errorf("the gradient is %v, by differences %v", want[11], d)
	}
}

// TestStacksAgree runs blocks unrolled, with checkpoints and as a loop, with the same weights: the
// results and the gradients are the same. The blocks use values and a parameter around them.
func TestStacksAgree(t *testing.T) {
	const n = 3
	form := func(o nn.StackOptions) *ir.Graph {
		return must(ir.Build("stack", func(b *ir.Builder) {
			x, context := b.Input("x", ir.F32, ir.Dims(2, 5, 8)...), b.Input("context", ir.F32, ir.Dims(2, 3, 8)...)
			mask := ops.Gt(b, b.Input("mask", ir.F32, ir.Dims(2, 1, 5, 5)...), ops.Const(b, ir.F32, 0))
			y := nn.Stack(b, "s", n, nn.Linear(b, x, 8, nn.LinearOptions{Name: "in", NoBias: true}), func(b *ir.Builder, x ir.Value) ir.Value {
				x = nn.TransformerBlock(b, x, 2, nn.TransformerOptions{Name: nn.Here, Context: context, Attention: nn.AttentionOptions{Mask: mask}, Hidden: 8})
				return ops.Add(b, x, ops.MatMul(b, x, nn.Tie(b, "in/weight")))
			}, o)
			b.Output("y", y)
			b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, y)))
		}))
	}
	plain := form(nn.StackOptions{})
	weights := values(t, plain)
	stackedWeights := map[string]rlx.Tensor{}
	for name, w := range weights {
		if own, first := strings.CutPrefix(name, "s/0/"); first {
			var all []float32
			for _, i := range "012" {
				all = append(all, must(weights["s/"+string(i)+"/"+own].Float32s())...)
			}
			stackedWeights["s/"+own] = rlx.Float32s(all, append([]int{n}, w.Dims...)...)
		}
	}
	in := rlx.Inputs{"x": rlx.Float32s(pattern(80), 2, 5, 8), "context": rlx.Float32s(pattern(48), 2, 3, 8), "mask": rlx.Float32s(pattern(50), 2, 1, 5, 5)}
	var y, grad, tied []float32
	stackedWeights["in/weight"] = weights["in/weight"]
	for _, o := range []nn.StackOptions{{}, {Checkpoint: true}, {Scan: true}, {Scan: true, Checkpoint: true}} {
		g := must(autodiff.ValueAndGrad(form(o), "loss"))
		p := compiled(t, ir.Entry{Name: "f", Graph: g})
		name, w := "grad/s/1/linear1/weight", weights
		if o.Scan {
			name, w = "grad/s/linear1/weight", stackedWeights
		}
		check(p.Load(ctx, w))
		gotY, gotGrad, gotTied := floats(t, p, "f", "y", in), floats(t, p, "f", name, in), floats(t, p, "f", "grad/in/weight", in)
		if o.Scan {
			gotGrad = gotGrad[len(gotGrad)/n : 2*len(gotGrad)/n]
		}
		if y == nil {
			y, grad, tied = gotY, gotGrad, gotTied
		}
		close32(t, "the result", gotY, y, 1e-5)
		close32(t, "the gradient", gotGrad, grad, 1e-4)
		close32(t, "the gradient of the parameter around", gotTied, tied, 1e-4)
	}
}

// TestStacksDrawInEachBlock trains blocks with dropout as a loop: each block drops others, each
// step too, and optim.Step accepts the key.
func TestStacksDrawInEachBlock(t *testing.T) {
	for _, o := range []nn.StackOptions{{Scan: true}, {Checkpoint: true}, {Scan: true, Checkpoint: true}} {
		g := must(ir.Build("drops", func(b *ir.Builder) {
			nn.Train(b)
			x := b.Input("x", ir.F32, ir.N(4000))
			b.Output("y", nn.Stack(b, "s", 2, x, func(b *ir.Builder, x ir.Value) ir.Value { return nn.Dropout(b, x, 0.5) }, o))
		}))
		p := compiled(t, ir.Entry{Name: "f", Graph: g})
		ones := make([]float32, 4000)
		for i := range ones {
			ones[i] = 1
		}
		in := rlx.Inputs{"x": rlx.Float32s(ones)}
		first, second := floats(t, p, "f", "y", in), floats(t, p, "f", "y", in)
		kept := 0
		for _, v := range first {
			if v != 0 {
				kept++
			}
		}
		// Two blocks that draw independently keep a quarter, two that drop the same elements a half.
		if kept < 850 || kept > 1150 {
			t.Errorf("%+v: two blocks keep %d of 4,000", o, kept)
		}
		if slices.Equal(first, second) {
			t.Errorf("%+v: two steps drop the same", o)
		}
		loss := must(ir.Build("loss", func(b *ir.Builder) {
			nn.Train(b)
			x := nn.Stack(b, "s", 2, b.Input("x", ir.F32, ir.Dims(2, 4)...), func(b *ir.Builder, x ir.Value) ir.Value {
				return nn.Dropout(b, nn.Linear(b, x, 4), 0.5)
			}, o)
			b.Output("loss", ops.ReduceSum(b, x))
		}))
		if _, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{}); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestBlocksNumberTheirKeys by the names of scopes inside of them, as the TypeScript package does (js/test/nn.test.mjs).
func TestBlocksNumberTheirKeys(t *testing.T) {
	for _, o := range []nn.StackOptions{{Scan: true}, {Checkpoint: true}, {Scan: true, Checkpoint: true}} {
		g := must(ir.Build("drops", func(b *ir.Builder) {
			nn.Train(b)
			b.Output("y", nn.Stack(b, "s", 2, b.Input("x", ir.F32, ir.N(4)), func(b *ir.Builder, x ir.Value) ir.Value {
				return nn.In(b, "inner", func() ir.Value { return nn.Dropout(b, x, 0.5) })
			}, o))
		}))
		if !strings.Contains(g.String(), "constant 2522033049 : u32[]") {
			t.Errorf("%+v: %s", o, g)
		}
	}
}

// TestAStackEndsAtTheFirstError, whatever its number of blocks.
func TestAStackEndsAtTheFirstError(t *testing.T) {
	blocks := 0
	_, err := ir.Build("stack", func(b *ir.Builder) {
		nn.Stack(b, "s", math.MaxInt, b.Input("x", ir.F32, ir.N(2)), func(b *ir.Builder, x ir.Value) ir.Value {
			blocks++
			return nn.Linear(b, x, -1)
		})
	})
	if err == nil || blocks != 1 {
		t.Errorf("%d blocks and the error %v", blocks, err)
	}
}
