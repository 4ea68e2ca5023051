package models

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// textModel is a definition of an encoder of texts and its heads.
type textModel interface {
	encode(b *ir.Builder, c Text, tokens ir.Value, o TextOptions) ir.Value
	head(b *ir.Builder, c Text, hidden, mask ir.Value) ir.Value
	// scope is that of the encoder's parameters: the first part of their names.
	scope() string
}

// bert is BERT (Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers) with the names of a
// family.
type bert struct {
	root, words, positions, types, norm string
	blocks                              string
	block                               blockNames
	// labels is the layer of labels; before it are the pooler, or a dense layer of the first token with
	// an activation.
	labels, tokenLabels, dense, denseActivation string
	// vocabulary: a dense layer, a norm, the weight if it is not tied, and the bias of the scores.
	transform, transformNorm, decoder, decoderBias string
}

var bertBlock = blockNames{
	q: "attention/self/query", k: "attention/self/key", v: "attention/self/value", out: "attention/output/dense",
	norm1: "attention/output/LayerNorm", norm2: "output/LayerNorm", up: "intermediate/dense", down: "output/dense",
}

func bertNames() bert {
	return bert{
		root: "bert", words: "embeddings/word_embeddings", positions: "embeddings/position_embeddings", types: "embeddings/token_type_embeddings",
		norm: "embeddings/LayerNorm", blocks: "encoder/layer", block: bertBlock, labels: "classifier", tokenLabels: "classifier",
		transform: "cls/predictions/transform/dense", transformNorm: "cls/predictions/transform/LayerNorm",
		decoder: "cls/predictions/decoder", decoderBias: "cls/predictions/bias",
	}
}

func robertaNames() bert {
	n := bertNames()
	n.root, n.labels, n.dense, n.denseActivation = "roberta", "classifier/out_proj", "classifier/dense", "tanh"
	n.transform, n.transformNorm, n.decoder, n.decoderBias = "lm_head/dense", "lm_head/layer_norm", "lm_head/decoder", "lm_head/bias"
	return n
}

func distilbertNames() bert {
	return bert{
		root: "distilbert", words: "embeddings/word_embeddings", positions: "embeddings/position_embeddings", norm: "embeddings/LayerNorm", blocks: "transformer/layer",
		block: blockNames{
			q: "attention/q_lin", k: "attention/k_lin", v: "attention/v_lin", out: "attention/out_lin",
			norm1: "sa_layer_norm", norm2: "output_layer_norm", up: "ffn/lin1", down: "ffn/lin2",
		},
		labels: "classifier", tokenLabels: "classifier", dense: "pre_classifier", denseActivation: "relu",
		transform: "vocab_transform", transformNorm: "vocab_layer_norm", decoder: "vocab_projector", decoderBias: "vocab_projector/bias",
	}
}

func (n bert) scope() string { return n.root }

func (n bert) encode(b *ir.Builder, c Text, tokens ir.Value, o TextOptions) ir.Value {
	t := &tower{Builder: b, Tower: c.Tower, blockNames: n.block, normBias: true}
	return nn.In(b, n.root, func() ir.Value {
		x := embedding(b, n.words, tokens, c.Vocabulary, c.Width)
		if c.Types > 0 && b.Err() == nil {
			kinds := o.Types
			if !kinds.Valid() {
				kinds = ops.ZerosLike(b, tokens)
			}
			x = ops.Add(b, x, embedding(b, n.types, kinds, c.Types, c.Width))
		}
		x = ops.Add(b, x, table(b, n.positions, c.Context, c.Width, c.Offset, tokens.Dim(1)))
		x = t.norm(n.norm, x)
		mask := visible(b, o.Mask)
		return t.stack(n.blocks, x, func(_ int, x ir.Value) ir.Value { return t.postnorm(x, mask) })
	})
}

// TextPooler returns BERT's pooler of hidden states, [batch, time, width]: the hyperbolic tangent of a
// linear layer of the first token, f32[batch, width]. Errors are recorded in b: of kind
// [ir.ErrUnsupported] for a model without one.
func TextPooler(b *ir.Builder, c Text, hidden ir.Value) ir.Value {
	err := c.Check()
	if err == nil && !c.Pooler {
		err = ir.Errorf(ir.ErrUnsupported, "the %s has no pooler", c.Family)
	}
	if !start(b, "models.text_pooler", hidden, err) {
		return ir.Value{}
	}
	f, _ := familyOf(c.Family)
	return ops.Tanh(b, linear(b, f.text.scope()+"/pooler/dense", firstPosition(b, hidden), c.Width, true))
}

func (n bert) head(b *ir.Builder, c Text, hidden, _ ir.Value) ir.Value {
	switch c.Head {
	case TokenLabelHead:
		return linear(b, n.tokenLabels, hidden, len(c.Labels), true)
	case LabelHead:
		var x ir.Value
		switch n.denseActivation {
		case "":
			x = TextPooler(b, c, hidden)
		case "relu":
			x = ops.Relu(b, linear(b, n.dense, firstPosition(b, hidden), c.Width, true))
		default:
			x = ops.Tanh(b, linear(b, n.dense, firstPosition(b, hidden), c.Width, true))
		}
		return linear(b, n.labels, x, len(c.Labels), true)
	}
	activation := activations[c.Activation]
	if n.root == "roberta" {
		activation = ops.Gelu // parameters of the blocks
	}
	x := activation(b, linear(b, n.transform, hidden, c.Width, true))
	x = nn.LayerNorm(b, x, nn.NormOptions{Name: n.transformNorm, Epsilon: c.Epsilon})
	return c.scores(b, x, n.root+"/"+n.words, n.decoder, n.decoderBias)
}
