package main

import (
	"maps"
	"slices"
)

// Go's compiler counts places in a function by instructions that some table of values
// wants to tell apart, so that the places behind calls are 4, 9, 11 in one function and
// 3, 8, 13 in the next. renumber counts those alone that the function is entered at, in
// the order of its dispatch, behind few for the calls that it is not entered behind: then
// the dispatch is a list of consecutive numbers, steps from one call to the next are 1, and
// functions have equal tables of values.

// numbering is the new numbers of a function's places.
type numbering struct {
	record  *record
	numbers map[int64]int64  // by old number
	labels  map[int64]uint32 // of the dispatch, by new number, where the function is entered
	last    int64            // the greatest new number
	sp      map[int64]int32  // depths of the frame, by new number
	maps    map[int64]int32  // numbers of the maps of live pointers
}

// renumber changes the places of a function, whose addresses begin at base, in its code and
// in its tables of values. A function that is entered or left in a way that Go's compiler
// does not write stays as it is. trap is the function by which a nil pointer panics: of who
// calls it no pointers are asked for.
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

// findEntries returns where the function's dispatch is, 0 if it has none, and its returns,
// nil if there are other uses of places or of PC_B than a dispatch, jumps and calls.
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

// isJump tells whether PC_B is set to a place, for a jump by way of the dispatch.
func (f *function) isJump(at int) bool {
	return f.body[at].is(opLocalSet, 0) && f.body[at-1].op == opI32Const
}

// callsByPC tells whether PC_B is used for the number of a function that is called next.
func (f *function) callsByPC(at int) bool {
	return at >= 0 && at+3 < len(f.body) && f.body[at].is(opLocalSet, 0) && f.body[at+1].is(opI32Const, 0) &&
		f.body[at+2].is(opLocalGet, 0) && f.body[at+3].op == opCallIndirect
}

// numberCalls gives a number to each kind of call that the function is not entered behind:
// what is asked about such a place is the depth of the frame, and which pointers live.
func (n *numbering) numberCalls(f *function, returns map[int]returnStore, trap int64) {
	type kind struct{ sp, maps int32 }
	kinds := map[kind]int64{}
	var trapping []int64 // old places
	for _, at := range slices.Sorted(maps.Keys(returns)) {
		s := returns[at]
		switch _, known := n.numbers[s.place]; {
		case s.resumes || known:
		case f.calleeBehind(at) == trap:
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
	for _, place := range trapping { // nobody asks for pointers
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

// numberWith returns the first number but 0 with a depth of the frame, or 0.
func (n *numbering) numberWith(sp int32) int64 {
	for number := int64(1); number <= n.last; number++ {
		if n.sp[number] == sp {
			return number
		}
	}
	return 0
}

// calleeBehind returns the function that is called next, -1 if it is not known.
func (f *function) calleeBehind(at int) int64 {
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

// numberEntries numbers the places that the function is entered at by the labels of its
// dispatch. It is false where one label stands for several calls, or tables of values could
// not tell apart what they have to.
func (n *numbering) numberEntries(f *function, table int, returns map[int]returnStore) bool {
	entered := map[int64]bool{} // old places; whether it is behind a call
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
	called := false   // whether it is behind a call
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

// set notes the value that a table is to have for a number, and is false if it has another.
func (n *numbering) set(table map[int64]int32, number int64, value int32) bool {
	old, ok := table[number]
	table[number] = value
	return !ok || old == value
}

// dispatchLabels returns the labels of the dispatch. The numbers of calls are not entered.
func (n *numbering) dispatchLabels() []uint32 {
	labels := make([]uint32, slices.Max(slices.Collect(maps.Keys(n.labels)))+1)
	for number, label := range n.labels {
		labels[number] = label
	}
	return labels
}
