package main

import (
	"errors"
	"math"
	"slices"
	"strings"
)

// Calling convention of Go's code for WebAssembly, from cmd/internal/obj/wasm: a function has PC_B
// in local variable 0 and copies SP, global 0, to local 1. Its caller has pushed the return address
// and passes 0; code that resumes it passes a place. This command adds a third way: the caller
// passes the return address, and the function pushes it.
const (
	spGlobal, spLocal = 0, 1
	pcLocal           = 2      // added by this command: the common high part of the function's return addresses
	lastLocal         = 3      // added by this command: the last return address
	tableBase         = 0x1000 // index of the first function in the table, the high part of its address
	pcBits            = 16     // low bits of an address, which hold the place in the function
	goType            = 0      // the linker's first type of functions: from PC_B to whether the stack unwinds
)

// isGo reports whether a function starts with the prologue of Go's compiler.
func (f *function) isGo() bool {
	return len(f.body) > 2 && len(f.locals) > 0 && f.locals[0].kind == valueI32 &&
		f.body[0].is(opGlobalGet, spGlobal) && f.body[1].is(opLocalSet, spLocal)
}

// baseOf returns the address of a function, given its number.
func baseOf(number int) int64 { return int64(tableBase+number) << pcBits }

// callees returns which functions push a return address that they are called with, by number:
// those with the prologue and the signature of Go's compiler, except those that the host calls.
func callees(m module, bodies []*function, imports int) ([]bool, error) {
	types := &reader{data: m.section(functionSection)}
	push := make([]bool, types.unsigned())
	if len(push) != len(bodies) || baseOf(len(bodies)) > math.MaxInt32 {
		return nil, errDamaged
	}
	for number, f := range bodies {
		push[number] = types.unsigned() == goType && f.isGo()
	}
	err := m.exported(func(number int64) { push[int(number)-imports] = false })
	return push, errors.Join(types.err, err)
}

// pushOnEntry adds the push of the return address to a function's prologue.
func (f *function) pushOnEntry() {
	f.body = slices.Insert(f.body, 2,
		instr{op: opLocalGet, a: 0}, instr{op: opI32Const, a: pcBits}, instr{op: opI32ShrU},
		instr{op: opIf, a: emptyBlock},
		instr{op: opLocalGet, a: spLocal}, instr{op: opI32Const, a: 8}, instr{op: opI32Sub}, instr{op: opLocalTee, a: spLocal}, instr{op: opGlobalSet, a: spGlobal},
		instr{op: opLocalGet, a: spLocal}, instr{op: opLocalGet, a: 0}, instr{op: opI64ExtendU}, instr{op: opI64Store, a: 3},
		instr{op: opI32Const, a: 0}, instr{op: opLocalSet, a: 0},
		instr{op: opEnd})
}

// passAddresses passes the return address to callees that push it, in place of a push and a zero. SP
// is then the same after such a call that does not unwind, and is not read again.
func (f *function) passAddresses(base int64, pushes func(callee int64) bool) {
	const push, call = 6, 9 // indices of the address and of the call, after the step of SP
	returns := f.findReturns(base)
	f.rewrite(func(at int) ([]instr, int) {
		rest := f.body[at:]
		if s, ok := returns[at+push]; ok && len(rest) > call && rest[0].is(opLocalGet, spLocal) && rest[1].is(opI32Const, 8) && rest[2].op == opI32Sub &&
			rest[3].is(opLocalTee, spLocal) && rest[4].is(opGlobalSet, spGlobal) && rest[5].is(opLocalGet, spLocal) &&
			rest[call-1].is(opI32Const, 0) && rest[call].op == opCall && pushes(rest[call].a) {
			n := call + 1
			if len(rest) > n+1 && rest[n].is(opGlobalGet, spGlobal) && rest[n+1].is(opLocalSet, spLocal) {
				n += 2
			}
			return []instr{{op: opI32Const, a: base + s.place}, rest[call]}, n
		}
		return nil, 0
	})
}

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
		sum := []instr{{op: opLocalGet, a: -pcLocal}, {op: opI32Const, a: s.place}, {op: opI32Add}}
		if from, ok := last[at]; ok && from >= 0 && from <= s.place {
			sum[0].a, sum[1].a = -lastLocal, s.place-from
		}
		if count && !s.conditional {
			sum = append(sum, instr{op: opLocalTee, a: -lastLocal})
		}
		if f.body[at].op == opI64Const {
			sum = append(sum, instr{op: opI64ExtendU})
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
	f.locals[0].count += 2
	f.body = slices.Insert(f.body, 2,
		instr{op: opI32Const, a: value},
		instr{op: opLocalTee, a: pcLocal},
		instr{op: opLocalGet, a: 0},
		instr{op: opI32Add},
		instr{op: opLocalSet, a: lastLocal})
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
