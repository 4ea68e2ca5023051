package models

import (
	"context"
	"fmt"
	"image"
	"os"
	"slices"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
	"github.com/rlx-go/rlx/ir/models"
	"github.com/rlx-go/rlx/ir/ops"
)

// ImagesOptions are the options of [NewImages] and [NewImageTexts].
type ImagesOptions struct {
	// Preprocessing is how an image becomes an input; nil means as the folder's preprocessor_config.json
	// says.
	Preprocessing *Preprocessing
	// Batch is the largest number of images or texts in a run; 0 means 32.
	Batch int
}

// complete checks the options and sets their defaults for images of a model.
func (o *ImagesOptions) complete(m *Model, c models.Image) error {
	if o.Batch < 0 {
		return ir.Attrf("Batch is %d: it must not be negative", o.Batch)
	}
	if o.Batch == 0 {
		o.Batch = 32
	}
	if c.Channels != 3 {
		return ir.Errorf(ir.ErrUnsupported, "the model reads images of %d channels: they must be 3", c.Channels)
	}
	if o.Preprocessing != nil {
		return o.Preprocessing.check()
	}
	p, err := PreprocessingOf(m)
	o.Preprocessing = &p
	return err
}

// pixels returns images as an input of the model.
func (o *ImagesOptions) pixels(c models.Image, images []image.Image) (rlx.Tensor, error) {
	var all []float32
	for i, from := range images {
		x, height, width, err := o.Preprocessing.Pixels(from)
		if err == nil && [2]int{height, width} != c.Size {
			err = ir.Shapef("it is %d by %d after preprocessing: it must be %d by %d", height, width, c.Size[0], c.Size[1])
		}
		if err != nil {
			return rlx.Tensor{}, fmt.Errorf("image %d: %w", i, err)
		}
		all = append(all, x...)
	}
	return rlx.Float32s(all, len(images), c.Channels, c.Size[0], c.Size[1]), nil
}

// pixelsInput declares images of an open number.
func pixelsInput(b *ir.Builder, c models.Image) ir.Value {
	return b.Input("pixels", ir.F32, ir.Sym("batch"), ir.N(c.Channels), ir.N(c.Size[0]), ir.N(c.Size[1]))
}

// Images is an encoder of images on a device. Its methods may be called from several goroutines.
type Images struct {
	model   *Model
	options ImagesOptions
	program *rlx.Program
}

// NewImages compiles an encoder of images, for any number of them. The error is of kind [ir.ErrUnsupported]
// for a model of another kind, or [ir.ErrAttr] for options outside their domain.
func NewImages(ctx context.Context, s *rlx.Session, m *Model, o ImagesOptions) (*Images, error) {
	if err := m.needs(models.ImageKind); err != nil {
		return nil, err
	}
	c := *m.Config.Image
	if err := o.complete(m, c); err != nil {
		return nil, err
	}
	vectors, err := m.Build(vectorsEntry, func(b *ir.Builder) {
		hidden := models.ImageEncoder(b, c, pixelsInput(b, c))
		b.Output("vectors", models.Pool(b, hidden, ir.Value{}, models.FirstPooling, true))
	})
	entries := []ir.Entry{{Name: vectorsEntry, Graph: vectors}}
	if err == nil && c.Head == models.LabelHead {
		var scores *ir.Graph
		scores, err = m.Build(scoresEntry, func(b *ir.Builder) {
			b.Output("scores", models.Probabilities(b, models.ImageHead(b, c, models.ImageEncoder(b, c, pixelsInput(b, c))), c.Independent))
		})
		entries = append(entries, ir.Entry{Name: scoresEntry, Graph: scores})
	}
	if err != nil {
		return nil, err
	}
	i := &Images{model: m, options: o}
	i.program, err = m.compile(ctx, s, map[string]rlx.Size{"batch": {Max: o.Batch}}, entries...)
	return i, err
}

// Close frees the program. The model stays the caller's to close.
func (m *Images) Close(ctx context.Context) error {
	if m == nil {
		return ir.Attrf("the model is nil: it must be from NewImages")
	}
	return m.program.Close(ctx)
}

