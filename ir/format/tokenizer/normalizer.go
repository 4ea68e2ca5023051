package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizer rewrites a text before it is split.
type normalizer interface {
	normalize(text string) (string, error)
}

// normalizers are applied one after the other.
type normalizers []normalizer

func (all normalizers) normalize(text string) (string, error) {
	for _, n := range all {
		var err error
		if text, err = n.normalize(text); err != nil {
			return "", err
		}
	}
	return text, nil
}

// rewrite is a normalizer that cannot fail.
type rewrite func(string) string

func (f rewrite) normalize(text string) (string, error) { return f(text), nil }

// form is a normal form of Unicode.
func form(f norm.Form) normalizer { return rewrite(f.String) }

// lower writes each character in lower case, without regard to its neighbours.
func lower(text string) string {
	ascii := true
	for i := range len(text) {
		ascii = ascii && text[i] < utf8.RuneSelf
	}
	if ascii {
		return strings.ToLower(text)
	}
	var sb strings.Builder
	sb.Grow(len(text))
	for _, r := range text {
		if r == 'İ' { // the only character with two lower-case characters
			sb.WriteString("i̇")
			continue
		}
		sb.WriteRune(unicode.ToLower(r))
	}
	return sb.String()
}

// keepIf returns a normalizer that drops the characters for which keep is false.
func keepIf(keep func(rune) bool) normalizer {
	return rewrite(func(text string) string {
		return strings.Map(func(r rune) rune {
			if keep(r) {
				return r
			}
			return -1
		}, text)
	})
}

func isMark(r rune) bool           { return unicode.Is(unicode.M, r) }
func isNonspacingMark(r rune) bool { return unicode.Is(unicode.Mn, r) }

// strip removes white space at the ends.
func strip(left, right bool) normalizer {
	return rewrite(func(text string) string {
		if left {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
		if right {
			text = strings.TrimRightFunc(text, unicode.IsSpace)
		}
		return text
	})
}

// prepend inserts text before a nonempty one.
func prepend(prefix string) normalizer {
	return rewrite(func(text string) string {
		if text == "" {
			return text
		}
		return prefix + text
	})
}

// replace replaces the matches of a pattern by content.
type replace struct {
	pattern pattern
	content string
}

func (n replace) normalize(text string) (string, error) {
	if l, ok := n.pattern.(literal); ok {
		if l == "" {
			return text, nil
		}
		return strings.ReplaceAll(text, string(l), n.content), nil
	}
	parts, err := n.pattern.find(text)
	if err != nil {
		return "", err
	}
	var sb strings.Builder
	for _, m := range parts {
		if m.delimiter {
			sb.WriteString(n.content)
		} else {
			sb.WriteString(text[m.start:m.end])
		}
	}
	return sb.String(), nil
}

// bert returns the normalizer of BERT.
func bert(clean, ideographs, accents, lowercase bool) normalizer {
	var all normalizers
	if clean {
		all = append(all, rewrite(cleanText))
	}
	if ideographs {
		all = append(all, rewrite(spaceIdeographs))
	}
	if accents {
		all = append(all, form(norm.NFD), keepIf(func(r rune) bool { return !isNonspacingMark(r) }))
	}
	if lowercase {
		all = append(all, rewrite(lower))
	}
	return all
}

func cleanText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == 0 || r == utf8.RuneError || isControl(r):
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, text)
}

func spaceIdeographs(text string) string {
	var sb strings.Builder
	for _, r := range text {
		if isIdeograph(r) {
			sb.WriteByte(' ')
			sb.WriteRune(r)
			sb.WriteByte(' ')
		} else {
			sb.WriteRune(r)
		}
	}
	return sb.String()
}

// nmt is SentencePiece's cleaning for translation: control characters are removed and separators are
// spaces.
func nmt(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 1 && r <= 8, r == 11, r >= 14 && r <= 31, r == 127, r == 0x8f, r == 0x9f:
			return -1
		case r == 9, r == 10, r == 12, r == 13, r == 0x1680, r >= 0x200b && r <= 0x200f, r == 0x2028, r == 0x2029,
			r == 0x2581, r == 0xfeff, r == 0xfffd:
			return ' '
		}
		return r
	}, text)
}
