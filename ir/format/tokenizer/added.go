package tokenizer

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is found in a text before the model splits it. The names are those of
// tokenizer.json.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // matches only if no letter or digit is adjacent
	LStrip     bool   `json:"lstrip"`      // takes the white space before it
	RStrip     bool   `json:"rstrip"`      // takes the white space after it
	Normalized bool   `json:"normalized"`  // found in normalized text
	Special    bool   `json:"special"`
}

// added holds the added tokens: those found in a text itself, and those found in normalized text.
type added struct {
	raw, normalized finder
	special         map[int32]bool
	marks           *trie            // the special tokens
	longest         int              // the bytes of the longest of them
	texts           map[int32]string // by id what those found in normalized text decode to
}

// newAdded sorts added tokens by where they are found. Those found in normalized text are normalized
// themselves.
func newAdded(tokens []addedToken, n normalizer) (added, error) {
	a := added{special: map[int32]bool{}, texts: map[int32]string{}}
	raw, normalized, marks := map[string]int32{}, map[string]int32{}, map[string]int32{}
	for i, token := range tokens {
		content := token.Content
		if token.Special {
			a.special[token.ID] = true
			marks[content] = token.ID
			a.longest = max(a.longest, len(content))
		}
		of := raw
		if token.Normalized {
			of = normalized
			if n != nil {
				var err error
				if content, err = n.normalize(content); err != nil {
					return a, err
				}
				a.texts[token.ID] = content
			}
		}
		if _, twice := of[content]; content != "" && !twice {
			of[content] = int32(i)
		}
	}
	a.raw, a.normalized, a.marks = newFinder(raw, tokens), newFinder(normalized, tokens), newTrie(marks)
	return a, nil
}

// finder finds tokens in a text, the longest at the first position where one begins.
type finder struct {
	tokens []addedToken
	trie   *trie
	starts [256]bool // the first bytes of the tokens
	none   bool
}

func newFinder(of map[string]int32, tokens []addedToken) finder {
	f := finder{tokens: tokens, trie: newTrie(of), none: len(of) == 0}
	for content := range of {
		f.starts[content[0]] = true
	}
	return f
}

// found is a part of a text: an added token, or the text between two, with id -1.
type found struct {
	start, end int
	id         int32
}

// find yields the nonempty parts of a text in order. Special tokens are treated as text if
// requested, or, if quoted is set, where the mark of [Tokenizer.Quote] follows them.
func (f *finder) find(text string, specialAsText, quoted bool) iter.Seq[found] {
	return func(yield func(found) bool) {
		done := 0 // the end of the last part
		for at := 0; at < len(text) && !f.none; {
			length, index := 0, int32(0)
			if f.starts[text[at]] {
				length, index = f.trie.longest(text[at:])
			}
			if length == 0 {
				at++
				continue
			}
			token := &f.tokens[index]
			start, end := at, at+length
			at = end
			asText := specialAsText || quoted && strings.HasPrefix(text[end:], quoteMark)
			if token.Special && asText || token.SingleWord && insideWord(text, start, end) {
				continue
			}
			if token.LStrip {
				start = spaceBefore(text, start)
			}
			if token.RStrip {
				end = spaceAfter(text, end)
			}
			start = max(start, done)
			if token.LStrip && start >= end {
				continue // in the white space that the token before has taken
			}
			if done < start && !yield(found{done, start, -1}) {
				return
			}
			if !yield(found{start, end, token.ID}) {
				return
			}
			done = end
		}
		if done < len(text) {
			yield(found{done, len(text), -1})
		}
	}
}

// insideWord reports whether a word character is adjacent to text[start:end].
func insideWord(text string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return start > 0 && isWord(before) || end < len(text) && isWord(after)
}

// spaceBefore returns where the white space that ends at a position begins.
func spaceBefore(text string, at int) int {
	for at > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:at])
		if !unicode.IsSpace(r) {
			break
		}
		at -= size
	}
	return at
}

// spaceAfter returns where the white space that begins at a position ends.
func spaceAfter(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !unicode.IsSpace(r) {
			break
		}
		at += size
	}
	return at
}
