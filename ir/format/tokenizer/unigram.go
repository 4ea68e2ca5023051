package tokenizer

import (
	"maps"
	"slices"
	"unicode/utf8"
)

// unknownPenalty is by how much a character outside the vocabulary scores below the lowest token, in
// SentencePiece.
const unknownPenalty = 10

// unigram splits a word into the tokens with the largest sum of scores, by Viterbi's algorithm (Kudo,
// "Subword regularization", 2018).
type unigram struct {
	ids    map[string]int32
	scores []float64 // by id
	trie   *trie
	unk    int32 // -1 for none
	lowest float64
	bytes  *[256]int32    // nil for none
	marks  map[int32]bool // match no text
}

func (m *unigram) id(token string) (int32, bool) {
	id, ok := m.ids[token]
	return id, ok
}

// newUnigram returns the model of tokens in the order of their ids; those in marks match no text.
func newUnigram(tokens []string, scores []float64, unk int32, byteFallback bool, marks map[int32]bool) *unigram {
	m := &unigram{ids: make(map[string]int32, len(tokens)), scores: scores, unk: unk}
	for id, token := range tokens {
		m.ids[token] = int32(id)
	}
	if len(scores) > 0 {
		m.lowest = slices.Min(scores)
	}
	m.trie, m.marks = newTrie(without(m.ids, marks)), marks
	if byteFallback {
		m.bytes = byteTokens(m.id)
	}
	return m
}

// without returns the tokens that are not those of marks.
func without(vocab map[string]int32, marks map[int32]bool) map[string]int32 {
	if len(marks) == 0 {
		return vocab
	}
	vocab = maps.Clone(vocab)
	maps.DeleteFunc(vocab, func(_ string, id int32) bool { return marks[id] })
	return vocab
}

// node is the best way to an end: the last token of it and where that begins.
type node struct {
	score float64
	start int32 // -1 for no way yet
	id    int32
}

func (m *unigram) encode(word string, out []int32) ([]int32, error) {
	best := make([]node, len(word)+1)
	for i := range best {
		best[i].start = -1
	}
	reach := func(start, end int, id int32, score float64) {
		if n := &best[end]; n.start < 0 || score > n.score {
			*n = node{score, int32(start), id}
		}
	}
	for at := 0; at < len(word); {
		_, size := utf8.DecodeRuneInString(word[at:])
		covered := false
		here := best[at].score
		m.trie.prefixes(word[at:], func(length int, id int32) {
			reach(at, at+length, id, here+m.scores[id])
			covered = covered || length == size
		})
		if !covered {
			if m.unk < 0 {
				return nil, missing(word[at : at+size])
			}
			reach(at, at+size, m.unk, here+m.lowest-unknownPenalty)
		}
		at += size
	}
	return m.back(word, best, out), nil
}

// back appends the tokens of the best way, which is found from its end. Unknown tokens that follow one
// another are one.
func (m *unigram) back(word string, best []node, out []int32) []int32 {
	at := len(out)
	for end := len(word); end > 0; {
		n := best[end]
		start := int(n.start)
		if n.id != m.unk {
			out = append(out, n.id)
			end = start
			continue
		}
		for start > 0 && best[start].id == m.unk {
			start = int(best[start].start)
		}
		out = m.unknown(word[start:end], out)
		end = start
	}
	slices.Reverse(out[at:])
	return out
}

// unknown appends the ids of text that no token covers, the last first.
func (m *unigram) unknown(text string, out []int32) []int32 {
	if id, ok := m.ids[text]; ok && !m.marks[id] {
		return append(out, id)
	}
	if m.bytes == nil {
		return append(out, m.unk)
	}
	for i := len(text) - 1; i >= 0; i-- {
		out = append(out, m.bytes[text[i]])
	}
	return out
}
