package models

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// modernBERT is ModernBERT (Warner et al., Smarter, Better, Faster, Longer): BERT with rotary
// positions, gated MLPs, norms before the layers, and layers with local attention.
type modernBERT struct{}

func (modernBERT) scope() string { return "model" }

func (m modernBERT) encode(b *ir.Builder, c Text, tokens ir.Value, o TextOptions) ir.Value {
	t := &tower{Builder: b, Tower: c.Tower, normBias: c.NormBias}
	return nn.In(b, m.scope(), func() ir.Value {
		x := t.norm("embeddings/norm", embedding(b, "embeddings/tok_embeddings", tokens, c.Vocabulary, c.Width))
		everywhere := visible(b, o.Mask)
		near := everywhere
		if b.Err() == nil {
			near = ops.WindowMask(b, tokens.Dim(1), tokens.Dim(1), c.Window, c.Window)
			if everywhere.Valid() {
				near = ops.And(b, everywhere, near)
			}
		}
		x = t.stack("layers", x, func(layer int, x ir.Value) ir.Value {
			a := nn.AttentionOptions{Mask: everywhere, Rope: &nn.RopeOptions{Base: c.GlobalBase}}
			if c.Windowed != nil && c.Windowed[layer] {
				a = nn.AttentionOptions{Mask: near, Rope: &nn.RopeOptions{Base: c.LocalBase}}
			}
			x = nn.Residual(b, x, func(x ir.Value) ir.Value {
				if layer > 0 { // the embeddings are normalised already
					x = t.norm("attn_norm", x)
				}
				return m.attend(t, c, x, a)
			})
			return t.plus(x, "mlp_norm", func(x ir.Value) ir.Value { return m.feed(t, c, x) })
		})
		return t.norm("final_norm", x)
	})
}

// attend returns attention with queries, keys and values from one weight.
func (modernBERT) attend(t *tower, c Text, x ir.Value, o nn.AttentionOptions) ir.Value {
	inner := t.Heads * t.HeadSize
	all := linear(t.Builder, "attn/Wqkv", x, 3*inner, c.AttentionBias)
	if t.Err() != nil {
		return ir.Value{}
	}
	parts := ops.SplitEvenly(t.Builder, all, -1, 3)
	o.Name = nn.Here
	y := nn.Attend(t.Builder, t.split(parts[0]), t.split(parts[1]), t.split(parts[2]), o)
	return linear(t.Builder, "attn/Wo", y, t.Width, c.AttentionBias)
}

// feed returns the gated MLP.
func (modernBERT) feed(t *tower, c Text, x ir.Value) ir.Value {
	both := linear(t.Builder, "mlp/Wi", x, 2*t.Hidden, c.MLPBias)
	if t.Err() != nil {
		return ir.Value{}
	}
	parts := ops.SplitEvenly(t.Builder, both, -1, 2)
	y := ops.Mul(t.Builder, activations[t.Activation](t.Builder, parts[0]), parts[1])
	return linear(t.Builder, "mlp/Wo", y, t.Width, c.MLPBias)
}

func (m modernBERT) head(b *ir.Builder, c Text, hidden, mask ir.Value) ir.Value {
	if c.Head == LabelHead {
		by := FirstPooling
		if c.MeanPooled {
			by = MeanPooling
		}
		hidden = Pool(b, hidden, mask, by, false)
	}
	x := linear(b, "head/dense", hidden, c.Width, c.HeadBias)
	x = activations[c.HeadActivation](b, x)
	x = nn.LayerNorm(b, x, nn.NormOptions{Name: "head/norm", Epsilon: c.Epsilon, NoBias: !c.NormBias})
	if c.Head != VocabularyHead {
		return linear(b, "classifier", x, len(c.Labels), true)
	}
	bias := ""
	if c.ScoreBias {
		bias = "decoder/bias"
	}
	return c.scores(b, x, m.scope()+"/embeddings/tok_embeddings", "decoder", bias)
}
