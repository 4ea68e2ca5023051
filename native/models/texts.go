package models

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
	"github.com/rlx-go/rlx/ir/models"
)

// TextsOptions are the options of [NewTexts].
type TextsOptions struct {
	// Pooling combines the vectors of the tokens into that of the text; "" means the rule of the
	// folder's 1_Pooling/config.json or of the GGUF file, or else the mean.
	Pooling models.Pooling
	// AnyLength keeps the length of vectors; by default they are normalised to length 1.
	AnyLength bool
	// MaxTokens bounds the tokens of a text, which is cut off before the tokens that end every
	// text. 0 means the number of positions of the model.
	MaxTokens int
	// Batch is the largest number of texts in a run; 0 means 32.
	Batch int
}

// Texts is an encoder of texts on a device. Its methods may be called from several goroutines.
type Texts struct {
	model   *Model
	options TextsOptions
	program *rlx.Program
}

// The entries of a program of texts.
const (
	vectorsEntry = "vectors"
	scoresEntry  = "scores"
)

// NewTexts compiles an encoder of texts. Sizes are open: a run computes as many texts and tokens as
// it has, rounded up to a power of two. The error is of kind [ir.ErrUnsupported] for a model of
// another kind, [os.ErrNotExist] for one without a tokenizer, or [ir.ErrAttr] for options outside
// their domain.
func NewTexts(ctx context.Context, s *rlx.Session, m *Model, o TextsOptions) (*Texts, error) {
	if err := m.needs(models.TextKind); err != nil {
		return nil, err
	}
	c := *m.Config.Text
	if err := o.complete(m); err != nil {
		return nil, err
	}
	t := &Texts{model: m, options: o}
	entry := func(name string, f func(b *ir.Builder, hidden, mask ir.Value)) (ir.Entry, error) {
		g, err := m.Build(name, func(b *ir.Builder) {
			size := []ir.Dim{ir.Sym("batch"), ir.Sym("time")}
			tokens, mask := b.Input("tokens", ir.I32, size...), b.Input("mask", ir.I32, size...)
			o := models.TextOptions{Mask: mask}
			if c.Types > 0 {
				o.Types = b.Input("types", ir.I32, size...)
			}
			f(b, models.TextEncoder(b, c, tokens, o), mask)
		})
		return ir.Entry{Name: name, Graph: g}, err
	}
	vectors, err := entry(vectorsEntry, func(b *ir.Builder, hidden, mask ir.Value) {
		b.Output("vectors", models.Pool(b, hidden, mask, o.Pooling, !o.AnyLength))
	})
	entries := []ir.Entry{vectors}
	if err == nil && c.Head != models.NoHead {
		var scores ir.Entry
		scores, err = entry(scoresEntry, func(b *ir.Builder, hidden, mask ir.Value) {
			b.Output("scores", models.Probabilities(b, models.TextHead(b, c, hidden, mask), c.Independent))
		})
		entries = append(entries, scores)
	}
	if err != nil {
		return nil, err
	}
	t.program, err = m.compile(ctx, s, map[string]rlx.Size{"batch": {Max: o.Batch}, "time": {Max: o.MaxTokens}}, entries...)
	return t, err
}

// complete checks the options and sets their defaults.
func (o *TextsOptions) complete(m *Model) error {
	most := m.Config.Text.Positions()
	switch {
	case m.Tokenizer == nil:
		return fmt.Errorf("%s: tokenizer.json: %w", m.Folder, os.ErrNotExist)
	case o.MaxTokens < 0 || o.MaxTokens > most:
		return ir.Attrf("MaxTokens is %d: it must be in [0, %d]", o.MaxTokens, most)
	case o.Batch < 0:
		return ir.Attrf("Batch is %d: it must not be negative", o.Batch)
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = most
	}
	if o.Batch == 0 {
		o.Batch = 32
	}
	if o.Pooling == "" {
		o.Pooling = m.pooling
	}
	if o.Pooling != "" {
		return nil
	}
	if strings.HasSuffix(m.Folder, ".gguf") {
		o.Pooling = models.MeanPooling
		return nil
	}
	var pooling struct {
		First bool `json:"pooling_mode_cls_token"`
	}
	if err := readJSON(filepath.Join(m.Folder, "1_Pooling", "config.json"), &pooling, false); err != nil {
		return err
	}
	if o.Pooling = models.MeanPooling; pooling.First {
		o.Pooling = models.FirstPooling
	}
	return nil
}

