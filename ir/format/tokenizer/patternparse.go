package tokenizer

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rlx-go/rlx/ir"
)

// patternParser reads a regular expression.
type patternParser struct {
	text  string
	at    int
	depth int
	fold  bool // letters of either case match
	dot   bool // a dot matches the end of a line, too
}

// compilePattern compiles a regular expression. The error is of kind [ir.ErrUnsupported] for
// unknown syntax and for programs beyond the bounds.
func compilePattern(text string) (*program, error) {
	p := &patternParser{text: text}
	code, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.at < len(text) {
		return nil, p.fail("there is a ) too many")
	}
	return &program{append(code, instruction{op: opMatch})}, nil
}

func (p *patternParser) fail(reason string) error {
	return ir.Errorf(ir.ErrUnsupported, "pattern %.200q at byte %d: %s", p.text, p.at, reason)
}

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
func (p *patternParser) alternatives() ([]instruction, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.fail("it is nested too deeply")
	}
	fold, dot := p.fold, p.dot
	defer func() { p.depth, p.fold, p.dot = p.depth-1, fold, dot }()
	code, err := p.sequence()
	if err != nil || !p.take("|") {
		return code, err
	}
	rest, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	out := []instruction{{op: opFork, x: 1, y: len(code) + 2}}
	out = append(out, moved(code, 1)...)
	out = append(out, instruction{op: opJump, x: len(code) + 2 + len(rest)})
	out = append(out, moved(rest, len(code)+2)...)
	return out, p.checkSize(out)
}

func (p *patternParser) checkSize(code []instruction) error {
	if len(code) > maxInstructions {
		return p.fail("it has too many instructions")
	}
	return nil
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
func (p *patternParser) sequence() ([]instruction, error) {
	var out []instruction
	for p.more() && p.text[p.at] != '|' && p.text[p.at] != ')' {
		term, err := p.term()
		if err != nil {
			return nil, err
		}
		for {
			low, high, ok := p.repetition()
			if !ok {
				break
			}
			if term, err = p.repeated(term, low, high); err != nil {
				return nil, err
			}
		}
		out = append(out, moved(term, len(out))...)
		if err := p.checkSize(out); err != nil {
			return nil, err
		}
	}
	return out, nil
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
func (p *patternParser) repeated(term []instruction, low, high int) ([]instruction, error) {
	lazy := p.take("?")
	possessive := !lazy && p.take("+")
	if len(term) == 1 && term[0].op == opSet && !lazy {
		return []instruction{{op: opRepeat, x: low, y: high, set: term[0].set, negate: possessive}}, nil
	}
	copies := high
	if high == unlimited {
		copies = low + 1
	}
	if int64(copies)*int64(len(term)+2) > maxInstructions {
		return nil, p.fail("it has too many instructions")
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
		out = []instruction{{op: opAtomic, sub: &program{append(out, instruction{op: opMatch})}}}
	}
	return out, nil
}

// term reads a character, a class, a condition or a group.
func (p *patternParser) term() ([]instruction, error) {
	switch {
	case p.take("("):
		return p.group()
	case p.take("["):
		s, err := p.class()
		if err != nil {
			return nil, err
		}
		return one(s), nil
	case p.take("."):
		s := &set{negate: true}
		if !p.dot {
			s.add('\n', '\n')
		}
		return one(s), nil
	case p.take("^"):
		return []instruction{{op: opLineStart}}, nil
	case p.take("$"):
		return []instruction{{op: opLineEnd}}, nil
	case p.take("\\"):
		return p.escape()
	}
	if c := p.text[p.at]; c == '*' || c == '+' || c == '?' {
		return nil, p.fail("there is nothing to repeat")
	}
	return p.character(p.next()), nil
}

// one is the code of a character of a set.
func one(s *set) []instruction { return []instruction{{op: opSet, set: s.prepare()}} }

func (p *patternParser) character(r rune) []instruction {
	s := &set{fold: p.fold}
	s.add(r, r)
	return one(s)
}

// conditions are the escapes that take no character.
var conditions = map[rune]opcode{
	'A': opTextStart, 'z': opTextEnd, 'Z': opLastLineEnd, 'b': opWordEdge, 'B': opNoWordEdge,
}

// escape reads an escape outside a class, after its backslash.
func (p *patternParser) escape() ([]instruction, error) {
	if !p.more() {
		return nil, p.fail("it ends with a backslash")
	}
	if op, ok := conditions[rune(p.text[p.at])]; ok {
		p.at++
		return []instruction{{op: op}}, nil
	}
	s := &set{fold: p.fold}
	if err := p.escapeInto(s); err != nil {
		return nil, err
	}
	return one(s), nil
}

// escapedClass are the escapes of classes; in upper case they are negated.
var escapedClass = map[rune]string{'s': "space", 'd': "digit", 'w': "word", 'h': "xdigit"}

// escapedRune are the escapes of characters.
var escapedRune = map[rune]rune{'n': '\n', 'r': '\r', 't': '\t', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1b}

// escapeInto reads an escape, after its backslash, and adds its characters to a set.
func (p *patternParser) escapeInto(s *set) error {
	r := p.next()
	lowered := r | 0x20
	if name, ok := escapedClass[lowered]; ok {
		s.property(name, r != lowered)
		return nil
	}
	if lowered == 'p' {
		return p.propertyInto(s, r == 'P')
	}
	if r == 'x' || r == 'u' {
		return p.hexInto(s, r)
	}
	if c, ok := escapedRune[r]; ok {
		r = c
	} else if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return p.fail("the escape \\" + string(r) + " is unknown")
	}
	s.add(r, r)
	return nil
}

// propertyInto adds \p{name}, \p{^name} or \pL.
func (p *patternParser) propertyInto(s *set, negate bool) error {
	name := ""
	if p.take("{") {
		inside, _, closed := strings.Cut(p.text[p.at:], "}")
		if !closed {
			return p.fail("a brace is not closed")
		}
		p.at += len(inside) + 1
		rest, not := strings.CutPrefix(inside, "^")
		name, negate = rest, negate != not
	} else if p.more() {
		name = string(p.next())
	}
	if !s.property(name, negate) && !s.property(strings.ToLower(name), negate) {
		return p.fail("the property " + name + " is unknown")
	}
	return nil
}

// hexInto adds \x41, \x{1F600} or A.
func (p *patternParser) hexInto(s *set, kind rune) error {
	digits := ""
	if p.take("{") {
		inside, _, closed := strings.Cut(p.text[p.at:], "}")
		if !closed {
			return p.fail("a brace is not closed")
		}
		digits, p.at = inside, p.at+len(inside)+1
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
		return p.fail("a hexadecimal number is expected")
	}
	s.add(rune(r), rune(r))
	return nil
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
func (p *patternParser) group() ([]instruction, error) {
	fold, dot := p.fold, p.dot
	defer func() { p.fold, p.dot = fold, dot }()
	for _, kind := range groupKinds {
		if p.take(kind.text) {
			code, err := p.closed()
			if err != nil {
				return nil, err
			}
			return []instruction{{op: kind.op, negate: kind.negate, sub: &program{append(code, instruction{op: opMatch})}}}, nil
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
				return nil, nil
			default:
				return nil, p.fail("this kind of group is unknown")
			}
		}
	}
	return p.closed()
}

// closed reads alternatives and the parenthesis that closes them.
func (p *patternParser) closed() ([]instruction, error) {
	code, err := p.alternatives()
	if err == nil && !p.take(")") {
		err = p.fail("a ) is missing")
	}
	return code, err
}

// class reads a class after its opening bracket.
func (p *patternParser) class() (*set, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.fail("it is nested too deeply")
	}
	defer func() { p.depth-- }()
	s := &set{fold: p.fold, negate: p.take("^")}
	for first := true; ; first = false {
		switch {
		case !p.more():
			return nil, p.fail("a ] is missing")
		case !first && p.take("]"):
			return s, nil
		case p.take("[:"):
			inside, _, closed := strings.Cut(p.text[p.at:], ":]")
			name, not := strings.CutPrefix(inside, "^")
			if !closed || !s.property(name, not) {
				return nil, p.fail("this class is unknown")
			}
			p.at += len(inside) + 2
		case p.take("["):
			inner, err := p.class()
			if err != nil {
				return nil, err
			}
			s.sets = append(s.sets, inner)
		case p.take("&&"):
			return p.intersection(s)
		default:
			if err := p.rangeInto(s); err != nil {
				return nil, err
			}
		}
	}
}

