package models

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
)

// Declare adds the whole model to a graph, with its head, for small inputs: it declares every parameter.
// Errors are those of [Config.Check].
func (c Config) Declare(b *ir.Builder) {
	if err := c.Check(); err != nil {
		b.Fail(err)
		return
	}
	tokens := func() ir.Value { return b.Input("tokens", ir.I32, ir.Dims(1, 1)...) }
	pixels := func(i Image) ir.Value {
		return b.Input("pixels", ir.F32, ir.Dims(1, i.Channels, i.Size[0], i.Size[1])...)
	}
	switch c.Kind() {
	case TextKind:
		hidden := TextEncoder(b, *c.Text, tokens())
		b.Output("hidden", hidden)
		if c.Text.Pooler && c.Text.Head != LabelHead { // with labels it is part of the head
			b.Output("pooled", TextPooler(b, *c.Text, hidden))
		}
		if c.Text.Head != NoHead {
			b.Output("scores", TextHead(b, *c.Text, hidden, ir.Value{}))
		}
	case ImageKind:
		hidden := ImageEncoder(b, *c.Image, pixels(*c.Image))
		b.Output("hidden", hidden)
		if c.Image.Pooler {
			b.Output("pooled", ImagePooler(b, *c.Image, hidden))
		}
		if c.Image.Head != NoHead {
			b.Output("scores", ImageHead(b, *c.Image, hidden))
		}
	case ImageTextKind:
		b.Output("scores", Similarity(b, *c.ImageText, ImageFeatures(b, *c.ImageText, pixels(c.ImageText.Image)), TextFeatures(b, *c.ImageText, tokens())))
	case SpeechKind:
		mels := b.Input("mels", ir.F32, ir.Dims(1, 2*c.Speech.Frames, c.Speech.Mels)...)
		memory := SpeechMemory(b, *c.Speech, SpeechEncoder(b, *c.Speech, mels))
		b.Output("scores", SpeechDecoder(b, *c.Speech, tokens(), memory))
	}
}

// Bind finds the parameters of a model in a file of Hugging Face, or of an encoder of [FromGGUF] in a GGUF file,
// and sets in c which optional layers the file has. Tensors of unknown heads are ignored. Errors are those of [lm.BindLayout].
func Bind(c *Config, t lm.Tensors, o ...lm.BindOptions) (*lm.Weights, error) {
	if c == nil || t == nil {
		return nil, ir.Attrf("the configuration or the tensors are nil: both must be given")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	names := t.Names()
	has := func(end string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return name == end || strings.HasSuffix(name, "."+end) })
	}
	switch {
	case c.Text != nil:
		text := *c.Text
		text.Pooler = text.Pooler || has("pooler.dense.weight") && text.Family != "distilbert" && text.Family != "modernbert"
		c.Text = &text
	case c.Image != nil:
		image := *c.Image
		image.Pooler = has("pooler.dense.weight")
		c.Image = &image
	}
	layout := lm.Layout{Architecture: c.Architecture, Declare: c.Declare, Names: fileNames, Needless: c.needless(names)}
	if t.GGUF() {
		layout.Names = inGGUF
	}
	return lm.BindLayout(layout, t, o...)
}

// fileNames returns the names that a parameter has in files: with and without the first part, and by the
// words of old files for the parameters of norms.
func fileNames(parameter string) []string {
	dotted := strings.ReplaceAll(parameter, "/", ".")
	_, short, _ := strings.Cut(dotted, ".")
	names := []string{dotted, short}
	for _, name := range names[:2] {
		old := strings.NewReplacer("LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias", "LayerNorm.beta").Replace(name)
		if old != name {
			names = append(names, old)
		}
	}
	return names
}

// needless returns which tensors of a file are no parameters: tables of positions' numbers, weights that
// are tied, and heads that are not used.
func (c Config) needless(names []string) func(name string) bool {
	ends := []string{"position_ids", "inv_freq"}
	root := ""
	switch {
	case c.Text != nil:
		f, _ := familyOf(c.Text.Family)
		root = f.text.scope() + "."
		if c.Text.Head == VocabularyHead && c.Text.Tied {
			ends = append(ends, "decoder.weight", "vocab_projector.weight")
		}
		if c.Text.Head == VocabularyHead && c.Text.Family != "modernbert" {
			ends = append(ends, "decoder.bias")
		}
		ends = append(ends, "seq_relationship.weight", "seq_relationship.bias")
	case c.Image != nil:
		root = "vit."
	case c.Speech != nil:
		ends = append(ends, "proj_out.weight")
	}
	whole := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, root) })
	headless := c.Text != nil && c.Text.Head == NoHead || c.Image != nil && c.Image.Head == NoHead
	return func(name string) bool {
		return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, "."+end) || name == end }) ||
			headless && whole && !strings.HasPrefix(name, root)
	}
}
