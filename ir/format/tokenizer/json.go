package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/rlx-go/rlx/ir"
)

// maxFile bounds a tokenizer.json; those of vocabularies of 256,000 tokens have some 35 MB.
const maxFile = 512 << 20

// document is a tokenizer.json.
type document struct {
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

// Open reads a tokenizer.json file. Errors are those of [Read] or of the system.
func Open(name string) (*Tokenizer, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// Read reads a tokenizer.json. The error is of kind [ErrDamaged], of kind [ir.ErrUnsupported] for a part of
// a kind that is not known, which it names, or that of r.
func Read(r io.Reader) (*Tokenizer, error) {
	if r == nil {
		return nil, ir.Attrf("r is nil: it must be a reader")
	}
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, damaged("the file has more than %d bytes", maxFile)
	}
	return parse(data)
}

func parse(data []byte) (*Tokenizer, error) {
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, damaged("%v", err)
	}
	t := &Tokenizer{template: plainTemplate{}, words: newCache()}
	tokens, err := t.readModel(doc.Model, doc.AddedTokens)
	if err != nil {
		return nil, err
	}
	for i := range doc.AddedTokens {
		a := &doc.AddedTokens[i]
		if id, ok := tokens[a.Content]; ok {
			a.ID = id
		}
	}
	if err := t.setTokens(tokens, doc.AddedTokens); err != nil {
		return nil, err
	}
	if t.normalizer, err = readNormalizer(doc.Normalizer, 0); err != nil {
		return nil, err
	}
	if t.added, err = newAdded(doc.AddedTokens, t.normalizer); err != nil {
		return nil, err
	}
	if t.splitters, err = readSplitters(doc.PreTokenizer, 0); err != nil {
		return nil, err
	}
	t.deferBytes()
	if err := t.readTemplates(doc.PostProcessor, 0); err != nil {
		return nil, err
	}
	t.decoders, err = readDecoders(doc.Decoder, 0)
	return t, err
}

// deferBytes has the model, not the last splitter, map bytes to their alphabet: the cache of words then
// spares it.
func (t *Tokenizer) deferBytes() {
	if n := len(t.splitters); n > 0 {
		if b, ok := t.splitters[n-1].(byteLevel); ok {
			b.keepBytes = true
			t.splitters[n-1], t.byteLevel = b, true
		}
	}
}

// maxParts bounds how deep sequences of parts are nested.
const maxParts = 16

// read decodes a part of the document, and names the part in errors.
func read(part string, data json.RawMessage, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return damaged("%s: %v", part, err)
	}
	return nil
}

func absent(data json.RawMessage) bool {
	return len(data) == 0 || bytes.Equal(data, []byte("null"))
}

// kindOf returns the type of a part.
func kindOf(part string, data json.RawMessage, depth int) (string, error) {
	var of struct {
		Type string `json:"type"`
	}
	if depth > maxParts {
		return "", damaged("%s: sequences are nested more than %d deep", part, maxParts)
	}
	err := read(part, data, &of)
	return of.Type, err
}

func unknown(part, kind string) error {
	return ir.Errorf(ir.ErrUnsupported, "%s of type %.50q", part, kind)
}

// modelPart has the fields of all kinds of models.
type modelPart struct {
	Type                    string          `json:"type"`
	Vocab                   json.RawMessage `json:"vocab"`
	Merges                  []mergePart     `json:"merges"`
	UnkToken                *string         `json:"unk_token"`
	UnkID                   *int32          `json:"unk_id"`
	ContinuingSubwordPrefix *string         `json:"continuing_subword_prefix"`
	EndOfWordSuffix         *string         `json:"end_of_word_suffix"`
	FuseUnk                 bool            `json:"fuse_unk"`
	ByteFallback            bool            `json:"byte_fallback"`
	IgnoreMerges            bool            `json:"ignore_merges"`
	MaxInputCharsPerWord    *int            `json:"max_input_chars_per_word"`
}

// mergePart is a merge, "a b" or ["a", "b"].
type mergePart [2]string

func (m *mergePart) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		var both []string
		if err := json.Unmarshal(data, &both); err != nil {
			return err
		}
		if len(both) != 2 {
			return fmt.Errorf("a merge of %d tokens: it must have 2", len(both))
		}
		*m = mergePart(both)
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	left, right, ok := cutMerge(text)
	if !ok {
		return fmt.Errorf("the merge %.50q: it must be two tokens and a space", text)
	}
	*m = mergePart{left, right}
	return nil
}

// scored is a token of a Unigram model, [token, score].
type scored struct {
	token string
	score float64
}

func (s *scored) UnmarshalJSON(data []byte) error {
	both := []any{&s.token, &s.score}
	if err := json.Unmarshal(data, &both); err != nil {
		return err
	}
	if len(both) != 2 {
		return fmt.Errorf("a token of %d values: it must have a text and a score", len(both))
	}
	return nil
}

