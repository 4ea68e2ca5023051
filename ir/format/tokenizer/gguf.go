package tokenizer

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
)

// The types of tokens in GGUF.
const (
	typeUnknown     = 2
	typeControl     = 3
	typeUserDefined = 4
)

// roles are the special tokens in metadata: the keys without "tokenizer.ggml." and "_token_id".
var roles = map[string]string{
	"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding", "sep": "seperator", "cls": "cls", "mask": "mask",
}

// metadata holds a GGUF file's keys about its tokenizer.
type metadata struct {
	f      *gguf.File
	tokens []string
	scores []float32
	types  []int32
	merges []string
	bos    bool // a text begins with the token bos unless a flag says otherwise
}

const metadataPrefix = "tokenizer.ggml."

// FromGGUF reads the tokenizer of a GGUF file: tokenizer.ggml.model llama, gpt2, bert or t5. The error is of
// kind [ErrDamaged], or [ir.ErrUnsupported] for another model or pre-tokenizer, which it names.
func FromGGUF(f *gguf.File) (*Tokenizer, error) {
	if f == nil {
		return nil, ir.Attrf("f is nil: it must be an open file")
	}
	model, ok := f.Text(metadataPrefix + "model")
	if !ok {
		return nil, damaged("the file has no %smodel", metadataPrefix)
	}
	m := metadata{f: f}
	m.tokens, _ = f.Value(metadataPrefix + "tokens").([]string)
	m.scores, _ = f.Value(metadataPrefix + "scores").([]float32)
	m.types, _ = f.Value(metadataPrefix + "token_type").([]int32)
	m.merges, _ = f.Value(metadataPrefix + "merges").([]string)
	if len(m.tokens) == 0 {
		return nil, damaged("the file has no %stokens", metadataPrefix)
	}
	if m.types != nil && len(m.types) != len(m.tokens) || m.scores != nil && len(m.scores) != len(m.tokens) {
		return nil, damaged("%d tokens have %d types and %d scores", len(m.tokens), len(m.types), len(m.scores))
	}
	t := &Tokenizer{template: plainTemplate{}, words: newCache(), special: map[string]int32{}}
	t.chat, _ = f.Text("tokenizer.chat_template")
	for role, key := range roles {
		id, ok := f.Int(metadataPrefix + key + "_token_id")
		if ok && id >= 0 && id < int64(len(m.tokens)) {
			t.special[role] = int32(id)
		}
	}
	var err error
	switch model {
	case "llama":
		err = m.sentencePiece(t)
	case "gpt2":
		err = m.bytePairs(t)
	case "bert":
		m.wordPieces(t)
	case "t5":
		err = m.unigram(t)
	default:
		err = ir.Errorf(ir.ErrUnsupported, "%smodel is %.50q: llama, gpt2, bert and t5 are known", metadataPrefix, model)
	}
	if err != nil {
		return nil, err
	}
	return t, m.finish(t, model)
}

// flag returns the value of a key that is a bool.
func (m *metadata) flag(key string, otherwise bool) bool {
	if value, ok := m.f.Value(metadataPrefix + key).(bool); ok {
		return value
	}
	return otherwise
}

// vocab returns the ids of tokens. Of tokens with the same text the first counts.
func (m *metadata) vocab() map[string]int32 {
	vocab := make(map[string]int32, len(m.tokens))
	for id, token := range m.tokens {
		if _, twice := vocab[token]; !twice {
			vocab[token] = int32(id)
		}
	}
	return vocab
}

// unknown returns the id of the token for unknown text, -1 for none.
func (m *metadata) unknown(t *Tokenizer) int32 {
	if id, ok := t.special["unk"]; ok {
		return id
	}
	for id, kind := range m.types {
		if kind == typeUnknown {
			return int32(id)
		}
	}
	return -1
}

