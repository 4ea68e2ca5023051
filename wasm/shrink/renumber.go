package main

import (
	"maps"
	"slices"
)

// Go's compiler numbers the places in a function by the instructions that value tables distinguish:
// the places after calls may be 4, 9, 11 in one function and 3, 8, 13 in the next. renumber numbers
// only the places at which the function is entered, in the order of its dispatch, after a few for
// the calls that never resume it. The dispatch is then a list of consecutive numbers, the step from
// one call to the next is 1, and more functions have equal value tables.

// numbering maps the places of a function to new numbers.
type numbering struct {
	record  *record
	numbers map[int64]int64  // indexed by old number
	labels  map[int64]uint32 // labels of the dispatch, indexed by new number
	last    int64            // the largest new number
	sp      map[int64]int32  // depth of the frame, indexed by new number
	maps    map[int64]int32  // index of the map of live pointers, by new number
}

// renumber changes the places of a function, whose addresses begin at base, in its code and in its
// value tables. A function that is entered or left in another way than Go's compiler writes is kept
// unchanged. trap is the number of the function that panics for nil pointers: no pointer map is
// requested for its callers.
func (f *function) renumber(r *record, base, trap int64) {
	table, returns := f.findEntries(base)
	if returns == nil || !r.regular() {
		return
	}
	n := &numbering{record: r, numbers: map[int64]int64{0: 0}, labels: map[int64]uint32{0: 0}, sp: map[int64]int32{}, maps: map[int64]int32{}}
	n.sp[0] = r.sp.at(0)
	n.numberCalls(f, returns, trap)
	if !n.numberEntries(f, table, returns) {
		return
	}
	for at, s := range returns {
		f.body[at].a = base + n.numbers[s.place]
	}
	for at := range f.body {
		if f.isJump(at) {
			f.body[at-1].a = n.numbers[f.body[at-1].a]
		}
	}
	if table > 0 {
		f.body[table].labels = n.dispatchLabels()
	}
	r.fixed[wordDefer] = uint32(n.numbers[int64(r.fixed[wordDefer])])
	r.sp, r.maps = fillValues(n.sp, n.last, r.sp.max()), fillValues(n.maps, n.last, noValue)
}

// findEntries returns the index of the function's dispatch, 0 if it has none, and its returns, nil
// if code other than a dispatch, jumps and calls uses places or PC_B.
func (f *function) findEntries(base int64) (table int, returns map[int]returnStore) {
	returns = f.findReturns(base)
	for at, i := range f.body {
		switch {
		case i.is(opLocalGet, 0) && f.body[at+1].op == opBrTable && table == 0:
			table = at + 1
		case i.is(opLocalGet, 0) && !f.callsByPC(at-2), i.is(opLocalTee, 0):
			return 0, nil
		case i.is(opLocalSet, 0) && !f.isJump(at) && !f.callsByPC(at):
			return 0, nil
		case i.op == opI64Const && i.a > base && i.a < base+1<<pcBits:
			if _, ok := returns[at]; !ok {
				return 0, nil
			}
		}
	}
	return table, returns
}

// isJump reports whether PC_B is set to a place for a jump through the dispatch.
func (f *function) isJump(at int) bool {
	return f.body[at].is(opLocalSet, 0) && f.body[at-1].op == opI32Const
}

// callsByPC reports whether PC_B holds the number of the function called next.
func (f *function) callsByPC(at int) bool {
	return at >= 0 && at+3 < len(f.body) && f.body[at].is(opLocalSet, 0) && f.body[at+1].is(opI32Const, 0) &&
		f.body[at+2].is(opLocalGet, 0) && f.body[at+3].op == opCallIndirect
}

// numberCalls assigns one number to each kind of call that never resumes the function. The runtime
// reads only the depth of the frame and the live pointers at such a place.
func (n *numbering) numberCalls(f *function, returns map[int]returnStore, trap int64) {
	type kind struct{ sp, maps int32 }
	kinds := map[kind]int64{}
	var trapping []int64 // old places
	for _, at := range slices.Sorted(maps.Keys(returns)) {
		s := returns[at]
		switch _, known := n.numbers[s.place]; {
		case s.resumes || known:
		case f.calleeAfter(at) == trap:
			trapping = append(trapping, s.place)
		default:
			k := kind{n.record.sp.at(s.place), n.record.maps.at(s.place - 1)}
			if kinds[k] == 0 {
				n.last++
				kinds[k] = n.last
				n.sp[n.last], n.maps[n.last-1] = k.sp, k.maps
			}
			n.numbers[s.place] = kinds[k]
		}
	}
	for _, place := range trapping { // its pointer map is never requested
		sp := n.record.sp.at(place)
		number := n.numberWith(sp)
		if number == 0 {
			n.last++
			number = n.last
			n.sp[number] = sp
		}
		n.numbers[place] = number
	}
}

// numberWith returns the first nonzero number with the given frame depth, or 0.
func (n *numbering) numberWith(sp int32) int64 {
	for number := int64(1); number <= n.last; number++ {
		if n.sp[number] == sp {
			return number
		}
	}
	return 0
}

// calleeAfter returns the number of the function that is called next, -1 if unknown.
func (f *function) calleeAfter(at int) int64 {
	for ; at < len(f.body); at++ {
		switch f.body[at].op {
		case opCall:
			return f.body[at].a
		case opCallIndirect:
			return -1
		}
	}
	return -1
}

// numberEntries numbers the places at which the function is entered by the labels of its dispatch.
// It returns false if one label serves several calls, or if the value tables could no longer
// distinguish places that need different values.
func (n *numbering) numberEntries(f *function, table int, returns map[int]returnStore) bool {
	entered := map[int64]bool{} // keyed by old place: whether it follows a call
	for at := range f.body {
		if s, ok := returns[at]; ok && s.resumes {
			entered[s.place] = true
		} else if f.isJump(at) && !entered[f.body[at-1].a] {
			entered[f.body[at-1].a] = false
		}
	}
	deferred := int64(n.record.fixed[wordDefer])
	if deferred != 0 && !entered[deferred] {
		entered[deferred] = false
	}
	delete(entered, 0)
	if len(entered) > 0 && table == 0 {
		return false
	}
	last := uint32(0) // label
	called := false   // whether it follows a call
	for _, place := range slices.Sorted(maps.Keys(entered)) {
		labels := f.body[table].labels
		label := labels[min(place, int64(len(labels)-1))]
		switch {
		case label == last:
			if entered[place] && (called || label == 0) {
				return false
			}
			called = called || entered[place]
		case label < last:
			return false
		default:
			n.last++
			last, called = label, entered[place]
		}
		number := n.last
		if label == 0 {
			number = 0
		}
		n.numbers[place], n.labels[number] = number, label
		if entered[place] && !(n.set(n.sp, number, n.record.sp.at(place)) && n.set(n.maps, number-1, n.record.maps.at(place-1))) {
			return false
		}
	}
	return deferred == 0 || n.set(n.maps, n.numbers[deferred], n.record.maps.at(deferred))
}

// set sets the value of a number in a table, and returns false if it has another value.
func (n *numbering) set(table map[int64]int32, number int64, value int32) bool {
	old, ok := table[number]
	table[number] = value
	return !ok || old == value
}

// dispatchLabels returns the labels of the dispatch. It does not enter the numbers of calls.
func (n *numbering) dispatchLabels() []uint32 {
	labels := make([]uint32, slices.Max(slices.Collect(maps.Keys(n.labels)))+1)
	for number, label := range n.labels {
		labels[number] = label
	}
	return labels
}
