package tokenizer

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rlx-go/rlx/ir"
)

// patternParser reads a regular expression. The first error stays in err and moves the parser to the
// end, where every rule ends; what rules return after an error is not used.
type patternParser struct {
	text  string
	at    int
	depth int
	fold  bool // letters of either case match
	dot   bool // a dot matches the end of a line, too
	err   error
}

// compilePattern compiles a regular expression. The error is of kind [ir.ErrUnsupported] for
// unknown syntax and for programs beyond the bounds.
func compilePattern(text string) (*regex, error) {
	p := &patternParser{text: text}
	code := p.alternatives()
	if p.more() {
		p.fail("there is a ) too many")
	}
	if p.err != nil {
		return nil, p.err
	}
	return &regex{append(code, instruction{op: opMatch})}, nil
}

func (p *patternParser) fail(reason string) {
	if p.err == nil {
		p.err = ir.Errorf(ir.ErrUnsupported, "pattern %.200q at byte %d: %s", p.text, p.at, reason)
	}
	p.at = len(p.text)
}

// enter counts the nesting; leave must follow.
func (p *patternParser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.fail("it is nested too deeply")
	}
}

func (p *patternParser) leave() { p.depth-- }

func (p *patternParser) more() bool { return p.at < len(p.text) }

// take skips a text if it is next.
func (p *patternParser) take(text string) bool {
	if !strings.HasPrefix(p.text[p.at:], text) {
		return false
	}
	p.at += len(text)
	return true
}

// next returns the next character; 0 at the end.
func (p *patternParser) next() rune {
	r, size := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += size
	if size == 0 {
		return 0
	}
	return r
}

// alternatives reads a|b|c up to a parenthesis or the end. Options set inside end with them.
func (p *patternParser) alternatives() []instruction {
	p.enter()
	defer p.leave()
	fold, dot := p.fold, p.dot
	defer func() { p.fold, p.dot = fold, dot }()
	code := p.sequence()
	if !p.take("|") {
		return code
	}
	rest := p.alternatives()
	out := []instruction{{op: opFork, x: 1, y: len(code) + 2}}
	out = append(out, moved(code, 1)...)
	out = append(out, instruction{op: opJump, x: len(code) + 2 + len(rest)})
	out = append(out, moved(rest, len(code)+2)...)
	return p.bounded(out)
}

// bounded returns code, nothing if there is too much of it.
func (p *patternParser) bounded(code []instruction) []instruction {
	if len(code) > maxInstructions {
		p.fail("it has too many instructions")
		return nil
	}
	return code
}

// moved returns a copy of code with its jump targets increased by n.
func moved(code []instruction, n int) []instruction {
	code = slices.Clone(code)
	for i := range code {
		switch code[i].op {
		case opFork:
			code[i].x, code[i].y = code[i].x+n, code[i].y+n
		case opJump:
			code[i].x += n
		}
	}
	return code
}

// sequence reads terms with their repetitions.
func (p *patternParser) sequence() []instruction {
	var out []instruction
	for p.more() && p.text[p.at] != '|' && p.text[p.at] != ')' {
		term := p.term()
		for low, high, ok := p.repetition(); ok; low, high, ok = p.repetition() {
			term = p.repeated(term, low, high)
		}
		out = p.bounded(append(out, moved(term, len(out))...))
	}
	return out
}

// repetition reads *, +, ? or {m,n}.
func (p *patternParser) repetition() (low, high int, ok bool) {
	switch {
	case p.take("*"):
		return 0, unlimited, true
	case p.take("+"):
		return 1, unlimited, true
	case p.take("?"):
		return 0, 1, true
	}
	if !p.more() || p.text[p.at] != '{' {
		return 0, 0, false
	}
	inside, _, closed := strings.Cut(p.text[p.at+1:], "}")
	from, to, ranged := strings.Cut(inside, ",")
	low, err := strconv.Atoi(from)
	if from == "" && ranged && to != "" {
		low, err = 0, nil
	}
	high = low
	if ranged {
		high = unlimited
	}
	if to != "" && err == nil {
		high, err = strconv.Atoi(to)
	}
	if !closed || err != nil || low < 0 || high < low {
		return 0, 0, false
	}
	p.at += len(inside) + 2
	return low, high, true
}