// intersection reads the rest of a class after &&.
func (p *patternParser) intersection(s *set) (*set, error) {
	negate := s.negate
	s.negate = false
	p.at-- // the rest is read as a nested class
	rest, err := p.rest()
	if err != nil {
		return nil, err
	}
	s.both = rest
	return &set{sets: []*set{s}, negate: negate}, nil
}

func (p *patternParser) rest() (*set, error) {
	p.at++
	s := &set{fold: p.fold}
	for !p.take("]") {
		switch {
		case !p.more():
			return nil, p.fail("a ] is missing")
		case p.take("&&"):
			return p.intersection(s)
		case p.take("["):
			inner, err := p.class()
			if err != nil {
				return nil, err
			}
			s.sets = append(s.sets, inner)
		default:
			if err := p.rangeInto(s); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// rangeInto adds a character, an escape or a range of a class.
func (p *patternParser) rangeInto(s *set) error {
	first, single, err := p.classRune(s)
	if err != nil || !single {
		return err
	}
	last := first
	if p.at+1 < len(p.text) && p.text[p.at] == '-' && p.text[p.at+1] != ']' {
		p.at++
		if last, single, err = p.classRune(s); err != nil {
			return err
		}
		if !single || last < first {
			return p.fail("this range is empty")
		}
	}
	s.add(first, last)
	return nil
}

// classRune reads a character of a class. An escape of many is added to the set; single is false then.
func (p *patternParser) classRune(s *set) (r rune, single bool, err error) {
	if !p.take("\\") {
		return p.next(), true, nil
	}
	if p.take("b") {
		return '\b', true, nil
	}
	inner := &set{}
	if err := p.escapeInto(inner); err != nil {
		return 0, false, err
	}
	if len(inner.ranges) == 2 && len(inner.sets) == 0 && inner.ranges[0] == inner.ranges[1] {
		return inner.ranges[0], true, nil
	}
	s.sets = append(s.sets, inner)
	return 0, false, nil
}
