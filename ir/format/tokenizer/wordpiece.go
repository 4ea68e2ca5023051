package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

func missing(text string) error {
	return fmt.Errorf("%w: %.50q has no token, and there is none for unknown text", ErrUnknownToken, text)
}

// wordPiece takes the longest token that a word begins with, then the longest of those with a prefix that
// the rest begins with, and so on. A word that is not covered is one unknown token (BERT's rule).
type wordPiece struct {
	vocab    map[string]int32
	first    *trie // tokens at the beginning of a word
	rest     *trie // tokens with the prefix, without it
	unk      int32 // -1 for none
	maxRunes int   // words of more characters are unknown
}

// newWordPiece returns the model of a vocabulary; the tokens in marks match no text.
func newWordPiece(vocab map[string]int32, prefix string, unk int32, maxRunes int, marks map[int32]bool) *wordPiece {
	first, rest := without(vocab, marks), map[string]int32{}
	for token, id := range first {
		if len(token) > len(prefix) && token[:len(prefix)] == prefix {
			rest[token[len(prefix):]] = id
		}
	}
	return &wordPiece{vocab, newTrie(first), newTrie(rest), unk, maxRunes}
}

func (m *wordPiece) id(token string) (int32, bool) {
	id, ok := m.vocab[token]
	return id, ok
}

func (m *wordPiece) encode(word string, out []int32) ([]int32, error) {
	at := len(out)
	tooLong := utf8.RuneCountInString(word) > m.maxRunes
	tokens := m.first
	for rest := word; rest != ""; tokens = m.rest {
		n, id := tokens.longest(rest)
		if n == 0 || tooLong {
			if m.unk < 0 {
				return nil, missing(word)
			}
			return append(out[:at], m.unk), nil
		}
		out, rest = append(out, id), rest[n:]
	}
	return out, nil
}

// wordLevel has a token for each word.
type wordLevel struct {
	vocab map[string]int32
	unk   int32          // -1 for none
	marks map[int32]bool // match no text
}

func (m *wordLevel) id(token string) (int32, bool) {
	id, ok := m.vocab[token]
	return id, ok
}

func (m *wordLevel) encode(word string, out []int32) ([]int32, error) {
	if id, ok := m.vocab[word]; ok && !m.marks[id] {
		return append(out, id), nil
	}
	if m.unk < 0 {
		return nil, missing(word)
	}
	return append(out, m.unk), nil
}
