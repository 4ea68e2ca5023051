// Package families has training steps of models of many kinds, small enough for a few cores, to
// measure backends by. The input is the name of a family, the output the graph of a loss and the
// range of its integer inputs.
//
// The same models in PyTorch are families.py, models.py, further.py and unusual.py of native/bench. The file to
// read first is this one; those of [All] are in vision.go, language.go and fields.go, others in the files of those names.
package families

import (
	"slices"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Family is a kind of model.
type Family struct {
	Name string
	// model adds the loss. times multiplies the batch, or the size that takes its place.
	model func(n *net, times int) ir.Value
}

// All are the families, those of images first.
var All = []Family{
	{"residual", residual},
	{"depthwise", depthwise},
	{"convnext", convNeXt},
	{"unet", uNet},
	{"vit", viT},
	{"bert", bert},
	{"llama", llama},
	{"moe", mixture},
	{"mamba", mamba},
	{"gated delta", gatedDelta},
	{"lstm", lstm},
	{"gru", gru},
	{"wavenet", waveNet},
	{"ctc", ctc},
	{"recommender", recommender},
	{"messages", messages},
	{"vae", vae},
	{"gan", gan},
	{"pinn", pinn},
	{"nerf", nerf},
	{"gp", process},
	{"splats", splats},
	{"q learning", qLearning},
	{"tiny parameters", tiny},
	{"chain", chain},
	{"sort", sorted},
}

// Every returns the families of [All], [Further] and [Unusual], whose batches are multiplied, unlike those of [Models].
func Every() []Family { return slices.Concat(All, Further, Unusual) }

// Loss returns the graph of the loss, output "loss", a rank-0 f32, and for each integer input
// the bound that its values are below. times, at least 1, multiplies the batch, the points or
// the edges. All other inputs are f32.
func (f Family) Loss(times int) (g *ir.Graph, below map[string]int, err error) {
	if times < 1 {
		return nil, nil, ir.Attrf("%d times the batch of %s", times, f.Name)
	}
	below = map[string]int{}
	g, err = ir.Build(f.Name, func(b *ir.Builder) { b.Output("loss", f.model(&net{b, below, map[string]ir.Value{}}, times)) })
	return g, below, err
}

// Step returns the graph of a training step by AdamW with a rate of 10⁻³, and the bounds of
// [Family.Loss].
func (f Family) Step(times int) (g *ir.Graph, below map[string]int, err error) {
	g, below, err = f.Loss(times)
	if err == nil {
		g, err = optim.Step(g, "loss", optim.AdamW{}, optim.Options{Schedule: optim.Constant(1e-3)})
	}
	return g, below, err
}

// net adds layers to a builder. A layer has the parameters name/w, name/b, name/scale and so on.
type net struct {
	*ir.Builder
	below  map[string]int
	params map[string]ir.Value
}

func (n *net) floats(name string, dims ...int) ir.Value {
	return n.Input(name, ir.F32, ir.Dims(dims...)...)
}

// ids is an input of integers in [0, below).
func (n *net) ids(name string, below int, dims ...int) ir.Value {
	n.below[name] = below
	return n.Input(name, ir.I32, ir.Dims(dims...)...)
}

// param is a parameter, the same for the same name.
func (n *net) param(name string, dims ...int) ir.Value {
	p, declared := n.params[name]
	if !declared {
		p = n.Param(name, ir.F32, ir.Dims(dims...)...)
		n.params[name] = p
	}
	return p
}

func (n *net) number(x float64) ir.Value { return ops.Const(n.Builder, ir.F32, x) }

// size returns the size of an axis.
func size(x ir.Value, axis int) int {
	k, _ := x.Dim(axis).Const()
	return k
}

func (n *net) reshape(x ir.Value, dims ...int) ir.Value {
	return ops.Reshape(n.Builder, x, ir.Dims(dims...)...)
}

func (n *net) linear(name string, x ir.Value, out int) ir.Value {
	return ops.Linear(n.Builder, x, n.param(name+"/w", size(x, -1), out), n.param(name+"/b", out))
}

// mlp is linear layers with an activation between them.
func (n *net) mlp(name string, x ir.Value, act func(b *ir.Builder, x ir.Value) ir.Value, sizes ...int) ir.Value {
	for i, out := range sizes {
		if i > 0 {
			x = act(n.Builder, x)
		}
		x = n.linear(name+string(rune('0'+i)), x, out)
	}
	return x
}

func (n *net) layerNorm(name string, x ir.Value) ir.Value {
	k := size(x, -1)
	return ops.LayerNorm(n.Builder, x, n.param(name+"/scale", k), n.param(name+"/b", k), 1e-5)
}

// conv is a convolution of images, [batch, height, width, channels], that keeps their size
// divided by the stride.
func (n *net) conv(name string, x ir.Value, window, out, stride, groups int) ir.Value {
	pad := []int{window / 2, window / 2}
	if stride == window {
		pad = []int{0, 0}
	}
	w := n.param(name+"/w", window, window, size(x, 3)/groups, out)
	return ops.Conv2D(n.Builder, x, w, n.param(name+"/b", out), ops.Conv2DAttrs{Strides: []int{stride, stride}, PadLo: pad, PadHi: pad, Groups: groups})
}

// batchNorm normalises over all axes but the last, with running statistics as states.
func (n *net) batchNorm(name string, x ir.Value) ir.Value {
	k := size(x, -1)
	mean, variance := n.State(name+"/mean", ir.F32, ir.N(k)), n.State(name+"/variance", ir.F32, ir.N(k))
	vectors := ops.BatchNormVectors{Scale: n.param(name+"/scale", k), Bias: n.param(name+"/b", k), Mean: mean, Variance: variance}
	y, mean, variance := ops.BatchNormTraining(n.Builder, x, vectors, ops.BatchNormAttrs{})
	n.SetState(name+"/mean", mean)
	n.SetState(name+"/variance", variance)
	return y
}

// classify is the mean cross-entropy of a linear layer against the input "labels".
func (n *net) classify(x ir.Value, classes int) ir.Value {
	var dims []int
	for i := range x.Rank() - 1 {
		dims = append(dims, size(x, i))
	}
	return ops.CrossEntropyMean(n.Builder, n.linear("head", x, classes), n.ids("labels", classes, dims...))
}

// mean is the mean of all elements.
func (n *net) mean(x ir.Value) ir.Value {
	return ops.Mean(n.Builder, x, permute.Counting(0, x.Rank())...)
}

// heads splits the last axis of x, [batch, time, heads·d]: [batch, heads, time, d].
func (n *net) heads(x ir.Value, heads int) ir.Value {
	return ops.Transpose(n.Builder, n.reshape(x, size(x, 0), size(x, 1), heads, size(x, 2)/heads), 0, 2, 1, 3)
}

// joinHeads joins the heads of x, [batch, heads, time, d]: [batch, time, heads·d].
func (n *net) joinHeads(x ir.Value) ir.Value {
	return n.reshape(ops.Transpose(n.Builder, x, 0, 2, 1, 3), size(x, 0), size(x, 2), size(x, 1)*size(x, 3))
}

// attend is self-attention with a residual connection's width.
func (n *net) attend(name string, x ir.Value, heads int, mask ir.Value) ir.Value {
	q, k, v := n.linear(name+"/q", x, size(x, 2)), n.linear(name+"/k", x, size(x, 2)), n.linear(name+"/v", x, size(x, 2))
	y := ops.Attention(n.Builder, n.heads(q, heads), n.heads(k, heads), n.heads(v, heads), mask, ops.AttentionAttrs{})
	return n.linear(name+"/out", n.joinHeads(y), size(x, 2))
}