// marks are the tokens that match no text.
func (m *metadata) marks() map[int32]bool {
	out := map[int32]bool{}
	for id, kind := range m.types {
		if kind == typeControl || kind == typeUnknown {
			out[int32(id)] = true
		}
	}
	return out
}

// finish sets the tokens by id, the added tokens and the template.
func (m *metadata) finish(t *Tokenizer, model string) error {
	var addedTokens []addedToken
	for id, kind := range m.types {
		control := kind == typeControl || kind == typeUnknown
		if control || kind == typeUserDefined {
			addedTokens = append(addedTokens, addedToken{ID: int32(id), Content: m.tokens[id], Special: control})
		}
	}
	t.tokens, t.present = slices.Clone(m.tokens), make([]bool, len(m.tokens))
	for id := range t.present {
		t.present[id] = true
	}
	t.ids = map[string]int32{}
	for _, a := range addedTokens {
		t.ids[a.Content] = a.ID
	}
	var err error
	if t.added, err = newAdded(addedTokens, nil); err != nil {
		return err
	}
	// bos and eos around a text, as the model has been trained; those of BERT have names of their own in older files
	bert := model == "bert"
	first, last := "bos", "eos"
	if _, named := t.special["cls"]; bert && named {
		first = "cls"
	}
	if _, named := t.special["sep"]; bert && named {
		last = "sep"
	}
	var before, after []part
	if id, ok := t.special[first]; ok && m.flag("add_bos_token", model == "llama" || bert || m.bos) {
		before = []part{{text: -1, ids: []int32{id}}}
	}
	if id, ok := t.special[last]; ok && m.flag("add_eos_token", model == "t5" || bert) {
		after = []part{{text: -1, ids: []int32{id}}}
	}
	one := slices.Concat(before, []part{{text: 0}}, after)
	two := slices.Concat(one, []part{{text: 1, type_: 1}}, after)
	t.template = partsTemplate{one, two}
	return nil
}

// sentencePiece sets byte-pair encoding by scores: pairs are merged that are a token, that with the
// highest score first. It is the same as merges in the order of the scores of their results.
func (m *metadata) sentencePiece(t *Tokenizer) error {
	if m.scores == nil {
		return damaged("the file has no %sscores", metadataPrefix)
	}
	b := &bpe{vocab: m.vocab(), unk: m.unknown(t), fuseUnk: true, merges: map[pair]merge{}}
	b.bytes = byteTokens(b.id)
	ranks := m.ranks()
	for text, id := range b.vocab {
		if len(text) > maxPieceBytes {
			continue
		}
		if m.types != nil && (m.types[id] == typeControl || m.types[id] == typeUnknown) {
			continue
		}
		for i := range text {
			left, ok := b.vocab[text[:i]]
			right, found := b.vocab[text[i:]]
			if i > 0 && ok && found {
				b.merges[pair{left, right}] = merge{ranks[m.scores[id]], id}
			}
		}
	}
	b.prepare()
	t.model = b
	prefix := m.flag("add_space_prefix", true)
	t.normalizer = spaceMarks(prefix)
	t.decoders = []decoder{perToken(func(token string, _, _ int) string { return strings.ReplaceAll(token, defaultMark, " ") }), wholeDecoder(joinByteTokens), wholeDecoder(fuse)}
	if prefix {
		t.decoders = append(t.decoders, stripDecoder(" ", 1, 0))
	}
	return nil
}

// maxPieceBytes bounds the tokens for which merges are made, since that takes the square of their length.
const maxPieceBytes = 1 << 10

// spaceMarks writes spaces as marks, with one before the text.
func spaceMarks(prefix bool) normalizer {
	marks := replace{literal(" "), defaultMark}
	if prefix {
		return normalizers{prepend(defaultMark), marks}
	}
	return marks
}

