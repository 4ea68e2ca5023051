package ir

import (
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
)

// space skips white space and comments and returns the new position.
func (p *parser) space() int {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			p.pos++
		case strings.HasPrefix(p.text[p.pos:], "//"):
			end := strings.IndexByte(p.text[p.pos:], '\n')
			if end < 0 {
				end = len(p.text) - p.pos
			}
			p.pos += end
		default:
			return p.pos
		}
	}
	return p.pos
}

func (p *parser) peek(c byte) bool {
	p.space()
	return p.pos < len(p.text) && p.text[p.pos] == c
}

func (p *parser) accept(s string) bool {
	p.space()
	if !strings.HasPrefix(p.text[p.pos:], s) {
		return false
	}
	p.pos += len(s)
	return true
}

func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.failf(p.pos, "%q expected", s)
	}
}

// run reads the bytes that belong to a token.
func (p *parser) run(belongs func(c byte) bool) string {
	start := p.space()
	for p.pos < len(p.text) && belongs(p.text[p.pos]) {
		p.pos++
	}
	return p.text[start:p.pos]
}

func isWordByte(c byte) bool {
	return c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isNumberByte(c byte) bool { return isWordByte(c) || c == '+' || c == '-' }

// word reads the name of an op, of an attribute or of an element type.
func (p *parser) word() string { return p.run(isWordByte) }

// number reads a number or a word such as inf.
func (p *parser) number() string { return p.run(isNumberByte) }

// valueName reads "%name".
func (p *parser) valueName() string {
	at := p.space()
	if !p.accept("%") || p.pos == len(p.text) || !isWordByte(p.text[p.pos]) {
		p.failf(at, "a value like %%0 expected")
		return ""
	}
	return p.word()
}

func (p *parser) quoted() string {
	at := p.space()
	if !p.peek('"') {
		p.failf(at, "a quoted string expected")
		return ""
	}
	q, err := strconv.QuotedPrefix(p.text[at:])
	if err != nil {
		p.failf(at, "a quoted string expected")
		return ""
	}
	p.pos += len(q)
	s, _ := strconv.Unquote(q)
	return s
}

// literal reads the elements of a constant, whose type follows later.
func (p *parser) literal() string {
	if !p.peek('[') {
		return p.number()
	}
	at := p.pos
	end := strings.IndexByte(p.text[at:], ']')
	if end < 0 {
		p.failf(at, `"]" expected`)
		return ""
	}
	p.pos += end + 1
	return p.text[at:p.pos]
}

func (p *parser) dtype() DType {
	at := p.space()
	w := p.word()
	d, err := dtype.Parse(w)
	if err != nil {
		p.failf(at, "%q is no element type", shorten(w))
	}
	return d
}

// dims reads sizes in brackets.
func (p *parser) dims() []Dim {
	var out []Dim
	p.list(func(at int, item string) {
		d, err := ParseDim(item)
		if err != nil {
			p.failf(at, "%q is not a size", shorten(item))
		}
		out = append(out, d)
	})
	return out
}

// list reads comma-separated items in brackets; items contain no commas or brackets.
func (p *parser) list(item func(at int, s string)) {
	p.expect("[")
	if p.accept("]") {
		return
	}
	for p.err == nil {
		at := p.space()
		s := p.run(func(c byte) bool { return c != ',' && c != ']' && c != '\n' })
		item(at, strings.TrimRight(s, " \t\r"))
		if p.accept("]") {
			return
		}
		p.expect(",")
	}
}

// attrParser parses the fields that it visits.
type attrParser struct {
	p      *parser
	fields int
}

// field reads "name=" and returns the position after it.
func (a *attrParser) field(name string) int {
	if a.fields == 0 {
		a.p.expect("{")
	}
	a.fields++
	at := a.p.space()
	if a.p.word() != name {
		a.p.failf(at, "attribute %s expected", name)
	}
	a.p.expect("=")
	return a.p.space()
}

// hasField reports whether a field of the given name is next.
func (a *attrParser) hasField(name string) bool {
	start := a.p.pos
	found := (a.fields > 0 || a.p.accept("{")) && a.p.word() == name
	a.p.pos = start
	return found
}

func (a *attrParser) Int(name string, p *int) {
	at := a.field(name)
	*p = a.p.parseInt(at, a.p.number())
}

func (p *parser) parseInt(at int, s string) int {
	x, err := strconv.Atoi(s)
	if err != nil {
		p.failf(at, "%q is no integer", shorten(s))
	}
	return x
}

func (a *attrParser) Ints(name string, p *[]int) {
	a.field(name)
	*p = nil
	a.p.list(func(at int, item string) { *p = append(*p, a.p.parseInt(at, item)) })
}

func (a *attrParser) Float(name string, p *float64) {
	at := a.field(name)
	s := a.p.number()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		a.p.failf(at, "%q is no number", shorten(s))
	}
	*p = x
}

// Bool accepts a missing field and keeps its value, so that older texts remain readable when an op
// gets a new option.
func (a *attrParser) Bool(name string, p *bool) {
	if !a.hasField(name) {
		return
	}
	at := a.field(name)
	s := a.p.word()
	if s != "true" && s != "false" {
		a.p.failf(at, "true or false expected")
	}
	*p = s == "true"
}

func (a *attrParser) Text(name string, p *string) {
	a.field(name)
	*p = a.p.quoted()
}

func (a *attrParser) DType(name string, p *DType) {
	a.field(name)
	*p = a.p.dtype()
}

func (a *attrParser) Dims(name string, p *[]Dim) {
	a.field(name)
	*p = a.p.dims()
}
