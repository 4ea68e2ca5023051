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
	entered := f.enteredPlaces(returns)
	w := placeWalk{state: placeUnknown, atEnd: map[int]int64{}, beforeIf: map[int]int64{}}
	f.walk(func(at int, open []label) {
		w.open = open
		i := f.body[at]
		if s, ok := returns[at]; ok {
			last[at] = w.state
			if !s.conditional {
				w.state = s.place
			}
		} else if i.op == opBrTable && entered != nil && f.body[at-1].is(opLocalGet, 0) {
			for place, depth := range i.labels {
				if known, ok := entered[int64(place)]; ok {
					w.leave(int64(depth), known)
				}
			}
			w.state = placeNone
		} else {
			w.step(at, i)
		}
	})
	return last
}

// placeWalk follows the local variable through a body.
type placeWalk struct {
	state           int64
	open            []label
	atEnd, beforeIf map[int]int64 // of a label: the state of branches out of it, and that of an if without else
}

// leave notes a branch out of a label.
func (w *placeWalk) leave(depth, state int64) {
	if n := len(w.open) - 1 - int(depth); n >= 0 {
		w.atEnd[w.open[n].at] = merge(w.atEnd[w.open[n].at], state)
	}
}

func (w *placeWalk) step(at int, i instr) {
	begin := -1 // of the innermost label
	if n := len(w.open); n > 0 {
		begin = w.open[n-1].at
	}
	switch i.op {
	case opBlock, opLoop, opIf:
		w.atEnd[at], w.beforeIf[at] = placeNone, placeNone
		switch i.op {
		case opIf:
			w.beforeIf[at] = w.state
		case opLoop:
			w.state = placeUnknown
		}
	case opElse:
		w.atEnd[begin] = merge(w.atEnd[begin], w.state)
		w.state, w.beforeIf[begin] = w.beforeIf[begin], placeNone
	case opEnd:
		w.state = merge(merge(w.state, w.atEnd[begin]), w.beforeIf[begin])
	case opBr:
		w.leave(i.a, w.state)
		w.state = placeNone
	case opBrIf:
		w.leave(i.a, w.state)
	case opBrTable:
		for _, depth := range i.labels {
			w.leave(int64(depth), placeUnknown)
		}
		w.state = placeNone
	case opReturn, opUnreachable:
		w.state = placeNone
	}
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
		if !i.is(opLocalSet, 0) || f.callsByPC(at) {
			continue
		}
		if !f.isJump(at) {
			return nil
		}
		entered[f.body[at-1].a] = placeUnknown
	}
	entered[0] = placeUnknown
	return entered
}
