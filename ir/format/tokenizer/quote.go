package tokenizer

import (
	"strings"
	"unicode/utf8"

	"github.com/rlx-go/rlx/ir"
)

// quoteMark divides the special tokens of quoted text: U+FDD0, which is no character.
const quoteMark = "\uFDD0"

// Quote marks the special tokens of a text, so that it can be a part of a larger text, such as a
// conversation, without forging them: with [EncodeOptions.Quoted], Encode reads them as text and takes the
// marks away. The mark is U+FDD0, which is no character; one in the text becomes U+FFFD.
func (t *Tokenizer) Quote(text string) (string, error) {
	if t == nil {
		return "", ir.Attrf("the tokenizer is nil: it must be from Read, Open or FromGGUF")
	}
	text = strings.ReplaceAll(valid(text), quoteMark, "\uFFFD")
	normalized := text
	if t.normalizer != nil {
		var err error
		if normalized, err = t.normalizer.normalize(text); err != nil {
			return "", err
		}
	}
	marks := t.added.marks
	var sb strings.Builder
	done := 0
	for at := range text {
		if n, _ := marks.longest(text[at:]); n == 0 {
			continue
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		sb.WriteString(text[done : at+size])
		sb.WriteString(quoteMark)
		done = at + size
	}
	sb.WriteString(text[done:])
	if t.added.begins(text) || t.added.hasSpecial(normalized) {
		sb.WriteString(quoteMark)
	}
	return sb.String(), nil
}

// begins reports whether the end of a text is the beginning of a special token, which text after it could
// complete.
func (a *added) begins(text string) bool {
	for at := max(0, len(text)-a.longest); at < len(text); at++ {
		if a.marks.begins(text[at:]) {
			return true
		}
	}
	return false
}

// hasSpecial reports whether a normalized text has a special token.
func (a *added) hasSpecial(text string) bool {
	for span := range a.normalized.find(text, false, false) {
		if span.id >= 0 && a.special[span.id] {
			return true
		}
	}
	return false
}

// textless returns the ids of the special tokens that match no text unless they are found in it: all but those
// for unknown text and for bytes. A special token that stood for its own text could be forged.
func textless(tokens []addedToken, vocab map[string]int32, unk int32) map[int32]bool {
	out := map[int32]bool{}
	for _, token := range tokens {
		id, ok := vocab[token.Content]
		if _, isByte := byteOf(token.Content); ok && token.Special && id != unk && !isByte {
			out[id] = true
		}
	}
	return out
}