// readModel sets the model and returns its tokens.
func (t *Tokenizer) readModel(data json.RawMessage, added []addedToken) (map[string]int32, error) {
	if absent(data) {
		return nil, damaged("there is no model")
	}
	var m modelPart
	if err := read("model", data, &m); err != nil {
		return nil, err
	}
	if m.Type == "" { // files of old versions have no type
		m.Type = m.guess()
	}
	if m.Type == "Unigram" {
		return t.readUnigram(&m, added)
	}
	vocab := map[string]int32{}
	if err := read("model.vocab", m.Vocab, &vocab); err != nil {
		return nil, err
	}
	unk := int32(-1)
	if m.UnkToken != nil {
		if id, ok := vocab[*m.UnkToken]; ok {
			unk = id
		} else if m.Type == "BPE" && *m.UnkToken != "" {
			return nil, damaged("the vocabulary lacks the unknown token %.50q", *m.UnkToken)
		}
	}
	marks := textless(added, vocab, unk)
	switch m.Type {
	case "BPE":
		b, err := newBPE(&m, vocab, unk)
		if err == nil {
			b.marks = marks
		}
		t.model = b
		return vocab, err
	case "WordPiece":
		maxRunes := 100
		if m.MaxInputCharsPerWord != nil {
			maxRunes = *m.MaxInputCharsPerWord
		}
		prefix := "##"
		if m.ContinuingSubwordPrefix != nil {
			prefix = *m.ContinuingSubwordPrefix
		}
		t.model = newWordPiece(vocab, prefix, unk, maxRunes, marks)
	case "WordLevel":
		t.model = &wordLevel{vocab, unk, marks}
	default:
		return nil, unknown("model", m.Type)
	}
	return vocab, nil
}

// guess returns the kind of a model by the fields that it has.
func (m *modelPart) guess() string {
	switch {
	case m.Merges != nil:
		return "BPE"
	case m.UnkID != nil || len(m.Vocab) > 0 && m.Vocab[0] == '[':
		return "Unigram"
	case m.ContinuingSubwordPrefix != nil:
		return "WordPiece"
	}
	return "WordLevel"
}

func (t *Tokenizer) readUnigram(m *modelPart, added []addedToken) (map[string]int32, error) {
	var vocab []scored
	if err := read("model.vocab", m.Vocab, &vocab); err != nil {
		return nil, err
	}
	unk := int32(-1)
	if m.UnkID != nil {
		if unk = *m.UnkID; unk < 0 || int(unk) >= len(vocab) {
			return nil, damaged("unk_id is %d: it must be from 0 to %d", unk, len(vocab)-1)
		}
	}
	tokens, scores := make([]string, len(vocab)), make([]float64, len(vocab))
	for i, v := range vocab {
		tokens[i], scores[i] = v.token, v.score
	}
	ids := make(map[string]int32, len(tokens))
	for id, token := range tokens {
		ids[token] = int32(id)
	}
	u := newUnigram(tokens, scores, unk, m.ByteFallback, textless(added, ids, unk))
	t.model, t.tokens = u, tokens
	return u.ids, nil
}

func newBPE(m *modelPart, vocab map[string]int32, unk int32) (*bpe, error) {
	b := &bpe{vocab: vocab, unk: unk, fuseUnk: m.FuseUnk, wholeWords: m.IgnoreMerges}
	if m.ContinuingSubwordPrefix != nil {
		b.prefix = *m.ContinuingSubwordPrefix
	}
	if m.EndOfWordSuffix != nil {
		b.suffix = *m.EndOfWordSuffix
	}
	if m.ByteFallback {
		b.bytes = byteTokens(b.id)
	}
	b.merges = make(map[pair]merge, len(m.Merges))
	for rank, parts := range m.Merges {
		if err := b.addMerge(parts[0], parts[1], int32(rank)); err != nil {
			return nil, err
		}
	}
	b.prepare()
	return b, nil
}

// addMerge adds a merge. Its tokens and result must be in the vocabulary. Of two merges of the same
// tokens the last one counts.
func (m *bpe) addMerge(left, right string, rank int32) error {
	whole := right
	if len(whole) >= len(m.prefix) {
		whole = right[len(m.prefix):]
	}
	var ids [3]int32
	for i, token := range []string{left, right, left + whole} {
		id, ok := m.vocab[token]
		if !ok {
			return damaged("merge %d, %.50q and %.50q: the vocabulary lacks %.100q", rank, left, right, token)
		}
		ids[i] = id
	}
	m.merges[pair{ids[0], ids[1]}] = merge{rank, ids[2]}
	return nil
}
