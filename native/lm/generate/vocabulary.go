package generate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Vocabulary holds the texts of the tokens of a tokenizer. It may be used by several goroutines.
type Vocabulary struct {
	texts  []string // by token, "" for those without a text
	sorted []word
	ends   []int32
}

// word is a token in the order of texts.
type word struct {
	token  int32
	text   string
	shared int // the number of bytes in common with the word before
}

// part stands for a part of a character, which a token is or ends in: a byte that only a string may contain.
const part = "\x80"

// NewVocabulary decodes all tokens of a tokenizer, each as one within a text.
func NewVocabulary(t Tokenizer) *Vocabulary {
	v := &Vocabulary{texts: make([]string, t.Size()), ends: t.End()}
	within := -1 // a token with a text
	for id := range v.texts {
		if t.Stream().Next(int32(id)) != "" {
			within = id
			break
		}
	}
	for id := range v.texts {
		s := t.Stream()
		if within >= 0 {
			s.Next(int32(within)) // the first token of a text may be decoded without its space
		}
		text := s.Next(int32(id))
		if s.Rest() != "" {
			text += part
		}
		if text == "" || slices.Contains(v.ends, int32(id)) {
			continue
		}
		v.texts[id] = text
		v.sorted = append(v.sorted, word{token: int32(id), text: text})
	}
	slices.SortFunc(v.sorted, func(a, b word) int { return cmp.Compare(a.text, b.text) })
	for i := 1; i < len(v.sorted); i++ {
		a, b := v.sorted[i-1].text, v.sorted[i].text
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		v.sorted[i].shared = n
	}
	return v
}

// JSON returns the grammar of JSON values that a JSON schema describes; nil describes objects. Objects have the
// properties that the schema lists, in its order, and no others. A space, or a line break with up to 16
// spaces, may precede each value, name, and closing bracket. The error is of kind [ErrRequest] for a schema that is
// malformed or has a keyword that is not supported, which it names. Supported are type, properties, required,
// additionalProperties, items, minItems, maxItems, enum, const, anyOf, oneOf and $ref within the schema; one of the last
// five may stand beside type alone.
func (v *Vocabulary) JSON(schema json.RawMessage) (*Grammar, error) {
	root, err := jsonGrammar(schema)
	if err != nil {
		return nil, err
	}
	return &Grammar{root: root, words: v}, nil
}

// Text returns the text of a token within a text; "" for a special token, and a replacement character for a part of one.
func (v *Vocabulary) Text(token int32) string {
	return strings.ToValidUTF8(v.textOf(token), "\ufffd")
}

// textOf returns the text of a token.
func (v *Vocabulary) textOf(token int32) string {
	if token >= 0 && int(token) < len(v.texts) {
		return v.texts[token]
	}
	return ""
}

// mask returns the bits of the tokens that may follow a state.
func (v *Vocabulary) mask(m *machine, s *state) []uint32 {
	bits := make([]uint32, (len(v.texts)+31)/32)
	path := []*state{s} // path[n] is the state after n bytes of the last word
	for _, w := range v.sorted {
		if w.shared >= len(path) {
			continue // it begins with bytes that cannot follow
		}
		path = path[:w.shared+1]
		for len(path) <= len(w.text) {
			next := m.step(path[len(path)-1], w.text[len(path)-1])
			if next == nil {
				break
			}
			path = append(path, next)
		}
		if len(path) > len(w.text) {
			bits[w.token/32] |= 1 << (w.token % 32)
		}
	}
	for id, text := range v.texts {
		if s.free && text == "" {
			bits[id/32] |= 1 << (id % 32)
		}
	}
	return bits
}

// allowEnds sets the bits of the tokens that end a text.
func (v *Vocabulary) allowEnds(allowed []uint32) {
	for _, id := range v.ends {
		if int(id)/32 < len(allowed) {
			allowed[id/32] |= 1 << (id % 32)
		}
	}
}
