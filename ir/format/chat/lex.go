package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind int

const (
	kindEnd    kind = iota
	kindText        // of the output
	kindBegin       // {{ or {%
	kindClose       // }} or %}
	kindName        // a name or keyword
	kindString      // a literal, without quotes and escapes
	kindInt
	kindFloat
	kindSign // an operator or punctuation
)

type token struct {
	kind kind
	text string
	line int
}

// signs are the operators, the longest first.
var signs = []string{"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", ".", ",", ":", "|", "(", ")", "[", "]", "{", "}"}

// lexer divides a template into tokens.
type lexer struct {
	text string
	at   int
	line int
	out  []token
}

// maxTemplate bounds a template, in bytes.
const maxTemplate = 1 << 20

func lex(text string) ([]token, error) {
	if len(text) > maxTemplate {
		return nil, &Error{1, ErrLimit, "the template has more than a million bytes"}
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	l := &lexer{text: strings.TrimSuffix(text, "\n"), line: 1}
	trim := false // the text that follows begins after its white space
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		open := nextOpening(rest)
		plain := rest[:open]
		l.addText(plain, rest[open:], trim)
		l.skip(open)
		if l.at == len(l.text) {
			break
		}
		var err error
		if trim, err = l.tag(); err != nil {
			return nil, err
		}
	}
	return append(l.out, token{kindEnd, "", l.line}), nil
}

// nextOpening returns the position of the next {{, {% or {#, the length of the text if there is
// none.
func nextOpening(text string) int {
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '{' && (text[i+1] == '{' || text[i+1] == '%' || text[i+1] == '#') {
			return i
		}
	}
	return len(text)
}

// skip goes on by n bytes.
func (l *lexer) skip(n int) {
	l.line += strings.Count(l.text[l.at:l.at+n], "\n")
	l.at += n
}

// addText adds text of the output: without its white space where the tag before or after it asks for that,
// and without the blanks of its last line before a block or a comment.
func (l *lexer) addText(text, after string, trim bool) {
	if trim {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	if len(after) >= 3 {
		switch {
		case after[2] == '-':
			text = strings.TrimRightFunc(text, unicode.IsSpace)
		case after[2] != '+' && after[1] != '{':
			line := text[strings.LastIndexByte(text, '\n')+1:]
			if strings.TrimLeftFunc(line, unicode.IsSpace) == "" && (len(line) < len(text) || l.atLineStart()) {
				text = text[:len(text)-len(line)]
			}
		}
	}
	if text != "" {
		l.out = append(l.out, token{kindText, text, l.line})
	}
}

// atLineStart reports whether the text is preceded only by white space in its line of the template.
func (l *lexer) atLineStart() bool { return l.at == 0 || l.text[l.at-1] == '\n' }

// tag reads a comment, a block or an output, and reports whether white space after it is to be trimmed.
func (l *lexer) tag() (trim bool, err error) {
	opening := l.text[l.at : l.at+2]
	line := l.line
	if opening == "{#" {
		end := strings.Index(l.text[l.at:], "#}")
		if end < 0 {
			return false, &Error{line, ErrSyntax, "a comment is not closed"}
		}
		trim = end > 2 && l.text[l.at+end-1] == '-'
		l.skip(end + 2)
		l.skipLineEnd()
		return trim, nil
	}
	closing := map[string]string{"{{": "}}", "{%": "%}"}[opening]
	l.out = append(l.out, token{kindBegin, opening, line})
	l.skip(2)
	if l.at < len(l.text) && (l.text[l.at] == '-' || l.text[l.at] == '+') {
		l.skip(1)
	}
	depth := 0 // of braces, within which }} closes them
	for {
		for l.at < len(l.text) && strings.IndexByte(" \t\n\f\v", l.text[l.at]) >= 0 {
			l.skip(1)
		}
		rest := l.text[l.at:]
		switch {
		case rest == "":
			return false, &Error{line, ErrSyntax, opening + " is not closed"}
		case strings.HasPrefix(rest, "-"+closing):
			l.close(3)
			return true, nil
		case strings.HasPrefix(rest, "+"+closing):
			l.close(3)
			return false, nil
		case strings.HasPrefix(rest, closing) && depth == 0:
			l.close(2)
			if closing == "%}" {
				l.skipLineEnd()
			}
			return false, nil
		}
		if err := l.token(); err != nil {
			return false, err
		}
		switch l.out[len(l.out)-1] {
		case token{kindSign, "{", l.line}:
			depth++
		case token{kindSign, "}", l.line}:
			depth--
		}
	}
}

func (l *lexer) close(n int) {
	l.out = append(l.out, token{kindClose, "", l.line})
	l.skip(n)
}

// skipLineEnd skips the end of line after a block or a comment.
func (l *lexer) skipLineEnd() {
	if l.at < len(l.text) && l.text[l.at] == '\n' {
		l.skip(1)
	}
}

// token reads a token of an expression.
func (l *lexer) token() error {
	rest := l.text[l.at:]
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case r == '\'' || r == '"':
		return l.stringLiteral(byte(r))
	case r >= '0' && r <= '9':
		l.number()
		return nil
	case r == '_' || unicode.IsLetter(r):
		n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(rest)
		}
		l.add(kindName, rest[:n], n)
		return nil
	}
	for _, s := range signs {
		if strings.HasPrefix(rest, s) {
			l.add(kindSign, s, len(s))
			return nil
		}
	}
	return &Error{l.line, ErrSyntax, "the character " + string(r) + " is not expected"}
}