// Embed returns the hidden state of the class token of each image, of length 1. Errors are those of
// [Preprocessing.Pixels] and of [rlx.Program.Call], and of kind [ir.ErrShape] for an image that preprocessing
// does not bring to the model's size.
func (m *Images) Embed(ctx context.Context, images ...image.Image) ([][]float32, error) {
	if m == nil {
		return nil, ir.Attrf("the model is nil: it must be from NewImages")
	}
	return rowsOf(ctx, m.program, vectorsEntry, "vectors", m.options, *m.model.Config.Image, images)
}

// Classify returns the labels of each image, the likeliest first. The error is of kind [ir.ErrUnsupported] for
// a model without labels.
func (m *Images) Classify(ctx context.Context, images ...image.Image) ([][]Score, error) {
	if m == nil {
		return nil, ir.Attrf("the model is nil: it must be from NewImages")
	}
	c := *m.model.Config.Image
	if c.Head != models.LabelHead {
		return nil, ir.Errorf(ir.ErrUnsupported, "%s has no labels: it must be a model for classification", m.model.Folder)
	}
	rows, err := rowsOf(ctx, m.program, scoresEntry, "scores", m.options, c, images)
	scores := make([][]Score, len(rows))
	for i, row := range rows {
		scores[i] = best(c.Labels, row)
	}
	return scores, err
}

