package tokenizer

import (
	"math"
	"unicode/utf8"

	"github.com/rlx-go/rlx/ir"
)

// Bounds of patterns, against expressions that take time or memory without end.
const (
	maxInstructions = 1 << 14
	maxNesting      = 64
	maxLookbehind   = 16 // characters
	// The steps that finding all matches of a text may take: freeSteps and some for each byte.
	freeSteps    = 1 << 24
	stepsPerByte = 256
)

// opcode is the operation of an instruction.
type opcode uint8

const (
	opSet    opcode = iota // a character of the set
	opRepeat               // x to y characters of the set, as many as possible
	opFork                 // continues at x, and at y if that fails
	opJump                 // continues at x
	opLook                 // continues if the program does, or does not (negate), match here
	opBehind               // the same before here
	opAtomic               // the first match of the program, which is not tried otherwise
	opLineStart
	opLineEnd
	opTextStart
	opTextEnd
	opLastLineEnd // the end, or before the end of a last line
	opWordEdge
	opNoWordEdge
	opMatch
)

type instruction struct {
	op     opcode
	negate bool
	x, y   int
	set    *set
	sub    *regex
}

// regex is a compiled regular expression. It backtracks, as the patterns of tokenizers need lookahead,
// which Go's regexp lacks. The syntax is that of Oniguruma, as far as those patterns use it.
type regex struct{ code []instruction }

// frame is a choice to return to: the instruction to continue at, the position, and for a repetition the
// first position that has enough characters, or -1.
type frame struct {
	pc       int
	pos, low int
}

// matcher runs programs on a text.
type matcher struct {
	text  string
	stack []frame
	steps int64 // left until the limit
}

// find returns the parts of a text that match and those between them. An empty match is a part, unless it is
// at the end of the one before.
func (p *regex) find(text string) ([]match, error) {
	m := matcher{text: text, steps: freeSteps + stepsPerByte*int64(len(text))}
	found := make([]int, 0, len(text)/3+2)
	for at, last := 0, -1; at <= len(text); {
		end := m.run(p, at)
		if m.steps < 0 {
			return nil, ir.Errorf(ir.ErrUnsupported, "the tokenizer's pattern takes more than %d steps on a text of %d bytes", freeSteps+stepsPerByte*int64(len(text)), len(text))
		}
		if end > at || end == at && at != last {
			found = append(found, at, end)
			last = end
		}
		if end > at {
			at = end
			continue
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += max(size, 1)
	}
	return cover(text, found), nil
}

// run returns the end of the match of a program that begins at a position, -1 for none.
func (m *matcher) run(p *regex, pos int) int {
	base := len(m.stack)
	defer func() { m.stack = m.stack[:base] }()
	pc := 0
	for {
		if m.steps--; m.steps < 0 {
			return -1
		}
		in := &p.code[pc]
		ok := true
		pc++
		switch in.op {
		case opMatch:
			return pos
		case opSet:
			size := in.set.at(m.text, pos)
			pos += size
			ok = size > 0
		case opRepeat:
			pos, ok = m.repeat(in, pc, pos)
		case opFork:
			m.stack = append(m.stack, frame{in.y, pos, -1})
			pc = in.x
		case opJump:
			pc = in.x
		case opAtomic:
			end := m.run(in.sub, pos)
			if ok = end >= 0; ok {
				pos = end
			}
		default:
			ok = m.holds(in, pos)
		}
		if ok {
			continue
		}
		if pc, pos, ok = m.back(base); !ok {
			return -1
		}
	}
}

// repeat takes characters of a set, and notes the choice to take fewer.
func (m *matcher) repeat(in *instruction, pc, pos int) (end int, ok bool) {
	low, n := -1, 0
	for {
		if n == in.x {
			low = pos
		}
		if n == in.y {
			break
		}
		size := in.set.at(m.text, pos)
		if size == 0 {
			break
		}
		pos += size
		n++
	}
	m.steps -= int64(n)
	if low < 0 {
		return pos, false
	}
	if low < pos && !in.negate { // negate: possessive
		m.stack = append(m.stack, frame{pc, pos, low})
	}
	return pos, true
}

// back backtracks to the last choice.
func (m *matcher) back(base int) (pc, pos int, ok bool) {
	if len(m.stack) == base {
		return 0, 0, false
	}
	top := &m.stack[len(m.stack)-1]
	if top.low < 0 {
		m.stack = m.stack[:len(m.stack)-1]
		return top.pc, top.pos, true
	}
	_, size := utf8.DecodeLastRuneInString(m.text[:top.pos])
	top.pos -= size
	pc, pos = top.pc, top.pos
	if top.pos <= top.low {
		m.stack = m.stack[:len(m.stack)-1]
	}
	return pc, pos, true
}

// holds reports whether a condition holds at a position.
func (m *matcher) holds(in *instruction, pos int) bool {
	text := m.text
	switch in.op {
	case opLook:
		return (m.run(in.sub, pos) >= 0) != in.negate
	case opBehind:
		return m.behind(in.sub, pos) != in.negate
	case opTextStart:
		return pos == 0
	case opTextEnd:
		return pos == len(text)
	case opLineStart:
		return pos == 0 || text[pos-1] == '\n'
	case opLineEnd:
		return pos == len(text) || text[pos] == '\n'
	case opLastLineEnd:
		return pos == len(text) || pos == len(text)-1 && text[pos] == '\n'
	}
	before, _ := utf8.DecodeLastRuneInString(text[:pos])
	after, _ := utf8.DecodeRuneInString(text[pos:])
	edge := (pos > 0 && isLoneWord(before)) != (pos < len(text) && isLoneWord(after))
	return edge == (in.op == opWordEdge)
}

// behind reports whether a program matches a few characters of text that end at a position.
func (m *matcher) behind(p *regex, pos int) bool {
	whole := m.text
	m.text = whole[:pos]
	defer func() { m.text = whole }()
	for n := 0; n <= maxLookbehind; n++ {
		if m.run(p, pos) == len(m.text) {
			return true
		}
		if pos == 0 {
			return false
		}
		_, size := utf8.DecodeLastRuneInString(m.text[:pos])
		pos -= size
	}
	return false
}

// unlimited is the number of a repetition without an upper bound.
const unlimited = math.MaxInt
