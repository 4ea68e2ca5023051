package main

// Places are the low parts of return addresses. PC_B holds one when a function is resumed after a
// call. In straight-line code the place of a call is slightly above the previous one, so a function
// keeps the last return address in a local variable and adds to it. The sums have equal bytes in
// all functions; the places do not.

// States of the local variable other than a place.
const (
	placeUnknown = -1 // differs between paths of control
	placeNone    = -2 // unreachable
)

// merge returns the state where two paths join.
func merge(a, b int64) int64 {
	switch {
	case a == placeNone || a == b:
		return b
	case b == placeNone:
		return a
	}
	return placeUnknown
}

// returnStore is a return address that is stored on the stack or passed to the callee.
type returnStore struct {
	place int64
	// conditional is set within an if. Such a call does not return here: it panics or grows the
	// stack and then restarts the function.
	conditional bool
	resumes     bool // whether the function can be resumed after the call
}

// findReturns returns the return addresses that a function stores or passes, keyed by the index of
// their constants.
func (f *function) findReturns(base int64) map[int]returnStore {
	found := map[int]returnStore{}
	f.walk(func(at int, open []label) {
		i := f.body[at]
		if i.a>>pcBits<<pcBits != base || at+1 >= len(f.body) {
			return
		}
		if next := f.body[at+1].op; (i.op != opI64Const || next != opI64Store) && (i.op != opI32Const || next != opCall) {
			return
		}
		s := returnStore{place: i.a - base}
		for _, l := range open {
			s.conditional = s.conditional || l.op == opIf
		}
		s.resumes = !s.conditional && !f.stopsAfterCall(at)
		found[at] = s
	})
	return found
}

// stopsAfterCall reports whether unwinding from the call after an instruction is an error: "call;
// if unreachable".
func (f *function) stopsAfterCall(at int) bool {
	for ; at+2 < len(f.body); at++ {
		if op := f.body[at].op; op == opCall || op == opCallIndirect {
			return f.body[at+1].op == opIf && f.body[at+2].op == opUnreachable
		}
	}
	return false
}

// lastPlaces returns, for each instruction that stores a return address, the place in the local
// variable before it, or that it is unknown.
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

// placeWalk tracks the local variable through a body.
type placeWalk struct {
	state           int64
	open            []label
	atEnd, beforeIf map[int]int64 // per label: the state at branches to it, and that of an if without else
}

// leave records a branch to a label.
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

// enteredPlaces returns the state of the local variable at each target of the dispatch, indexed by
// PC_B: the place itself after a call; unknown at the start and at targets of jumps. Other values
// of PC_B do not occur. It returns nil if there is no dispatch, or if other code than jumps and
// calls uses it.
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
