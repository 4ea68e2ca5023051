package tokenizer

import (
	"slices"
	"strings"
)

// trie finds the words of a vocabulary that a text begins with. The nodes of a level are
// contiguous, the children of a node sorted by byte.
type trie struct {
	nodes []trieNode
	root  [256]int32 // children of the root; 0 for none
}

type trieNode struct {
	value int32 // of the word that ends here; -1 for none
	first int32 // the first child
	count uint16
	label byte
}

// newTrie makes a trie of words and their values. The empty word is ignored.
func newTrie(values map[string]int32) *trie {
	words := make([]string, 0, len(values))
	for w := range values {
		words = append(words, w)
	}
	slices.Sort(words)
	type span struct {
		node             int32
		from, to, length int
	}
	t := &trie{nodes: []trieNode{{value: -1}}}
	queue := []span{{0, 0, len(words), 0}}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		t.nodes[s.node].first = int32(len(t.nodes))
		for i := s.from; i < s.to; {
			w := words[i]
			if len(w) == s.length {
				i++ // ends at the node itself
				continue
			}
			stem := w[:s.length+1]
			end := i
			for end < s.to && strings.HasPrefix(words[end], stem) {
				end++
			}
			child := trieNode{value: -1, label: w[s.length]}
			if len(w) == s.length+1 {
				child.value = values[w]
			}
			id := int32(len(t.nodes))
			t.nodes = append(t.nodes, child)
			t.nodes[s.node].count++
			if s.node == 0 {
				t.root[child.label] = id
			}
			queue = append(queue, span{id, i, end, s.length + 1})
			i = end
		}
	}
	return t
}

// child returns the child of a node by a byte, 0 for none.
func (t *trie) child(node int32, b byte) int32 {
	if node == 0 {
		return t.root[b]
	}
	n := &t.nodes[node]
	low, high := n.first, n.first+int32(n.count)
	for low < high {
		mid := int32(uint32(low+high) >> 1)
		if t.nodes[mid].label < b {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < n.first+int32(n.count) && t.nodes[low].label == b {
		return low
	}
	return 0
}

// prefixes calls f with the length and the value of each word that text begins with, the shortest first.
func (t *trie) prefixes(text string, f func(length int, value int32)) {
	node := int32(0)
	for i := range len(text) {
		if node = t.child(node, text[i]); node == 0 {
			return
		}
		if v := t.nodes[node].value; v >= 0 {
			f(i+1, v)
		}
	}
}

// longest returns the longest word that text begins with; length 0 for none.
func (t *trie) longest(text string) (length int, value int32) {
	t.prefixes(text, func(n int, v int32) { length, value = n, v })
	return length, value
}

// begins reports whether a word begins with a text.
func (t *trie) begins(text string) bool {
	node := int32(0)
	for i := range len(text) {
		if node = t.child(node, text[i]); node == 0 {
			return false
		}
	}
	return true
}
