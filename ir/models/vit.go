package models

import (
	"cmp"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// Image describes an encoder of images.
type Image struct {
	Tower
	// Size is the height and width of an image, Patch those of a patch, and Channels the number of
	// channels. What is left of an image beyond whole patches is not read.
	Size, Patch [2]int
	Channels    int
	// NoQKVBias omits the biases of queries, keys and values.
	NoQKVBias bool
	// Head is the head of the encoder, [NoHead] or [LabelHead], and Labels the names of its labels.
	// Independent gives each label an independent probability: see [Probabilities].
	Head        Head
	Labels      []string
	Independent bool
	// Pooler means that the model has a pooler: see [ImagePooler].
	Pooler bool
}

// Check returns nil if the encoder can be built, or an error of kind [lm.ErrConfig].
func (c Image) Check() error {
	err := cmp.Or(c.Tower.Check(), within(
		field{"Size[0]", c.Size[0], 1, maxPixels}, field{"Size[1]", c.Size[1], 1, maxPixels},
		field{"Patch[0]", c.Patch[0], 1, c.Size[0]}, field{"Patch[1]", c.Patch[1], 1, c.Size[1]},
		field{"Channels", c.Channels, 1, maxLayers}, field{"Labels", len(c.Labels), 0, maxLabels},
	))
	switch {
	case err != nil:
		return err
	case c.Head == LabelHead && len(c.Labels) == 0:
		return badConfig("Labels is empty: a head of labels must have them")
	case c.Head != NoHead && c.Head != LabelHead:
		return badConfig("Head is %q: it must be %q or %q", string(c.Head), string(NoHead), string(LabelHead))
	}
	return nil
}

// Patches is the number of patches of an image.
func (c Image) Patches() int {
	return c.Size[0] / max(c.Patch[0], 1) * (c.Size[1] / max(c.Patch[1], 1))
}

var vitBlock = blockNames{
	q: "attention/attention/query", k: "attention/attention/key", v: "attention/attention/value", out: "attention/output/dense",
	norm1: "layernorm_before", norm2: "layernorm_after", up: "intermediate/dense", down: "output/dense",
}

// ImageEncoder returns the hidden states of images, f32[batch, channels, height, width], by ViT (Dosovitskiy
// et al., An Image is Worth 16x16 Words): f32[batch, 1 + patches, width], the class token first. The batch
// may be a symbol. Errors are recorded in b: those of [Image.Check], and of kind [ir.ErrShape] for images
// of another size.
func ImageEncoder(b *ir.Builder, c Image, pixels ir.Value) ir.Value {
	const op ir.Op = "models.image_encoder"
	if !start(b, op, pixels, cmp.Or(c.Check(), c.fits(pixels))) {
		return ir.Value{}
	}
	t := &tower{Builder: b, Tower: c.Tower, blockNames: vitBlock, noQueryBias: c.NoQKVBias, noKeyBias: c.NoQKVBias, normBias: true}
	return nn.In(b, "vit", func() ir.Value {
		x := nn.In(b, "embeddings", func() ir.Value {
			x := linear(b, "patch_embeddings/projection", c.patches(b, pixels), c.Width, true)
			x = classFirst(b, x, b.ParamWith("cls_token", ir.PortOptions{Initial: nn.Normal(0, 0.02)}, ir.F32, ir.Dims(1, 1, c.Width)...))
			return ops.Add(b, x, b.ParamWith("position_embeddings", ir.PortOptions{Initial: nn.Normal(0, 0.02)}, ir.F32, ir.Dims(1, 1+c.Patches(), c.Width)...))
		})
		x = t.stack("encoder/layer", x, func(_ int, x ir.Value) ir.Value { return t.prenorm(x, ir.Value{}) })
		return t.norm("layernorm", x)
	})
}

// ImageHead returns the scores of the labels for the results of [ImageEncoder]: f32[batch, labels]. Errors
// are recorded in b: of kind [ir.ErrUnsupported] for an encoder without a head.
func ImageHead(b *ir.Builder, c Image, hidden ir.Value) ir.Value {
	err := c.Check()
	if err == nil && c.Head == NoHead {
		err = ir.Errorf(ir.ErrUnsupported, "the encoder has no head: its results are hidden states")
	}
	if !start(b, "models.image_head", hidden, err) {
		return ir.Value{}
	}
	return linear(b, "classifier", firstPosition(b, hidden), len(c.Labels), true)
}

// ImagePooler returns ViT's pooler of hidden states, [batch, 1 + patches, width]: the hyperbolic tangent of a
// linear layer of the class token, f32[batch, width]. Errors are recorded in b: of kind
// [ir.ErrUnsupported] for a model without one.
func ImagePooler(b *ir.Builder, c Image, hidden ir.Value) ir.Value {
	err := c.Check()
	if err == nil && !c.Pooler {
		err = ir.Errorf(ir.ErrUnsupported, "the encoder has no pooler")
	}
	if !start(b, "models.image_pooler", hidden, err) {
		return ir.Value{}
	}
	return ops.Tanh(b, linear(b, "vit/pooler/dense", firstPosition(b, hidden), c.Width, true))
}

// fits returns an error for images of another size.
func (c Image) fits(pixels ir.Value) error {
	want := ir.Dims(c.Channels, c.Size[0], c.Size[1])
	if pixels.Valid() && (pixels.Rank() != 4 || !pixels.Shape()[1:].Equal(want)) {
		return ir.Shapef("pixels are %s: they must be [batch, %d, %d, %d]", pixels.Type(), c.Channels, c.Size[0], c.Size[1])
	}
	return nil
}

// patches returns images as rows of patches, [batch, patches, channels·height·width of a patch]. A
// convolution whose stride is its window is a matrix product with these.
func (c Image) patches(b *ir.Builder, pixels ir.Value) ir.Value {
	down, across := c.Size[0]/c.Patch[0], c.Size[1]/c.Patch[1]
	x := ops.SliceAxis(b, pixels, 2, ir.N(0), ir.N(down*c.Patch[0]))
	x = ops.SliceAxis(b, x, 3, ir.N(0), ir.N(across*c.Patch[1]))
	if b.Err() != nil {
		return ir.Value{}
	}
	batch := pixels.Dim(0)
	x = ops.Reshape(b, x, batch, ir.N(c.Channels), ir.N(down), ir.N(c.Patch[0]), ir.N(across), ir.N(c.Patch[1]))
	x = ops.Transpose(b, x, 0, 2, 4, 1, 3, 5)
	return ops.Reshape(b, x, batch, ir.N(down*across), ir.N(c.Channels*c.Patch[0]*c.Patch[1]))
}

// classFirst returns x, [batch, patches, width], with a class token before the patches.
func classFirst(b *ir.Builder, x, class ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	return ops.Concatenate(b, 1, ops.BroadcastTo(b, class, ir.Shape{x.Dim(0), ir.N(1), x.Dim(2)}), x)
}