// Close frees the program. The model stays the caller's to close.
func (t *Texts) Close(ctx context.Context) error {
	if t == nil {
		return ir.Attrf("the model is nil: it must be from NewTexts")
	}
	return t.program.Close(ctx)
}

// Width is the number of features of a vector.
func (t *Texts) Width() int { return t.model.Config.Text.Width }

// Embed returns the vector of each text, of length 1 unless [TextsOptions] say otherwise: the product of two
// vectors is the cosine of the texts. Errors are those of the tokenizer and of [rlx.Program.Call].
func (t *Texts) Embed(ctx context.Context, texts ...string) ([][]float32, error) {
	if t == nil {
		return nil, ir.Attrf("the model is nil: it must be from NewTexts")
	}
	encoded, err := t.encode(texts)
	if err != nil {
		return nil, err
	}
	return t.EmbedTokens(ctx, encoded)
}

// EmbedTokens is Embed for tokenized texts, including the tokens that begin and end every text. The
// error is of kind [ir.ErrIndex] for a token outside the vocabulary and [ir.ErrShape] for a text
// without tokens or with more than [TextsOptions] allow.
func (t *Texts) EmbedTokens(ctx context.Context, texts [][]int32) ([][]float32, error) {
	if t == nil {
		return nil, ir.Attrf("the model is nil: it must be from NewTexts")
	}
	vectors := make([][]float32, len(texts))
	err := t.batches(ctx, vectorsEntry, texts, nil, func(out rlx.Outputs, rows []int, _ int) error {
		x, err := out["vectors"].Float32s()
		for i, row := range rows {
			if err == nil {
				vectors[row] = x[i*t.Width():][:t.Width()]
			}
		}
		return err
	})
	return vectors, err
}

// Tokens returns the tokens of a text as [Texts.Embed] has them, cut off at the largest number. Errors are
// those of the tokenizer.
func (t *Texts) Tokens(text string) ([]int32, error) {
	if t == nil {
		return nil, ir.Attrf("the model is nil: it must be from NewTexts")
	}
	ids, err := t.model.Tokenizer.Encode(text, tokenizer.EncodeOptions{})
	if err != nil || len(ids) <= t.options.MaxTokens {
		return ids, err
	}
	ends := 0
	for ends < min(len(ids), t.options.MaxTokens) && t.model.Tokenizer.Special(ids[len(ids)-1-ends]) {
		ends++
	}
	kept := t.options.MaxTokens - ends
	return append(ids[:kept:kept], ids[len(ids)-ends:]...), nil
}

func (t *Texts) encode(texts []string) ([][]int32, error) {
	encoded := make([][]int32, len(texts))
	for i, text := range texts {
		var err error
		if encoded[i], err = t.Tokens(text); err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
	}
	return encoded, nil
}

