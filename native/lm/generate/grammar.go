package generate

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
)

// symbol is a part of a grammar: a byte of a set, or other symbols in sequence, one of them, or any number of the first.
type symbol struct {
	kind  symbolKind
	bytes [4]uint64
	parts []*symbol
	free  bool // a byte of free text, where a token without a text may stand
}

type symbolKind uint8

const (
	oneByte symbolKind = iota
	sequence
	choice
	repeated // parts[0], which is not empty, any number of times
)

func (s *symbol) has(b byte) bool { return s.bytes[b/64]>>(b%64)&1 != 0 }

// stack holds the symbols that must follow, the next one first; nil is the end. Equal stacks of a machine are one.
type stack struct {
	id    uint32
	top   *symbol
	rest  *stack
	round int // the last one in which the machine expanded it
}

// state is a set of stacks, one for each way to read the bytes so far.
type state struct {
	stacks []*stack
	ends   bool // one way is complete
	free   bool // one way is free text
	next   [256]*state
	known  [4]uint64
	mask   []uint32 // of the tokens that may follow, nil before it is needed
}

// machine reads bytes by a grammar. States and their successors are computed when they are needed.
type machine struct {
	stacks map[stackKey]*stack
	states map[string]*state
	round  int // counts the calls of next
}

type stackKey struct {
	top  *symbol
	rest *stack
}

// maxStates bounds the states that a machine keeps.
const maxStates = 512

// start returns the state before the first byte.
func (m *machine) start(root *symbol) *state {
	m.stacks, m.states = map[stackKey]*stack{}, map[string]*state{}
	return m.next([]*stack{m.push(root, nil)})
}

func (m *machine) push(top *symbol, rest *stack) *stack {
	key := stackKey{top, rest}
	s, ok := m.stacks[key]
	if !ok {
		s = &stack{id: uint32(len(m.stacks) + 1), top: top, rest: rest}
		m.stacks[key] = s
	}
	return s
}

// next returns the state that one of some stacks must match; nil if none can match.
func (m *machine) next(stacks []*stack) *state {
	m.round++
	var list []*stack
	ends := false
	for _, s := range stacks {
		list = m.expand(s, list)
	}
	if i := slices.Index(list, nil); i >= 0 {
		ends, list = true, slices.DeleteFunc(list, func(s *stack) bool { return s == nil })
	}
	return m.stateOf(list, ends)
}

// expand adds to a list the stacks that s may become whose first symbol is a byte, and nil if it may be empty. A
// stack is expanded once in a round, so that a choice may contain itself.
func (m *machine) expand(s *stack, list []*stack) []*stack {
	if s == nil {
		return append(list, nil)
	}
	if s.round == m.round {
		return list
	}
	s.round = m.round
	if s.top.kind == oneByte {
		return append(list, s)
	}
	switch s.top.kind {
	case sequence:
		rest := s.rest
		for _, part := range slices.Backward(s.top.parts) {
			rest = m.push(part, rest)
		}
		return m.expand(rest, list)
	case choice:
		for _, part := range s.top.parts {
			list = m.expand(m.push(part, s.rest), list)
		}
		return list
	}
	return m.expand(s.rest, m.expand(m.push(s.top.parts[0], s), list))
}

// stateOf returns the state of a set of stacks.
func (m *machine) stateOf(stacks []*stack, ends bool) *state {
	if len(stacks) == 0 && !ends {
		return nil
	}
	slices.SortFunc(stacks, func(a, b *stack) int { return cmp.Compare(a.id, b.id) })
	key := []byte{0}
	if ends {
		key[0] = 1
	}
	for _, s := range stacks {
		key = binary.LittleEndian.AppendUint32(key, s.id)
	}
	s, ok := m.states[string(key)]
	if !ok {
		s = &state{stacks: stacks, ends: ends, free: slices.ContainsFunc(stacks, func(s *stack) bool { return s.top.free })}
		m.states[string(key)] = s
	}
	return s
}

// step returns the state after a byte; nil if it cannot follow.
func (m *machine) step(s *state, b byte) *state {
	if s.known[b/64]>>(b%64)&1 == 0 {
		var list []*stack
		for _, x := range s.stacks {
			if x.top.has(b) {
				list = append(list, x.rest)
			}
		}
		s.next[b] = m.next(list)
		s.known[b/64] |= 1 << (b % 64)
	}
	return s.next[b]
}

// Grammar restricts results to the texts of a grammar: [Vocabulary.JSON] returns one. It may be used by several
// requests and goroutines.
type Grammar struct {
	root  *symbol
	words *Vocabulary

	mu      sync.Mutex
	machine machine
	first   *state
}

// Allow returns the function of one [Request], for Request.Allow. The tokens that end a text are allowed where
// it may end, and where no other token can follow.
func (g *Grammar) Allow() func(result []int32, allowed []uint32) {
	var at *state
	var first *state // of the machine that at belongs to
	read := 0
	return func(result []int32, allowed []uint32) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.first == nil || len(g.machine.states) > maxStates {
			g.first = g.machine.start(g.root)
		}
		if first != g.first || read > len(result) {
			first, at, read = g.first, g.first, 0
		}
		for ; read < len(result); read++ {
			at = g.after(at, result[read])
		}
		if at != nil && at.mask == nil {
			at.mask = g.words.mask(&g.machine, at)
		}
		if at != nil {
			copy(allowed, at.mask)
		}
		if at == nil || at.ends || !slices.ContainsFunc(allowed, func(w uint32) bool { return w != 0 }) {
			g.words.allowEnds(allowed)
		}
	}
}

// after returns the state after a token; nil if it cannot follow.
func (g *Grammar) after(s *state, token int32) *state {
	text := g.words.textOf(token)
	for i := 0; i < len(text) && s != nil; i++ {
		s = g.machine.step(s, text[i])
	}
	return s
}
