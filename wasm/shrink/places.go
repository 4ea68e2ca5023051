package main

// Places are the low parts of return addresses, which stand in PC_B when a
// function is entered to go on behind a call. Along straight code each call's
// place is a little above the one before, so that a function keeps the last
// return address in a local variable and adds to it: the sums are alike in all
// functions, the places are not.

// States of the local variable that are no place.
const (
	placeUnknown = -1 // it depends on the way by which control came
	placeNone    = -2 // control does not come here
)

// merge returns what is known where two ways meet.
func merge(a, b int64) int64 {
	switch {
	case a == placeNone || a == b:
		return b
	case b == placeNone:
		return a
	}
	return placeUnknown
}

// returnStore is an instruction that puts a return address on the stack.
type returnStore struct {
	place int64
	// conditional is set within an if. Such a call does not come back: it panics
	// or grows the stack, after which the function begins again.
	conditional bool
	resumes     bool // whether the function can be entered again behind the call
}

// findReturns returns the return addresses that a function stores, by where
// their constants are.
func (f *function) findReturns(base int64) map[int]returnStore {
	found := map[int]returnStore{}
	f.walk(func(at int, open []label) {
		i := f.body[at]
		if i.op != opI64Const || i.a>>pcBits<<pcBits != base || at+1 >= len(f.body) || f.body[at+1].op != opI64Store {
			return
		}
		s := returnStore{place: i.a - base}
		for _, l := range open {
			s.conditional = s.conditional || l.op == opIf
		}
		s.resumes = !s.conditional && !f.stopsBehindCall(at)
		found[at] = s
	})
	return found
}

// stopsBehindCall tells whether the call after an instruction is one whose
// unwinding is an error: "call; if unreachable".
func (f *function) stopsBehindCall(at int) bool {
	for ; at+2 < len(f.body); at++ {
		if op := f.body[at].op; op == opCall || op == opCallIndirect {
			return f.body[at+1].op == opIf && f.body[at+2].op == opUnreachable
		}
	}
	return false
}

// lastPlaces returns, for each instruction that stores a return address, the
// place in the local variable before it, or that it is not known.
func (f *function) lastPlaces(returns map[int]returnStore) map[int]int64 {
	last := map[int]int64{}
	atEnd := map[int]int64{}  // state where an open label can be left to, by its instruction
	before := map[int]int64{} // state before an if
	state := int64(placeUnknown)
	leave := func(open []label, depth int64, state int64) {
		if int(depth) < len(open) {
			at := open[len(open)-1-int(depth)].at
			atEnd[at] = merge(atEnd[at], state)
		}
	}
	entered := f.enteredPlaces(returns)
	f.walk(func(at int, open []label) {
		if s, ok := returns[at]; ok {
			last[at] = state
			if !s.conditional {
				state = s.place
			}
			return
		}
		switch i := f.body[at]; i.op {
		case opBlock, opIf:
			atEnd[at], before[at] = placeNone, placeNone
			if i.op == opIf {
				before[at] = state
			}
		case opLoop:
			atEnd[at], before[at], state = placeNone, placeNone, placeUnknown
		case opElse:
			if begin := open[len(open)-1].at; true {
				atEnd[begin] = merge(atEnd[begin], state)
				state, before[begin] = before[begin], placeNone
			}
		case opEnd:
			if len(open) > 0 {
				begin := open[len(open)-1].at
				state = merge(merge(state, atEnd[begin]), before[begin])
			}
		case opBr:
			leave(open, i.a, state)
			state = placeNone
		case opBrIf:
			leave(open, i.a, state)
		case opBrTable:
			for place, depth := range i.labels {
				if entered == nil || !f.body[at-1].is(opLocalGet, 0) {
					leave(open, int64(depth), placeUnknown)
				} else if known, ok := entered[int64(place)]; ok {
					leave(open, int64(depth), known)
				}
			}
			state = placeNone
		case opReturn, opUnreachable:
			state = placeNone
		}
	})
	return last
}

// enteredPlaces returns what is known of the local variable where the dispatch
// leads to, by PC_B: the place itself behind a call, nothing at the beginning
// and where jumps lead. Other places do not come. It is nil where there is no
// dispatch or more than jumps and calls use it.
func (f *function) enteredPlaces(returns map[int]returnStore) map[int64]int64 {
	entered := map[int64]int64{}
	for _, s := range returns {
		if s.resumes {
			entered[s.place] = s.place
		}
	}
	for at, i := range f.body {
		if !i.is(opLocalSet, 0) {
			continue
		}
		if at == 0 || f.body[at-1].op != opI32Const {
			return nil
		}
		entered[f.body[at-1].a] = placeUnknown
	}
	entered[0] = placeUnknown
	return entered
}
