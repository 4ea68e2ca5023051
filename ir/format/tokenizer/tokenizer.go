package tokenizer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// Tokenizer is a vocabulary with the rules that split text into its tokens. It may be used by
// several goroutines.
type Tokenizer struct {
	normalizer normalizer // nil for none
	splitters  []splitter
	model      model
	byteLevel  bool // words are mapped to the alphabet of [byteRune] before the model
	template   template
	decoders   []decoder
	added      added
	tokens     []string         // by id; "" for an id without a token
	present    []bool           // by id: it has a token
	ids        map[string]int32 // of added tokens
	words      *cache
	special    map[string]int32 // of GGUF's metadata or by their usual names: "bos", "eos", "unk", "pad"
	chat       string
}

// EncodeOptions are the options of [Tokenizer.Encode]. The zero value adds the special tokens of the
// tokenizer's template and recognises special tokens in the text.
type EncodeOptions struct {
	// OmitSpecial omits the tokens that the tokenizer's template adds around a text.
	OmitSpecial bool
	// SpecialAsText reads the special tokens in a text, such as "<|im_end|>", as any other text.
	SpecialAsText bool
	// Quoted means that the text has parts that [Tokenizer.Quote] made: special tokens in these are text.
	Quoted bool
}

// DecodeOptions are the options of [Tokenizer.Decode]. The zero value writes all tokens.
type DecodeOptions struct {
	// OmitSpecial omits special tokens.
	OmitSpecial bool
}

// Encode returns the ids of the tokens of a text. Bytes that are no UTF-8 count as U+FFFD. It takes time
// proportional to the length of the text, with a factor log n within a word. The error is of kind
// [ErrUnknownToken], or [ir.ErrUnsupported] if a pattern of the tokenizer takes too many steps on the text.
func (t *Tokenizer) Encode(text string, o EncodeOptions) ([]int32, error) {
	if t == nil {
		return nil, ir.Attrf("the tokenizer is nil: it must be from Read, Open or FromGGUF")
	}
	ids, err := t.encode(text, o)
	if err != nil || o.OmitSpecial {
		return ids, err
	}
	ids, _ = t.template.single(ids)
	return ids, nil
}

// EncodePair returns the ids of two texts, joined by the tokenizer's template as encoders expect a
// pair, and the type of each token in the template, 0 or 1.
func (t *Tokenizer) EncodePair(first, second string, o EncodeOptions) (ids, types []int32, err error) {
	if t == nil {
		return nil, nil, ir.Attrf("the tokenizer is nil: it must be from Read, Open or FromGGUF")
	}
	a, err := t.encode(first, o)
	if err != nil {
		return nil, nil, err
	}
	b, err := t.encode(second, o)
	if err != nil {
		return nil, nil, err
	}
	if o.OmitSpecial {
		ids, types = plainTemplate{}.pair(a, b)
	} else {
		ids, types = t.template.pair(a, b)
	}
	return ids, types, nil
}

// encode returns the ids of a text without those of the template.
func (t *Tokenizer) encode(text string, o EncodeOptions) ([]int32, error) {
	out := make([]int32, 0, len(text)/4+8)
	var err error
	text = valid(text)
	for raw := range t.added.raw.find(text, o.SpecialAsText, o.Quoted) {
		if raw.id >= 0 {
			out = append(out, raw.id)
			continue
		}
		part, asText := text[raw.start:raw.end], o.SpecialAsText
		if o.Quoted && strings.Contains(part, quoteMark) {
			part, asText = strings.ReplaceAll(part, quoteMark, ""), true
		}
		if t.normalizer != nil {
			if part, err = t.normalizer.normalize(part); err != nil {
				return nil, err
			}
		}
		for span := range t.added.normalized.find(part, asText, false) {
			if span.id >= 0 {
				out = append(out, span.id)
				continue
			}
			p := piece{part[span.start:span.end], raw.start == 0 && span.start == 0}
			if out, err = t.encodePiece(p, out); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// encodePiece appends the ids of normalized text without added tokens.
func (t *Tokenizer) encodePiece(p piece, out []int32) ([]int32, error) {
	pieces, err := t.split(p)
	for _, p := range pieces {
		if err == nil {
			out, err = t.encodeWord(p.text, out)
		}
	}
	return out, err
}

// split returns the words of normalized text.
func (t *Tokenizer) split(p piece) ([]piece, error) {
	pieces := []piece{p}
	for _, s := range t.splitters {
		next := make([]piece, 0, len(pieces)+len(p.text)/6)
		for _, p := range pieces {
			var err error
			if next, err = s.split(p, next); err != nil {
				return nil, err
			}
		}
		pieces = next
	}
	return pieces, nil
}

// encodeWord appends the ids of a word, a piece that is not split further.
func (t *Tokenizer) encodeWord(word string, out []int32) ([]int32, error) {
	if word == "" {
		return out, nil
	}
	if ids, ok := t.words.get(word); ok {
		return append(out, ids...), nil
	}
	text, at := word, len(out)
	if t.byteLevel {
		text = toByteLevel(word)
	}
	out, err := t.model.encode(text, out)
	if err == nil {
		t.words.put(word, out[at:])
	}
	return out, err
}

// Size returns the number of ids: the largest id of a token plus one.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// Token returns the text of a token as the vocabulary has it: with the replacements for bytes or spaces
// that its kind of tokenizer makes. False if the id has no token.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if !t.has(id) {
		return "", false
	}
	return t.tokens[id], true
}

// ID returns the id of a token, spelled as in the vocabulary. It returns false if there is none.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.ids[token]; ok {
		return id, true
	}
	return t.model.id(token)
}

