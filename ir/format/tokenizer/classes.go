package tokenizer

import (
	"strings"
	"unicode"
)

// The classes of characters that splitters and normalizers ask for, by the Unicode version of Go.

// isWord is \w of the expressions of Rust, which the pre-tokenizer Whitespace and single_word use: letters,
// marks, digits, connectors and joiners.
func isWord(r rune) bool {
	if r < 0x80 {
		return r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}

// isPatternWord is \w of patterns, whose syntax is Oniguruma's: without joiners.
func isPatternWord(r rune) bool { return isWord(r) && !unicode.Is(unicode.Join_Control, r) }

// isLoneWord is \w of patterns outside of brackets, and what \b separates: Oniguruma's table for Latin-1 has raised digits
// and fractions, too.
func isLoneWord(r rune) bool { return isPatternWord(r) || strings.ContainsRune("²³¹¼½¾", r) }

// isPunctuation is the punctuation of BERT: that of Unicode, and all of ASCII that is no letter, digit or
// space.
func isPunctuation(r rune) bool {
	if r < 0x80 {
		return r > ' ' && r < 0x7f && (!isWord(r) || r == '_')
	}
	return unicode.Is(unicode.P, r)
}

// isControl reports whether BERT removes a character: control, format and private ones, except tabs and ends of lines.
func isControl(r rune) bool {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return false
	case r < 0x80:
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

// isIdeograph reports whether BERT calls a character Chinese.
func isIdeograph(r rune) bool {
	return r >= 0x4e00 && r <= 0x9fff || r >= 0x3400 && r <= 0x4dbf || r >= 0x20000 && r <= 0x2a6df ||
		r >= 0x2a700 && r <= 0x2b73f || r >= 0x2b740 && r <= 0x2b81f || r >= 0x2b920 && r <= 0x2ceaf ||
		r >= 0xf900 && r <= 0xfaff || r >= 0x2f800 && r <= 0x2fa1f
}
