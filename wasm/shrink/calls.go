package main

import (
	"slices"
	"strings"
)

// What is known of Go's code for WebAssembly, from cmd/internal/obj/wasm: a
// function takes PC_B as local variable 0 and copies SP, global 0, to local 1.
const (
	spGlobal, spLocal = 0, 1
	pcLocal           = 2      // ours: where the function's own part of its return addresses is
	lastLocal         = 3      // ours: where the last return address is
	tableBase         = 0x1000 // place of the first function in the table, the high part of its address
	pcBits            = 16     // of an address, for the place in the function
)

// isGo tells whether a function begins as Go's compiler begins them.
func (f *function) isGo() bool {
	return len(f.body) > 2 && len(f.locals) > 0 && f.locals[0].kind == valueI32 &&
		f.body[0].is(opGlobalGet, spGlobal) && f.body[1].is(opLocalSet, spLocal)
}

// baseOf returns the address of the function of a number.
func baseOf(number int) int64 { return int64(tableBase+number) << pcBits }

// shareAddress keeps the part that the return addresses of a function's calls
// have in common in a local variable, and the last of them in another, so that
// calls look alike in all functions: "i64.const number<<16|place" becomes
// "last = last + step", or "last = pc + place" where it is not known what is
// last. Without count, which a function needs that goes on at other places than
// behind calls, it is always "pc + place".
func (f *function) shareAddress(number int, count bool) {
	base := baseOf(number)
	returns := f.findReturns(base)
	if len(returns) == 0 {
		return
	}
	last := map[int]int64{}
	if count {
		last = f.lastPlaces(returns)
	}
	f.rewrite(func(at int) ([]instr, int) {
		s, ok := returns[at]
		if !ok {
			return nil, 0
		}
		sum := []instr{{op: opLocalGet, a: -pcLocal}, {op: opI64Const, a: s.place}, {op: opI64Add}}
		if from, ok := last[at]; ok && from >= 0 && from <= s.place {
			sum[0].a, sum[1].a = -lastLocal, s.place-from
		}
		if count && !s.conditional {
			sum = append(sum, instr{op: opLocalTee, a: -lastLocal})
		}
		return sum, 1
	})
	f.insertLocals(base)
}

// insertLocals makes local variable pcLocal hold a value, and lastLocal the sum
// of it and PC_B.
func (f *function) insertLocals(value int64) {
	for at, i := range f.body {
		if i.op >= opLocalGet && i.op <= opLocalTee {
			switch {
			case i.a < 0:
				f.body[at].a = -i.a
			case i.a >= pcLocal:
				f.body[at].a += 2
			}
		}
	}
	rest := f.locals[1:]
	if sp := f.locals[0].count; sp > 1 {
		rest = append([]localGroup{{sp - 1, valueI32}}, rest...)
	}
	if len(rest) > 0 && rest[0].kind == valueI64 {
		rest = append([]localGroup{{rest[0].count + 2, valueI64}}, rest[1:]...)
	} else {
		rest = append([]localGroup{{2, valueI64}}, rest...)
	}
	f.locals = append([]localGroup{{1, valueI32}}, rest...)
	begin := []instr{
		f.body[0], f.body[1],
		{op: opI64Const, a: value},
		{op: opLocalTee, a: pcLocal},
		{op: opLocalGet, a: 0},
		{op: opI64ExtendU},
		{op: opI64Add},
		{op: opLocalSet, a: lastLocal},
	}
	f.body = append(begin, f.body[2:]...)
}

// returnAtUnwinding replaces the branch behind a call, to the function's end
// when the stack is to be unwound, by a return there: the branch's depth is
// another at each call, the return is always alike.
func (f *function) returnAtUnwinding() {
	n := len(f.body)
	if n < 4 || f.body[n-3].op != opEnd || !f.body[n-2].is(opI32Const, 1) {
		return
	}
	last := -1 // where the block begins that ends last
	f.walk(func(at int, open []label) {
		if at == n-3 && len(open) == 1 {
			last = open[0].at
		}
	})
	exits := map[int]bool{}
	f.walk(func(at int, open []label) {
		if i := f.body[at]; i.op == opBrIf && len(open) > 0 && int(i.a) == len(open)-1 && open[0].at == last {
			exits[at] = true
		}
	})
	f.rewrite(func(at int) ([]instr, int) {
		if exits[at] {
			return []instr{{op: opIf, a: emptyBlock}, {op: opI32Const, a: 1}, {op: opReturn}, {op: opEnd}}, 1
		}
		return nil, 0
	})
}

// endPanics takes out what comes after calls of functions that never return, but only unwind
// the stack.
func (f *function) endPanics(neverReturns func(callee int64) bool) {
	behind := []instr{
		{op: opGlobalGet, a: spGlobal}, {op: opLocalSet, a: spLocal}, // SP, where it returned
		{op: opIf, a: emptyBlock}, {op: opI32Const, a: 1}, {op: opReturn}, {op: opEnd}, // where it unwinds
	}
	same := func(a, b instr) bool { return a.op == b.op && a.a == b.a }
	f.rewrite(func(at int) ([]instr, int) {
		call, rest := f.body[at], f.body[at+1:]
		if call.op != opCall || len(rest) < len(behind) || !slices.EqualFunc(rest[:len(behind)], behind, same) || !neverReturns(call.a) {
			return nil, 0
		}
		n := 1 + len(behind)
		if at+n < len(f.body) && f.body[at+n].op == opUnreachable {
			n++
		}
		return []instr{call, {op: opReturn}}, n
	})
}

// panics tells whether a function of Go's runtime, by its name, panics and does nothing else.
func panics(name string) bool {
	switch name {
	case "runtime.sigpanic", "runtime.gopanic", "runtime.panicdivide", "runtime.panicshift", "runtime.panicdottypeE", "runtime.panicdottypeI", "runtime.panicnildottype":
		return true
	}
	return strings.HasPrefix(name, "runtime.goPanic") // of an index or the bounds of a slice
}