// repeated returns the code of a repetition, greedy unless ? follows, not given back if + follows.
func (p *patternParser) repeated(term []instruction, low, high int) []instruction {
	lazy := p.take("?")
	possessive := !lazy && p.take("+")
	if len(term) == 1 && term[0].op == opSet && !lazy {
		return []instruction{{op: opRepeat, x: low, y: high, set: term[0].set, negate: possessive}}
	}
	copies := high
	if high == unlimited {
		copies = low + 1
	}
	if int64(copies)*int64(len(term)+2) > maxInstructions {
		p.fail("it has too many instructions")
		return nil
	}
	var out []instruction
	for range low {
		out = append(out, moved(term, len(out))...)
	}
	fork := func(stay, leave int) instruction {
		if lazy {
			stay, leave = leave, stay
		}
		return instruction{op: opFork, x: stay, y: leave}
	}
	if high == unlimited {
		at := len(out)
		out = append(out, fork(at+1, at+len(term)+2))
		out = append(out, moved(term, at+1)...)
		out = append(out, instruction{op: opJump, x: at})
	} else {
		end := len(out) + (high-low)*(len(term)+1)
		for range high - low {
			out = append(out, fork(len(out)+1, end))
			out = append(out, moved(term, len(out))...)
		}
	}
	if possessive {
		out = []instruction{{op: opAtomic, sub: &regex{append(out, instruction{op: opMatch})}}}
	}
	return out
}

// term reads a character, a class, a condition or a group.
func (p *patternParser) term() []instruction {
	switch {
	case p.take("("):
		return p.group()
	case p.take("["):
		return one(p.class())
	case p.take("."):
		s := &set{negate: true}
		if !p.dot {
			s.add('\n', '\n')
		}
		return one(s)
	case p.take("^"):
		return []instruction{{op: opLineStart}}
	case p.take("$"):
		return []instruction{{op: opLineEnd}}
	case p.take("\\"):
		return p.escape()
	}
	if strings.IndexByte("*+?", p.text[p.at]) >= 0 {
		p.fail("there is nothing to repeat")
	}
	r := p.next()
	s := &set{fold: p.fold}
	s.add(r, r)
	return one(s)
}

// one is the code of a character of a set.
func one(s *set) []instruction { return []instruction{{op: opSet, set: s.prepare()}} }

// conditions are the escapes that take no character.
var conditions = map[rune]opcode{
	'A': opTextStart, 'z': opTextEnd, 'Z': opLastLineEnd, 'b': opWordEdge, 'B': opNoWordEdge,
}

// escape reads an escape outside a class, after its backslash.
func (p *patternParser) escape() []instruction {
	if !p.more() {
		p.fail("it ends with a backslash")
		return nil
	}
	if op, ok := conditions[rune(p.text[p.at])]; ok {
		p.at++
		return []instruction{{op: op}}
	}
	lowered := rune(p.text[p.at]) | 0x20
	if _, ok := escapedClass[lowered]; ok || lowered == 'p' {
		return one(p.loneClass())
	}
	s := &set{fold: p.fold}
	p.escapeInto(s)
	return one(s)
}

// loneClass reads an escape of a class outside of brackets, after its backslash. Case matters there, even where letters of
// either case match.
func (p *patternParser) loneClass() *set {
	s := &set{}
	p.escapeInto(s)
	for _, inner := range s.sets {
		if inner.word {
			inner.tests = []func(rune) bool{isLoneWord}
		}
	}
	return s
}

// escapedClass are the escapes of classes; in upper case they are negated.
var escapedClass = map[rune]string{'s': "space", 'd': "digit", 'w': "word", 'h': "xdigit"}

// escapedRune are the escapes of characters.
var escapedRune = map[rune]rune{'n': '\n', 'r': '\r', 't': '\t', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1b}

// escapeInto reads an escape, after its backslash, and adds its characters to a set.
func (p *patternParser) escapeInto(s *set) {
	r := p.next()
	lowered := r | 0x20
	if name, ok := escapedClass[lowered]; ok {
		s.property(name, r != lowered)
		return
	}
	switch {
	case lowered == 'p':
		p.propertyInto(s, r == 'P')
		return
	case r == 'x' || r == 'u':
		r = p.hexadecimal(r)
	case escapedRune[r] != 0:
		r = escapedRune[r]
	case r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
		p.fail("the escape \\" + string(r) + " is unknown")
	}
	s.add(r, r)
}

// braces reads the text in braces, after the first.
func (p *patternParser) braces() string {
	inside, _, closed := strings.Cut(p.text[p.at:], "}")
	if !closed {
		p.fail("a brace is not closed")
		return ""
	}
	p.at += len(inside) + 1
	return inside
}

// propertyInto adds \p{name}, \p{^name} or \pL.
func (p *patternParser) propertyInto(s *set, negate bool) {
	name := ""
	if p.take("{") {
		rest, not := strings.CutPrefix(p.braces(), "^")
		name, negate = rest, negate != not
	} else if p.more() {
		name = string(p.next())
	}
	if strings.EqualFold(name, "punct") {
		name = "P" // unlike [:punct:], without symbols
	}
	if !s.property(name, negate) && !s.property(strings.ToLower(name), negate) {
		p.fail("the property " + name + " is unknown")
	}
}