// rowsOf runs an entry for images, a batch after the other, and returns the row of the output for each.
func rowsOf(ctx context.Context, p *rlx.Program, entry, output string, o ImagesOptions, c models.Image, images []image.Image) (rows [][]float32, err error) {
	for part := range slices.Chunk(images, o.Batch) {
		pixels, err := o.pixels(c, part)
		if err != nil {
			return nil, err
		}
		if rows, err = appendRows(ctx, rows, p, entry, output, rlx.Inputs{"pixels": pixels}); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// appendRows runs an entry and appends the rows of a matrix that it returns.
func appendRows(ctx context.Context, rows [][]float32, p *rlx.Program, entry, output string, in rlx.Inputs) ([][]float32, error) {
	out, err := p.Call(ctx, entry, in)
	if err != nil {
		return nil, err
	}
	x, err := out[output].Float32s()
	if err != nil {
		return nil, err
	}
	return append(rows, slices.Collect(slices.Chunk(x, out[output].Dims[1]))...), nil
}

// ImageTexts is an encoder of images and texts into one space on a device. Its methods may be called from
// several goroutines.
type ImageTexts struct {
	model   *Model
	options ImagesOptions
	program *rlx.Program
}

// The entries of a program of images and texts.
const (
	imagesEntry     = "images"
	textsEntry      = "texts"
	similarityEntry = "similarity"
)

// NewImageTexts compiles an encoder of images and texts, for any number of them. The error is of kind
// [ir.ErrUnsupported] for a model of another kind, [os.ErrNotExist] for one without a tokenizer, or
// [ir.ErrAttr] for options outside their domain.
func NewImageTexts(ctx context.Context, s *rlx.Session, m *Model, o ImagesOptions) (*ImageTexts, error) {
	if err := m.needs(models.ImageTextKind); err != nil {
		return nil, err
	}
	c := *m.Config.ImageText
	if m.Tokenizer == nil {
		return nil, fmt.Errorf("%s: tokenizer.json: %w", m.Folder, os.ErrNotExist)
	}
	if err := o.complete(m, c.Image); err != nil {
		return nil, err
	}
	var entries []ir.Entry
	for _, e := range []struct {
		name string
		f    func(b *ir.Builder)
	}{
		{imagesEntry, func(b *ir.Builder) {
			b.Output("vectors", models.Pool(b, ops.ExpandDims(b, models.ImageFeatures(b, c, pixelsInput(b, c.Image)), 1), ir.Value{}, models.FirstPooling, true))
		}},
		{textsEntry, func(b *ir.Builder) {
			tokens := b.Input("tokens", ir.I32, ir.Sym("batch"), ir.Sym("time"))
			b.Output("vectors", models.Pool(b, ops.ExpandDims(b, models.TextFeatures(b, c, tokens), 1), ir.Value{}, models.FirstPooling, true))
		}},
		{similarityEntry, func(b *ir.Builder) {
			images := b.Input("images", ir.F32, ir.Sym("batch"), ir.N(c.Projection))
			texts := b.Input("texts", ir.F32, ir.Sym("labels"), ir.N(c.Projection))
			b.Output("probabilities", ops.Softmax(b, models.Similarity(b, c, images, texts), -1))
		}},
	} {
		g, err := m.Build(e.name, e.f)
		if err != nil {
			return nil, err
		}
		entries = append(entries, ir.Entry{Name: e.name, Graph: g})
	}
	p, err := m.compile(ctx, s, map[string]rlx.Size{"batch": {Max: o.Batch}, "time": {Max: c.Text.Context}}, entries...)
	return &ImageTexts{m, o, p}, err
}

// Close frees the program. The model stays the caller's to close.
func (m *ImageTexts) Close(ctx context.Context) error {
	if m == nil {
		return ir.Attrf("the model is nil: it must be from NewImageTexts")
	}
	return m.program.Close(ctx)
}

// EmbedImages returns the vector of each image, of length 1. Errors are those of [Images.Embed].
func (m *ImageTexts) EmbedImages(ctx context.Context, images ...image.Image) ([][]float32, error) {
	if m == nil {
		return nil, ir.Attrf("the model is nil: it must be from NewImageTexts")
	}
	return rowsOf(ctx, m.program, imagesEntry, "vectors", m.options, m.model.Config.ImageText.Image, images)
}

// EmbedTexts returns the vector of each text, of length 1. A text with more tokens than the model has
// positions is cut off before its last token. Errors are those of the tokenizer and of [rlx.Program.Call].
func (m *ImageTexts) EmbedTexts(ctx context.Context, texts ...string) (rows [][]float32, err error) {
	if m == nil {
		return nil, ir.Attrf("the model is nil: it must be from NewImageTexts")
	}
	for part := range slices.Chunk(texts, m.options.Batch) {
		in, err := m.tokens(part)
		if err != nil {
			return nil, err
		}
		if rows, err = appendRows(ctx, rows, m.program, textsEntry, "vectors", rlx.Inputs{"tokens": in}); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// tokens returns those of texts, padded by 0 after their ends.
func (m *ImageTexts) tokens(texts []string) (rlx.Tensor, error) {
	most, time := m.model.Config.ImageText.Text.Context, 1
	encoded := make([][]int32, len(texts))
	for i, text := range texts {
		ids, err := m.model.Tokenizer.Encode(text, tokenizer.EncodeOptions{})
		if err != nil {
			return rlx.Tensor{}, fmt.Errorf("text %d: %w", i, err)
		}
		if len(ids) > most {
			ids = append(ids[:most-1:most-1], ids[len(ids)-1])
		}
		encoded[i], time = ids, max(time, len(ids))
	}
	all := make([]int32, len(texts)*time)
	for i, ids := range encoded {
		copy(all[i*time:], ids)
	}
	return rlx.Int32s(all, len(texts), time), nil
}

// Classify returns the labels for each image with their probabilities, the likeliest first, without training
// for them: a label is a text such as "a photo of a cat". The error is of kind [ir.ErrShape] if there are no
// labels.
func (m *ImageTexts) Classify(ctx context.Context, labels []string, images ...image.Image) ([][]Score, error) {
	if m == nil {
		return nil, ir.Attrf("the model is nil: it must be from NewImageTexts")
	}
	if len(labels) == 0 {
		return nil, ir.Shapef("there are no labels: there must be one at least")
	}
	texts, err := m.EmbedTexts(ctx, labels...)
	if err != nil {
		return nil, err
	}
	vectors, err := m.EmbedImages(ctx, images...)
	if err != nil {
		return nil, err
	}
	width := m.model.Config.ImageText.Projection
	var scores [][]Score
	for part := range slices.Chunk(vectors, m.options.Batch) {
		in := rlx.Inputs{"images": rlx.Float32s(slices.Concat(part...), len(part), width), "texts": rlx.Float32s(slices.Concat(texts...), len(texts), width)}
		rows, err := appendRows(ctx, nil, m.program, similarityEntry, "probabilities", in)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			scores = append(scores, best(labels, row))
		}
	}
	return scores, nil
}
