package tokenizer

import (
	"container/heap"
	"fmt"
	"unicode/utf8"
)

// model turns a word into ids.
type model interface {
	// encode appends the ids of a word.
	encode(word string, out []int32) ([]int32, error)
	id(token string) (int32, bool)
}

// bpe is byte-pair encoding: the characters of a word are merged pair by pair, the pair of the lowest
// rank first (Sennrich et al., "Neural machine translation of rare words with subword units", 2016).
type bpe struct {
	vocab        map[string]int32
	merges       map[pair]merge
	unk          int32 // -1 for none
	fuseUnk      bool
	bytes        *[256]int32    // ids of the bytes for characters outside the vocabulary; nil for none
	prefix       string         // before all characters but the first
	suffix       string         // after the last
	wholeWords   bool           // a word of the vocabulary is not merged
	marks        map[int32]bool // match no word
	runes        [128]int32     // ids of ASCII characters without prefix and suffix; -1 for none
	withoutAffix bool
}

type (
	pair  struct{ left, right int32 }
	merge struct{ rank, id int32 }
)

func (m *bpe) id(token string) (int32, bool) {
	id, ok := m.vocab[token]
	return id, ok
}

// prepare computes the derived fields.
func (m *bpe) prepare() {
	m.withoutAffix = m.prefix == "" && m.suffix == ""
	for c := range m.runes {
		m.runes[c] = -1
		if id, ok := m.vocab[string(rune(c))]; ok {
			m.runes[c] = id
		}
	}
}

func (m *bpe) encode(word string, out []int32) ([]int32, error) {
	if m.wholeWords {
		if id, ok := m.vocab[word]; ok && !m.marks[id] {
			return append(out, id), nil
		}
	}
	at := len(out)
	out = m.characters(word, out)
	merged := m.merge(out[at:])
	return out[:at+merged], nil
}

// characters appends the ids of the characters of a word: of their bytes or of the unknown token where
// the vocabulary lacks one.
func (m *bpe) characters(word string, out []int32) []int32 {
	unknown := false // the last character was unknown; the next ones join its token
	for i, r := range word {
		size := utf8.RuneLen(r)
		id := m.character(word, i, size)
		if id >= 0 {
			out, unknown = append(out, id), false
			continue
		}
		if m.bytes != nil && m.withoutAffix {
			for _, b := range []byte(word[i : i+size]) {
				out = append(out, m.bytes[b])
			}
			continue
		}
		if m.unk >= 0 && !(unknown && m.fuseUnk) {
			out = append(out, m.unk)
		}
		unknown = true
	}
	return out
}

// character returns the id of the character of a word at a position, -1 for none.
func (m *bpe) character(word string, at, size int) int32 {
	if m.withoutAffix && size == 1 {
		return m.runes[word[at]]
	}
	text := word[at : at+size]
	if at > 0 {
		text = m.prefix + text
	}
	if at+size == len(word) {
		text += m.suffix
	}
	if id, ok := m.vocab[text]; ok {
		return id
	}
	return -1
}

// shortWord is the length up to which looking through all pairs is faster than a heap.
const shortWord = 24

// merge merges the ids of a word in place and returns how many remain.
func (m *bpe) merge(ids []int32) int {
	if len(ids) <= shortWord {
		return m.mergeShort(ids)
	}
	return m.mergeLong(ids)
}

func (m *bpe) mergeShort(ids []int32) int {
	const none = int32(1<<31 - 1)
	var ranks [shortWord]merge // of the pair that begins at an index
	look := func(i int) {
		ranks[i].rank = none
		if i >= 0 && i+1 < len(ids) {
			if found, ok := m.merges[pair{ids[i], ids[i+1]}]; ok {
				ranks[i] = found
			}
		}
	}
	for i := range ids {
		look(i)
	}
	for {
		best := 0
		for i := 1; i+1 < len(ids); i++ {
			if ranks[i].rank < ranks[best].rank {
				best = i
			}
		}
		if len(ids) < 2 || ranks[best].rank == none {
			return len(ids)
		}
		ids[best] = ranks[best].id
		copy(ids[best+1:], ids[best+2:])
		copy(ranks[best+1:], ranks[best+2:len(ids)])
		ids = ids[:len(ids)-1]
		look(best)
		if best > 0 {
			look(best - 1)
		}
	}
}

// candidate is a pair in the heap: the merged token, and the pair's position.
type candidate struct {
	merge
	at int32
}

type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = old[:len(old)-1]
	return last
}

// mergeLong merges with a heap of pairs over a linked list: n log n steps.
func (m *bpe) mergeLong(ids []int32) int {
	n := int32(len(ids))
	next, previous := make([]int32, n), make([]int32, n)
	var queue candidates
	push := func(at int32) {
		if at >= 0 && next[at] < n {
			if found, ok := m.merges[pair{ids[at], ids[next[at]]}]; ok {
				heap.Push(&queue, candidate{found, at})
			}
		}
	}
	for i := range n {
		next[i], previous[i] = i+1, i-1
	}
	for i := range n {
		push(i)
	}
	const gone = -1
	for len(queue) > 0 {
		c := heap.Pop(&queue).(candidate)
		if ids[c.at] == gone || next[c.at] >= n {
			continue
		}
		right := next[c.at]
		if now, ok := m.merges[pair{ids[c.at], ids[right]}]; !ok || now != c.merge {
			continue // a neighbour was merged since
		}
		ids[c.at], ids[right] = c.id, gone
		next[c.at] = next[right]
		if next[c.at] < n {
			previous[next[c.at]] = c.at
		}
		push(previous[c.at])
		push(c.at)
	}
	kept := 0
	for i := int32(0); i < n; i = next[i] {
		ids[kept] = ids[i]
		kept++
	}
	return kept
}

// byteTokens returns the ids of the tokens <0x00> to <0xFF>, nil unless all are in the vocabulary.
func byteTokens(id func(string) (int32, bool)) *[256]int32 {
	var ids [256]int32
	for b := range ids {
		found, ok := id(fmt.Sprintf("<0x%02X>", b))
		if !ok {
			return nil
		}
		ids[b] = found
	}
	return &ids
}