// hexadecimal reads the number of \x41, \x{1F600} or \u0041.
func (p *patternParser) hexadecimal(kind rune) rune {
	digits := ""
	if p.take("{") {
		digits = p.braces()
	} else {
		n := 2
		if kind == 'u' {
			n = 4
		}
		n = min(n, len(p.text)-p.at)
		digits, p.at = p.text[p.at:p.at+n], p.at+n
	}
	r, err := strconv.ParseUint(digits, 16, 21)
	if err != nil {
		p.fail("a hexadecimal number is expected")
	}
	return rune(r)
}

// groupKinds are the prefixes of groups, after the opening parenthesis.
var groupKinds = []struct {
	text   string
	op     opcode
	negate bool
}{
	{"?=", opLook, false}, {"?!", opLook, true}, {"?<=", opBehind, false}, {"?<!", opBehind, true}, {"?>", opAtomic, false},
}

// group reads a group after its opening parenthesis.
func (p *patternParser) group() []instruction {
	fold, dot := p.fold, p.dot
	defer func() { p.fold, p.dot = fold, dot }()
	for _, kind := range groupKinds {
		if p.take(kind.text) {
			return []instruction{{op: kind.op, negate: kind.negate, sub: &regex{append(p.closed(), instruction{op: opMatch})}}}
		}
	}
	if p.take("?") && !p.take(":") {
		on := true
		for {
			switch c := p.next(); c {
			case 'i':
				p.fold = on
			case 'm', 's':
				p.dot = on
			case '-':
				on = false
			case ':':
				return p.closed()
			case ')': // for the rest of the group around
				fold, dot = p.fold, p.dot
				return nil
			default:
				p.fail("this kind of group is unknown")
				return nil
			}
		}
	}
	return p.closed()
}

// closed reads alternatives and the parenthesis that closes them.
func (p *patternParser) closed() []instruction {
	code := p.alternatives()
	if !p.take(")") {
		p.fail("a ) is missing")
	}
	return code
}

// class reads a class after its opening bracket. A ] that comes first is one of its characters.
func (p *patternParser) class() *set {
	p.enter()
	defer p.leave()
	s := &set{fold: p.fold, negate: p.take("^")}
	if p.more() && !p.item(s) {
		return p.intersection(s)
	}
	return p.rest(s)
}

// rest reads the items of a class up to its end.
func (p *patternParser) rest(s *set) *set {
	for !p.take("]") {
		if !p.more() {
			p.fail("a ] is missing")
			return s
		}
		if !p.item(s) {
			return p.intersection(s)
		}
	}
	return s
}

// intersection reads the rest of a class after &&.
func (p *patternParser) intersection(s *set) *set {
	negate := s.negate
	s.negate = false
	s.both = p.rest(&set{fold: p.fold})
	return &set{sets: []*set{s}, fold: s.fold, negate: negate}
}

// item adds a character, a range or a nested class. It returns false after &&.
func (p *patternParser) item(s *set) bool {
	switch {
	case p.take("[:"):
		inside, _, closed := strings.Cut(p.text[p.at:], ":]")
		name, not := strings.CutPrefix(inside, "^")
		if !closed || !s.property(name, not) {
			p.fail("this class is unknown")
			break
		}
		p.at += len(inside) + 2
	case p.take("["):
		s.sets = append(s.sets, p.class())
	case p.take("&&"):
		return false
	default:
		p.rangeInto(s)
	}
	return true
}

// rangeInto adds a character, an escape or a range of a class.
func (p *patternParser) rangeInto(s *set) {
	first, single := p.classRune(s)
	if !single {
		return
	}
	last := first
	if p.at+1 < len(p.text) && p.text[p.at] == '-' && p.text[p.at+1] != ']' {
		p.at++
		if last, single = p.classRune(s); !single || last < first {
			p.fail("this range is empty")
		}
	}
	s.add(first, last)
}

// classRune reads a character of a class. An escape of many is added to the set; single is false then.
func (p *patternParser) classRune(s *set) (r rune, single bool) {
	if !p.take("\\") {
		return p.next(), true
	}
	if p.take("b") {
		return '\b', true
	}
	inner := &set{}
	p.escapeInto(inner)
	if len(inner.ranges) == 2 && len(inner.sets) == 0 && inner.ranges[0] == inner.ranges[1] {
		return inner.ranges[0], true
	}
	s.sets = append(s.sets, inner)
	return 0, false
}
