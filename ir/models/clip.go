package models

import (
	"cmp"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// ImageText describes CLIP: an encoder of images and texts into vectors that can be compared.
type ImageText struct {
	// Text and Image are the blocks of the towers. Of Text, Family, Types, Head and those for ModernBERT
	// are not used.
	Text  Text
	Image Image
	// Projection is the number of features of a vector.
	Projection int
	// End is the token whose hidden state, at its first occurrence, represents the text. 0 means
	// the token with the largest number, as in files whose eos_token_id is 2.
	End int
}

// Check returns nil if the towers can be built, or an error of kind [lm.ErrConfig].
func (c ImageText) Check() error {
	return cmp.Or(c.Text.Tower.Check(), c.Image.Check(), within(
		field{"Vocabulary", c.Text.Vocabulary, 1, maxTokens}, field{"Context", c.Text.Context, 1, maxTokens},
		field{"Projection", c.Projection, 1, maxFeatures}, field{"End", c.End, 0, maxTokens},
	))
}

var clipBlock = blockNames{
	q: "self_attn/q_proj", k: "self_attn/k_proj", v: "self_attn/v_proj", out: "self_attn/out_proj",
	norm1: "layer_norm1", norm2: "layer_norm2", up: "mlp/fc1", down: "mlp/fc2",
}

// ImageFeatures returns the vectors of images, f32[batch, channels, height, width], by the image tower of
// CLIP (Radford et al., Learning Transferable Visual Models): f32[batch, projection], not of length 1. The
// batch may be a symbol. Errors are recorded in b: those of [ImageText.Check], and of kind [ir.ErrShape]
// for images of another size.
func ImageFeatures(b *ir.Builder, c ImageText, pixels ir.Value) ir.Value {
	if !start(b, "models.image_features", pixels, cmp.Or(c.Check(), c.Image.fits(pixels))) {
		return ir.Value{}
	}
	t := &tower{Builder: b, Tower: c.Image.Tower, blockNames: clipBlock, normBias: true}
	x := nn.In(b, "vision_model", func() ir.Value {
		x := nn.In(b, "embeddings", func() ir.Value {
			x := linear(b, "patch_embedding", c.Image.patches(b, pixels), c.Image.Width, false)
			x = classFirst(b, x, b.ParamWith("class_embedding", ir.PortOptions{Initial: nn.Normal(0, 0.02)}, ir.F32, ir.Dims(c.Image.Width)...))
			rows := 1 + c.Image.Patches()
			return ops.Add(b, x, table(b, "position_embedding", rows, c.Image.Width, 0, ir.N(rows)))
		})
		x = t.norm("pre_layrnorm", x) // the name in the files
		x = t.stack("encoder/layers", x, func(_ int, x ir.Value) ir.Value { return t.prenorm(x, ir.Value{}) })
		return t.norm("post_layernorm", firstPosition(b, x))
	})
	return linear(b, "visual_projection", x, c.Projection, false)
}

// TextFeatures returns the vectors of texts, tokens of [batch, time], by the text tower of CLIP: f32[batch,
// projection], not of length 1. A token sees those before it, so that padding after the end needs no mask.
// Both axes may be symbols. Errors are recorded in b: those of [ImageText.Check], and of kind
// [ir.ErrShape] for tokens of another rank or too many of them.
func TextFeatures(b *ir.Builder, c ImageText, tokens ir.Value) ir.Value {
	err := c.Check()
	if err == nil && tokens.Valid() {
		if n, ok := tokens.Dim(-1).Const(); tokens.Rank() != 2 || ok && n > c.Text.Context {
			err = ir.Shapef("tokens are %s: they must be [batch, time], at most %d positions", tokens.Type(), c.Text.Context)
		}
	}
	if !start(b, "models.text_features", tokens, err) {
		return ir.Value{}
	}
	t := &tower{Builder: b, Tower: c.Text.Tower, blockNames: clipBlock, normBias: true}
	x := nn.In(b, "text_model", func() ir.Value {
		x := nn.In(b, "embeddings", func() ir.Value {
			x := embedding(b, "token_embedding", tokens, c.Text.Vocabulary, c.Text.Width)
			return ops.Add(b, x, table(b, "position_embedding", c.Text.Context, c.Text.Width, 0, tokens.Dim(1)))
		})
		x = t.stack("encoder/layers", x, func(_ int, x ir.Value) ir.Value {
			x = t.plus(x, t.norm1, func(x ir.Value) ir.Value { return t.attend(x, nn.AttentionOptions{Causal: true}) })
			return t.plus(x, t.norm2, t.feed)
		})
		return t.norm("final_layer_norm", c.atEnd(b, x, tokens))
	})
	return linear(b, "text_projection", x, c.Projection, false)
}

// atEnd returns the hidden states, [batch, width], of the tokens that end the texts.
func (c ImageText) atEnd(b *ir.Builder, x, tokens ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	score := tokens
	if c.End != 0 {
		score = ops.Convert(b, ops.Eq(b, tokens, ops.ConstLike(b, tokens, float64(c.End))), ir.I32)
	}
	at := ops.ExpandDims(b, ops.ArgMax(b, score, 1), 1, 2)
	at = ops.BroadcastTo(b, at, ir.Shape{x.Dim(0), ir.N(1), x.Dim(2)})
	return ops.Squeeze(b, ops.TakeAlongAxis(b, x, at, 1, ops.OutsideClip), 1)
}

// Similarity returns the scores of images and texts by their vectors, [images, projection] and [texts,
// projection], of any length: f32[images, texts], the cosine of each pair times the model's scale. Its
// softmax over the texts is what CLIP takes for their probabilities. Errors are recorded in b.
func Similarity(b *ir.Builder, c ImageText, images, texts ir.Value) ir.Value {
	const op ir.Op = "models.similarity"
	if !start(b, op, images, c.Check()) || !start(b, op, texts, nil) {
		return ir.Value{}
	}
	scale := ops.Exp(b, b.ParamWith("logit_scale", ir.PortOptions{Initial: nn.Constant(2.6592)}, ir.F32))
	cosines := ops.MatMul(b, unit(b, images), ops.Transpose(b, unit(b, texts), 1, 0))
	return ops.Mul(b, cosines, scale)
}