// ranks returns the rank of each score; the highest score has rank 0.
func (m *metadata) ranks() map[float32]int32 {
	distinct := map[float32]int32{}
	for _, s := range m.scores {
		distinct[s] = 0
	}
	sorted := slices.Sorted(maps.Keys(distinct))
	for i, s := range sorted {
		distinct[s] = int32(len(sorted) - 1 - i)
	}
	return distinct
}

// bytePairs sets byte-level byte-pair encoding.
func (m *metadata) bytePairs(t *Tokenizer) error {
	pre, _ := m.f.Text(metadataPrefix + "pre")
	rule, ok := preTokenizers[pre]
	if !ok {
		return ir.Errorf(ir.ErrUnsupported, "%spre is %.50q, a pre-tokenizer that is not known", metadataPrefix, pre)
	}
	m.bos = rule.bos
	b := &bpe{vocab: m.vocab(), unk: -1, wholeWords: rule.wholeWords, marks: m.marks(), merges: make(map[pair]merge, len(m.merges))}
	for rank, text := range m.merges {
		left, right, ok := cutMerge(text)
		if !ok {
			return damaged("merge %d is %.50q: it must be two tokens and a space", rank, text)
		}
		if err := b.addMerge(left, right, int32(rank)); err != nil {
			return err
		}
	}
	b.prepare()
	t.model = b
	for _, text := range rule.patterns {
		p, err := compilePattern(text)
		if err != nil {
			return err
		}
		t.splitters = append(t.splitters, delimited{p, isolated, false})
	}
	if rule.compose {
		t.normalizer = form(norm.NFC)
	}
	t.splitters = append(t.splitters, byteLevel{})
	t.deferBytes()
	t.decoders = []decoder{wholeDecoder(joinBytes)}
	return nil
}

// wordPieces sets BERT's model. In GGUF a token that begins a word has the mark, and the others no prefix.
func (m *metadata) wordPieces(t *Tokenizer) {
	const within = "##"
	vocab := make(map[string]int32, len(m.tokens))
	m.tokens = slices.Clone(m.tokens)
	for id, token := range m.tokens {
		word, begins := strings.CutPrefix(token, defaultMark)
		special := strings.HasPrefix(token, "[") && strings.HasSuffix(token, "]") && len(token) > 3
		if m.types != nil {
			special = m.types[id] == typeControl || m.types[id] == typeUnknown
		}
		begins = begins && word != "" // the mark alone is a character of a text
		if !begins && !special {
			word = within + token
		}
		m.tokens[id] = word
		if _, twice := vocab[word]; !twice {
			vocab[word] = int32(id)
		}
	}
	t.model = newWordPiece(vocab, within, m.unknown(t), 100, m.marks())
	t.normalizer = bert(true, true, true, true)
	t.splitters = []splitter{bertSplit}
	t.decoders = []decoder{wordPieceDecoder(within, true)}
}

// unigram sets the model of T5.
func (m *metadata) unigram(t *Tokenizer) error {
	if m.scores == nil {
		return damaged("the file has no %sscores", metadataPrefix)
	}
	scores := make([]float64, len(m.scores))
	for i, s := range m.scores {
		scores[i] = float64(s)
	}
	u := newUnigram(m.tokens, scores, m.unknown(t), true, m.marks())
	t.model = u
	var all normalizers
	if data, ok := m.f.Value(metadataPrefix + "precompiled_charsmap").([]uint8); ok && len(data) > 0 {
		c, err := newCharsmap(data)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	if m.flag("remove_extra_whitespaces", false) {
		p, err := compilePattern(" {2,}")
		if err != nil {
			return err
		}
		all = append(all, strip(true, true), replace{p, " "})
	}
	scheme, prefix := prependNever, m.flag("add_space_prefix", true)
	if prefix {
		scheme = prependAlways
	}
	t.normalizer = append(all, spaceMarks(prefix))
	t.decoders = []decoder{wholeDecoder(joinByteTokens), metaspaceDecoder(defaultMark, scheme)}
	return nil
}