func (l *lexer) add(k kind, text string, n int) {
	l.out = append(l.out, token{k, text, l.line})
	l.skip(n)
}

// number reads digits with underscores, a fraction and an exponent.
func (l *lexer) number() {
	rest := l.text[l.at:]
	n, k := 0, kindInt
	for n < len(rest) {
		c := rest[n]
		digitAfter := startsWithDigit(rest[n+1:])
		exponent := (c == 'e' || c == 'E') && (digitAfter || n+2 < len(rest) && (rest[n+1] == '-' || rest[n+1] == '+') && startsWithDigit(rest[n+2:]))
		switch {
		case c >= '0' && c <= '9' || c == '_' && digitAfter:
		case c == '.' && digitAfter && k == kindInt:
			k = kindFloat
		case exponent:
			k = kindFloat
			n++ // a sign or the first digit
		default:
			l.add(k, strings.ReplaceAll(rest[:n], "_", ""), n)
			return
		}
		n++
	}
	l.add(k, strings.ReplaceAll(rest, "_", ""), n)
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// escapes are the escapes of one character.
var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"", 'b': "\b", 'f': "\f", 'v': "\v", 'a': "\a", '0': "\x00", '\n': ""}

func (l *lexer) stringLiteral(quote byte) error {
	var sb strings.Builder
	for i := l.at + 1; i < len(l.text); i++ {
		c := l.text[i]
		if c == quote {
			l.add(kindString, sb.String(), i+1-l.at)
			return nil
		}
		if c != '\\' || i+1 == len(l.text) {
			sb.WriteByte(c)
			continue
		}
		i++
		if digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[l.text[i]]; digits > 0 && i+digits < len(l.text) {
			if r, ok := parseHex(l.text[i+1 : i+1+digits]); ok {
				sb.WriteRune(r)
				i += digits
				continue
			}
		}
		if text, ok := escapes[l.text[i]]; ok {
			sb.WriteString(text)
		} else {
			sb.WriteString(l.text[i-1 : i+1])
		}
	}
	return &Error{l.line, ErrSyntax, "a string is not closed"}
}

func parseHex(digits string) (rune, bool) {
	var r rune
	for _, c := range []byte(digits) {
		i := strings.IndexByte("0123456789abcdef", c|0x20)
		if i < 0 || r > unicode.MaxRune>>4 {
			return 0, false
		}
		r = r<<4 | rune(i)
	}
	return r, utf8.ValidRune(r)
}
