package main

import (
	"slices"
	"strings"
)

// Calling convention of Go's code for WebAssembly, from cmd/internal/obj/wasm: a function has PC_B
// in local variable 0 and copies SP, global 0, to local 1.
const (
	spGlobal, spLocal = 0, 1
	pcLocal           = 2      // added by this command: the common high part of the function's return addresses
	lastLocal         = 3      // added by this command: the last return address
	tableBase         = 0x1000 // index of the first function in the table, the high part of its address
	pcBits            = 16     // low bits of an address, which hold the place in the function
)

// isGo reports whether a function starts with the prologue of Go's compiler.
func (f *function) isGo() bool {
	return len(f.body) > 2 && len(f.locals) > 0 && f.locals[0].kind == valueI32 &&
		f.body[0].is(opGlobalGet, spGlobal) && f.body[1].is(opLocalSet, spLocal)
}

// baseOf returns the address of a function, given its number.
func baseOf(number int) int64 { return int64(tableBase+number) << pcBits }

// shareAddress keeps the common part of a function's return addresses in one local variable and the
// last return address in another, so that calls have the same bytes in all functions. "i64.const
// number<<16|place" becomes "last = last + step", or "last = pc + place" where the last address is
// unknown. Without count it is always "pc + place": functions that can be resumed elsewhere than
// after calls need that.
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

// insertLocals sets local variable pcLocal to a value, and lastLocal to the sum of it and PC_B.
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

// returnAtUnwinding replaces the branch to the function's end that follows a call, taken while the
// stack unwinds, by a return. The depth of the branch differs from call to call; a return always
// has the same bytes.
func (f *function) returnAtUnwinding() {
	n := len(f.body)
	if n < 4 || f.body[n-3].op != opEnd || !f.body[n-2].is(opI32Const, 1) {
		return
	}
	last := -1 // start of the block that ends last
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

// endPanics removes the code after calls of functions that never return and only unwind the stack.
func (f *function) endPanics(neverReturns func(callee int64) bool) {
	behind := []instr{
		{op: opGlobalGet, a: spGlobal}, {op: opLocalSet, a: spLocal}, // SP after a return
		{op: opIf, a: emptyBlock}, {op: opI32Const, a: 1}, {op: opReturn}, {op: opEnd}, // the path that unwinds
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

// panics reports whether the runtime function of this name only panics.
func panics(name string) bool {
	switch name {
	case "runtime.sigpanic", "runtime.gopanic", "runtime.panicdivide", "runtime.panicshift", "runtime.panicdottypeE", "runtime.panicdottypeI", "runtime.panicnildottype":
		return true
	}
	return strings.HasPrefix(name, "runtime.goPanic") // an index or the bounds of a slice
}
