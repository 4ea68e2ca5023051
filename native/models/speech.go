package models

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/models"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// readSound sets what preprocessor_config.json says of spectrograms.
func (m *Model) readSound() error {
	if m.Config.Speech == nil {
		return nil
	}
	c := *m.Config.Speech
	p := struct {
		Rate      int `json:"sampling_rate"`
		Hop       int `json:"hop_length"`
		Transform int `json:"n_fft"`
	}{c.Rate, c.Hop, c.Transform}
	if err := readJSON(filepath.Join(m.Folder, "preprocessor_config.json"), &p, false); err != nil {
		return err
	}
	c.Rate, c.Hop, c.Transform = p.Rate, p.Hop, p.Transform
	m.Config.Speech = &c
	return m.Config.Check()
}

// speechTokens are the special tokens of generation_config.json.
type speechTokens struct {
	Start         int32            `json:"decoder_start_token_id"`
	End           int32            `json:"eos_token_id"`
	Multilingual  bool             `json:"is_multilingual"`
	Languages     map[string]int32 `json:"lang_to_id"`
	Tasks         map[string]int32 `json:"task_to_id"`
	NoTimestamps  *int32           `json:"no_timestamps_token_id"`
	Suppress      []int32          `json:"suppress_tokens"`
	BeginSuppress []int32          `json:"begin_suppress_tokens"`
	MaxLength     int              `json:"max_length"`
}

// check requires tokens within the vocabulary.
func (s speechTokens) check(vocabulary int) error {
	all := slices.Concat([]int32{s.Start, s.End}, s.Suppress, s.BeginSuppress)
	for _, m := range []map[string]int32{s.Languages, s.Tasks} {
		for _, id := range m {
			all = append(all, id)
		}
	}
	if s.NoTimestamps != nil {
		all = append(all, *s.NoTimestamps)
	}
	for _, id := range all {
		if id < 0 || int(id) >= vocabulary {
			return ir.Errorf(lm.ErrConfig, "generation_config.json has token %d: it must be in [0, %d)", id, vocabulary)
		}
	}
	return nil
}

// Transcriber writes down speech on a device. Calls wait for one another.
type Transcriber struct {
	model   *Model
	tokens  speechTokens
	program *rlx.Program
	turn    chan struct{} // taken while a call uses the cache
}

// The entries of a program of speech: listen sets the memory and forgets the tokens, next takes a token.
const (
	listenEntry = "listen"
	nextEntry   = "next"
)

// NewTranscriber compiles a model of speech. The error is of kind [ir.ErrUnsupported] for a model of another
// kind, [os.ErrNotExist] for one without a tokenizer or a generation_config.json, or [lm.ErrConfig] if the
// latter is malformed.
func NewTranscriber(ctx context.Context, s *rlx.Session, m *Model) (*Transcriber, error) {
	if err := m.needs(models.SpeechKind); err != nil {
		return nil, err
	}
	if m.Tokenizer == nil {
		return nil, fmt.Errorf("%s: tokenizer.json: %w", m.Folder, os.ErrNotExist)
	}
	c := *m.Config.Speech
	t := &Transcriber{model: m, turn: make(chan struct{}, 1)}
	if err := readJSON(filepath.Join(m.Folder, "generation_config.json"), &t.tokens, true); err != nil {
		return nil, err
	}
	if err := t.tokens.check(c.Vocabulary); err != nil {
		return nil, err
	}
	listen, err := m.Build(listenEntry, func(b *ir.Builder) {
		mels := models.LogMel(b, c, b.Input("sound", ir.F32, ir.Dims(1, c.SoundLength())...))
		memory := models.SpeechMemory(b, c, models.SpeechEncoder(b, c, mels))
		models.SetSpeechMemory(b, c, memory)
		b.Output("loudest", ops.ReduceMax(b, mels, 0, 1, 2))
	})
	if err != nil {
		return nil, err
	}
	next, err := m.Build(nextEntry, func(b *ir.Builder) {
		nn.Cache(b, c.Context)
		token, allowed := b.Input("token", ir.I32, ir.Dims(1, 1)...), b.Input("allowed", ir.F32, ir.N(c.Vocabulary))
		scores := models.SpeechDecoder(b, c, token, models.CachedSpeechMemory(b, c, 1))
		if b.Err() == nil {
			scores = ops.Add(b, scores, allowed)
		}
		b.Output("token", ops.Reshape(b, ops.ArgMax(b, scores, -1), ir.N(1)))
	})
	if err != nil {
		return nil, err
	}
	t.program, err = m.compile(ctx, s, nil, ir.Entry{Name: listenEntry, Graph: listen}, ir.Entry{Name: nextEntry, Graph: next})
	return t, err
}

// Close frees the program. The model stays the caller's to close.
func (t *Transcriber) Close(ctx context.Context) error {
	if t == nil {
		return ir.Attrf("the model is nil: it must be from NewTranscriber")
	}
	return t.program.Close(ctx)
}

// Rate is the sampling rate of sound in hertz.
func (t *Transcriber) Rate() int { return t.model.Config.Speech.Rate }

// TranscribeOptions are the options of [Transcriber.Transcribe].
type TranscribeOptions struct {
	// Language is that of the speech, as "en"; "" means that the model decides by the beginning. A model of
	// one language has none.
	Language string
	// Translate writes English, whatever the language spoken.
	Translate bool
}

// Transcript is a written speech.
type Transcript struct {
	Text string
	// Tokens are those of the text and of the language and task before it, without the end, of each part.
	Tokens [][]int32
	// Language is that of the first part; "" for a model of one language.
	Language string
}