// Special reports whether a token is special: a mark that is no text, such as the end of a turn.
func (t *Tokenizer) Special(id int32) bool { return t.has(id) && t.added.special[id] }

// SpecialID returns the id of the token of a role: "bos", "eos", "unk", "pad", "sep", "cls" or "mask". The
// metadata of a GGUF file say which they are. A tokenizer.json does not: false.
func (t *Tokenizer) SpecialID(role string) (int32, bool) {
	id, ok := t.special[role]
	return id, ok
}

// ChatTemplate returns the chat template of a GGUF file, for package chat; "" if there is none. A
// folder with tokenizer.json has it in tokenizer_config.json.
func (t *Tokenizer) ChatTemplate() string { return t.chat }

func (t *Tokenizer) has(id int32) bool {
	return id >= 0 && int(id) < len(t.tokens) && t.present[id]
}

// setTokens fills the table of tokens by id: the model's and the added ones. A model may have set it to a list
// with a token twice; the vocabulary has the last. Ids are bounded by the number of tokens, so that
// the table is no larger than a multiple of the file.
func (t *Tokenizer) setTokens(of map[string]int32, addedTokens []addedToken) error {
	bound := int64(len(of)+len(addedTokens))*4 + 1<<16
	largest := int32(-1)
	check := func(token string, id int32) error {
		if int64(id) >= bound || id < 0 {
			return damaged("token %.50q has the id %d: it must be from 0 to %d", token, id, bound-1)
		}
		largest = max(largest, id)
		return nil
	}
	for token, id := range of {
		if err := check(token, id); err != nil {
			return err
		}
	}
	for _, a := range addedTokens {
		if err := check(a.Content, a.ID); err != nil {
			return err
		}
	}
	list := t.tokens
	t.tokens, t.present = make([]string, largest+1), make([]bool, largest+1)
	for token, id := range of {
		if t.present[id] {
			return damaged("tokens %.50q and %.50q have the same id %d", min(token, t.tokens[id]), max(token, t.tokens[id]), id)
		}
		t.tokens[id], t.present[id] = token, true
	}
	for id, token := range list[:min(len(list), len(t.tokens))] {
		t.tokens[id], t.present[id] = token, true
	}
	t.ids = make(map[string]int32, len(addedTokens))
	for _, a := range addedTokens {
		t.tokens[a.ID], t.present[a.ID] = a.Content, true
		t.ids[a.Content] = a.ID
	}
	return nil
}

// noToken is the error for an id that has no token.
func noToken(id int32, size int) error {
	return ir.Errorf(ir.ErrIndex, "no token has the id %d: ids are below %d", id, size)
}

// ErrDamaged is the kind of the errors for data that are no tokenizer: no JSON, parts that are missing
// or contradict each other, sizes beyond the bounds of the package.
var ErrDamaged = errors.New("damaged tokenizer")

// ErrUnknownToken is the kind of the errors for text that the vocabulary does not cover, where the
// tokenizer has no token for unknown text.
var ErrUnknownToken = errors.New("text outside the vocabulary")

func damaged(text string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(text, args...))
}