// batches runs an entry for batches of texts of similar length, and calls f with the outputs, the
// indices of the texts and their padded length. The types of the tokens may be nil, which means 0
// for all.
func (t *Texts) batches(ctx context.Context, entry string, texts, types [][]int32, f func(out rlx.Outputs, rows []int, time int) error) error {
	order := make([]int, len(texts))
	for i, text := range texts {
		order[i] = i
		if len(text) == 0 || len(text) > t.options.MaxTokens {
			return ir.Shapef("text %d has %d tokens: it must have 1 to %d", i, len(text), t.options.MaxTokens)
		}
		for _, id := range text {
			if id < 0 || int(id) >= t.model.Config.Text.Vocabulary {
				return ir.Errorf(ir.ErrIndex, "text %d has token %d: it must be in [0, %d)", i, id, t.model.Config.Text.Vocabulary)
			}
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return len(texts[j]) - len(texts[i]) })
	for rows := range slices.Chunk(order, t.options.Batch) {
		time := len(texts[rows[0]])
		tokens, mask := make([]int32, len(rows)*time), make([]int32, len(rows)*time)
		for i, row := range rows {
			copy(tokens[i*time:], texts[row])
			for j := range texts[row] {
				mask[i*time+j] = 1
			}
		}
		in := rlx.Inputs{"tokens": rlx.Int32s(tokens, len(rows), time), "mask": rlx.Int32s(mask, len(rows), time)}
		if t.model.Config.Text.Types > 0 {
			kinds := make([]int32, len(tokens))
			for i, row := range rows {
				if types != nil {
					copy(kinds[i*time:], types[row])
				}
			}
			in["types"] = rlx.Int32s(kinds, len(rows), time)
		}
		out, err := t.program.Call(ctx, entry, in)
		if err == nil {
			err = f(out, rows, time)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Score is a label with its probability.
type Score struct {
	Label       string
	Probability float32
}

// best returns the labels by their probabilities, the largest first.
func best(labels []string, probabilities []float32) []Score {
	scores := make([]Score, len(labels))
	for i, label := range labels {
		scores[i] = Score{label, probabilities[i]}
	}
	slices.SortStableFunc(scores, func(a, b Score) int {
		switch {
		case a.Probability > b.Probability:
			return -1
		case a.Probability < b.Probability:
			return 1
		}
		return 0
	})
	return scores
}

// Classify returns the labels of each text, the likeliest first. The error is of kind [ir.ErrUnsupported] for
// a model without labels for texts.
func (t *Texts) Classify(ctx context.Context, texts ...string) ([][]Score, error) {
	if t == nil {
		return nil, ir.Attrf("the model is nil: it must be from NewTexts")
	}
	encoded, err := t.encode(texts)
	if err != nil {
		return nil, err
	}
	return t.classify(ctx, encoded, nil)
}

// Pair is two texts that a model compares: a question and an answer, or a premise and a conclusion.
type Pair struct{ First, Second string }

// ClassifyPairs is [Texts.Classify] for pairs of texts, joined as the tokenizer's template says. The longer of
// the two is cut off where a pair has too many tokens.
func (t *Texts) ClassifyPairs(ctx context.Context, pairs ...Pair) ([][]Score, error) {
	if t == nil {
		return nil, ir.Attrf("the model is nil: it must be from NewTexts")
	}
	encoded, types := make([][]int32, len(pairs)), make([][]int32, len(pairs))
	for i, p := range pairs {
		var err error
		if encoded[i], types[i], err = t.pair(p); err != nil {
			return nil, fmt.Errorf("pair %d: %w", i, err)
		}
	}
	return t.classify(ctx, encoded, types)
}

// pair returns the tokens of a pair and their types.
func (t *Texts) pair(p Pair) (ids, types []int32, err error) {
	if ids, types, err = t.model.Tokenizer.EncodePair(p.First, p.Second, tokenizer.EncodeOptions{}); err != nil {
		return nil, nil, err
	}
	for i, kind := range types {
		if most := int32(t.model.Config.Text.Types) - 1; most >= 0 {
			types[i] = min(kind, most)
		}
	}
	if len(ids) <= t.options.MaxTokens {
		return ids, types, nil
	}
	return t.shortened(p, ids, types)
}

// shortened cuts a pair off to the largest number of tokens: the shorter text keeps up to half of the room.
func (t *Texts) shortened(p Pair, ids, types []int32) (_, _ []int32, err error) {
	var parts [2][]int32
	for i, text := range []string{p.First, p.Second} {
		if parts[i], err = t.model.Tokenizer.Encode(text, tokenizer.EncodeOptions{OmitSpecial: true}); err != nil {
			return nil, nil, err
		}
	}
	room := t.options.MaxTokens - (len(ids) - len(parts[0]) - len(parts[1]))
	first, second := spanOf(ids, parts[0], 0), spanOf(ids, parts[1], len(parts[0]))
	if room < 0 || first < 0 || second < 0 {
		return nil, nil, ir.Shapef("the tokens around a pair leave no room in %d", t.options.MaxTokens)
	}
	short := min(len(parts[0]), len(parts[1]), room/2)
	keep := [2]int{short, room - short}
	if len(parts[0]) > len(parts[1]) {
		keep[0], keep[1] = keep[1], keep[0]
	}
	cut := func(x []int32) []int32 {
		x = slices.Delete(x, second+keep[1], second+len(parts[1]))
		return slices.Delete(x, first+keep[0], first+len(parts[0]))
	}
	return cut(ids), cut(types), nil
}

// spanOf returns where a text begins in ids, from a position on; −1 if it is not there.
func spanOf(ids, text []int32, from int) int {
	for at := from; at+len(text) <= len(ids); at++ {
		if slices.Equal(ids[at:][:len(text)], text) {
			return at
		}
	}
	return -1
}

// classify returns the labels of texts of tokens.
func (t *Texts) classify(ctx context.Context, encoded, types [][]int32) ([][]Score, error) {
	if err := t.needsHead(models.LabelHead); err != nil {
		return nil, err
	}
	labels := t.model.Config.Text.Labels
	scores := make([][]Score, len(encoded))
	err := t.batches(ctx, scoresEntry, encoded, types, func(out rlx.Outputs, rows []int, _ int) error {
		x, err := out["scores"].Float32s()
		for i, row := range rows {
			if err == nil {
				scores[row] = best(labels, x[i*len(labels):][:len(labels)])
			}
		}
		return err
	})
	return scores, err
}

func (t *Texts) needsHead(head models.Head) error {
	if have := t.model.Config.Text.Head; have != head {
		return ir.Errorf(ir.ErrUnsupported, "%s has the head %q: it must be %q", t.model.Folder, string(have), string(head))
	}
	return nil
}

// Filling is a candidate token for a mask.
type Filling struct {
	Token       int32
	Text        string
	Probability float32
}

// maskNames are the texts of mask tokens.
var maskNames = []string{"[MASK]", "<mask>"}

// FillMask returns for each mask in a text, "[MASK]" or "<mask>" by the model's tokenizer, the likeliest
// tokens, at most n of them. The error is of kind [ir.ErrUnsupported] for a model or a tokenizer without
// masks.
func (t *Texts) FillMask(ctx context.Context, text string, n int) ([][]Filling, error) {
	if t == nil {
		return nil, ir.Attrf("the model is nil: it must be from NewTexts")
	}
	if err := t.needsHead(models.VocabularyHead); err != nil {
		return nil, err
	}
	mask := int32(-1)
	for _, name := range maskNames {
		if id, ok := t.model.Tokenizer.ID(name); ok {
			mask = id
		}
	}
	if mask < 0 {
		return nil, ir.Errorf(ir.ErrUnsupported, "the tokenizer has no mask: it must have one of %q", maskNames)
	}
	ids, err := t.Tokens(text)
	if err != nil {
		return nil, err
	}
	var all [][]Filling
	vocabulary := t.model.Config.Text.Vocabulary
	err = t.batches(ctx, scoresEntry, [][]int32{ids}, nil, func(out rlx.Outputs, _ []int, _ int) error {
		x, err := out["scores"].Float32s()
		for i, id := range ids {
			if id == mask && err == nil {
				all = append(all, t.fillings(x[i*vocabulary:][:vocabulary], n))
			}
		}
		return err
	})
	return all, err
}

// fillings returns the n likeliest tokens.
func (t *Texts) fillings(probabilities []float32, n int) (list []Filling) {
	taken := slices.Clone(probabilities)
	for range min(max(n, 0), len(taken)) {
		at := 0
		for i, p := range taken {
			if p > taken[at] {
				at = i
			}
		}
		text, _ := t.model.Tokenizer.Token(int32(at))
		list = append(list, Filling{int32(at), text, taken[at]})
		taken[at] = float32(math.Inf(-1))
	}
	return list
}