// Transcribe writes down sound, samples between −1 and 1 at [Transcriber.Rate], by the likeliest token each
// time. Sound longer than the model hears at once, 30 s for Whisper, is cut there, also within words; the
// end of the last part is silence. The error is of kind [ir.ErrAttr] for an unknown language or a
// translation that the model has not, or those of [rlx.Program.Call].
func (t *Transcriber) Transcribe(ctx context.Context, sound []float32, o TranscribeOptions) (Transcript, error) {
	if t == nil {
		return Transcript{}, ir.Attrf("the model is nil: it must be from NewTranscriber")
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return Transcript{}, ctx.Err()
	}
	defer func() { <-t.turn }()
	var all Transcript
	var texts []string
	for part := range slices.Chunk(sound, t.model.Config.Speech.SoundLength()) {
		tokens, err := t.part(ctx, part, &o)
		if err != nil {
			return all, err
		}
		all.Tokens = append(all.Tokens, tokens)
		text, err := t.model.Tokenizer.Decode(tokens, tokenizer.DecodeOptions{OmitSpecial: true})
		if err != nil {
			return all, err
		}
		if text = strings.TrimSpace(text); text != "" {
			texts = append(texts, text)
		}
		all.Language = o.Language
	}
	all.Text = strings.Join(texts, " ")
	return all, nil
}

// part returns the tokens of a part of the sound. It sets the language of o if that is open.
func (t *Transcriber) part(ctx context.Context, sound []float32, o *TranscribeOptions) ([]int32, error) {
	c := t.model.Config.Speech
	padded := make([]float32, c.SoundLength())
	copy(padded, sound)
	err := t.program.Set(ctx, nn.CacheState, rlx.Int32(0))
	if err == nil {
		_, err = t.program.Call(ctx, listenEntry, rlx.Inputs{"sound": rlx.Float32s(padded, 1, len(padded))})
	}
	if err != nil {
		return nil, err
	}
	d := &dictation{t: t, tokens: []int32{t.tokens.Start}}
	if err := d.begin(ctx, o); err != nil {
		return nil, err
	}
	most := c.Context
	if t.tokens.MaxLength > 0 {
		most = min(most, t.tokens.MaxLength)
	}
	never := except(c.Vocabulary, t.tokens.Suppress)
	allowed := except(c.Vocabulary, slices.Concat(t.tokens.Suppress, t.tokens.BeginSuppress))
	for len(d.tokens) < most {
		token, err := d.next(ctx, allowed)
		if err != nil {
			return nil, err
		}
		if token == t.tokens.End {
			break
		}
		d.tokens, allowed = append(d.tokens, token), never
	}
	return d.tokens, nil
}

// dictation is the sequence of tokens of a part.
type dictation struct {
	t      *Transcriber
	tokens []int32
	read   int // tokens that the decoder has read
}

// next runs the decoder on the new tokens, and returns the likeliest allowed token after them.
func (d *dictation) next(ctx context.Context, allowed rlx.Tensor) (token int32, err error) {
	for ; d.read < len(d.tokens); d.read++ {
		in := rlx.Inputs{"token": rlx.Int32s(d.tokens[d.read:][:1], 1, 1), "allowed": allowed}
		out, err := d.t.program.Call(ctx, nextEntry, in)
		if err != nil {
			return 0, err
		}
		ids, err := out["token"].Int32s()
		if err != nil {
			return 0, err
		}
		token = ids[0]
	}
	return token, nil
}

// begin adds the tokens of language and task.
func (d *dictation) begin(ctx context.Context, o *TranscribeOptions) error {
	s := d.t.tokens
	switch {
	case !s.Multilingual && (o.Language != "" || o.Translate):
		return ir.Attrf("Language is %q and Translate %t: they must be left out, as the model has one language", o.Language, o.Translate)
	case s.Multilingual:
		if err := d.language(ctx, o); err != nil {
			return err
		}
		task := map[bool]string{true: "translate", false: "transcribe"}[o.Translate]
		id, ok := s.Tasks[task]
		if !ok {
			return ir.Attrf("Translate is %t: the model has no task %q", o.Translate, task)
		}
		d.tokens = append(d.tokens, id)
	}
	if s.NoTimestamps != nil {
		d.tokens = append(d.tokens, *s.NoTimestamps)
	}
	return nil
}

// language adds the token of the language, and sets it in o where it is open.
func (d *dictation) language(ctx context.Context, o *TranscribeOptions) error {
	known := d.t.tokens.Languages
	if o.Language != "" {
		id, ok := known["<|"+o.Language+"|>"]
		if !ok {
			return ir.Attrf("Language is %q: it must be one of the %d of the model, as \"en\"", o.Language, len(known))
		}
		d.tokens = append(d.tokens, id)
		return nil
	}
	if len(known) == 0 {
		return ir.Errorf(lm.ErrConfig, "generation_config.json has no lang_to_id: a model of several languages must have it")
	}
	vocabulary := d.t.model.Config.Speech.Vocabulary
	var others []int32
	for id := range int32(vocabulary) {
		others = append(others, id)
	}
	for _, id := range known {
		others[id] = -1
	}
	token, err := d.next(ctx, except(vocabulary, others))
	if err != nil {
		return err
	}
	for name, id := range known {
		if id == token {
			o.Language = strings.Trim(name, "<|>")
		}
	}
	d.tokens = append(d.tokens, token)
	return nil
}

// except returns an additive mask for the scores of a vocabulary: −1e30 for some tokens, 0 for the
// others.
func except(vocabulary int, tokens []int32) rlx.Tensor {
	x := make([]float32, vocabulary)
	for _, id := range tokens {
		if id >= 0 {
			x[id] = -1e30
		}
	}
	return rlx.Float32s(x, vocabulary)
}
