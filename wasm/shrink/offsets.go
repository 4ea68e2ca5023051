package main

// foldOffsets moves a constant added to SP into the load or store that uses the sum as its address:
// "wrap(extend(sp) + n); value; store m" becomes "sp; value; store n+m". Frames are far from the
// end of memory, so the sum does not wrap.
func (f *function) foldOffsets() {
	folded := map[int]bool{} // starts of the four instructions of each addition
	for at := 1; at+4 < len(f.body); at++ {
		b := f.body[at-1:]
		if !b[0].is(opLocalGet, spLocal) || b[1].op != opI64ExtendU || b[2].op != opI64Const || b[2].a < 0 || b[2].a >= 1<<30 ||
			b[3].op != opI64Add || b[4].op != opI32WrapI64 {
			continue
		}
		if user := f.addressUser(at + 4); user > 0 && f.body[user].b+b[2].a < 1<<30 {
			f.body[user].b += b[2].a
			folded[at] = true
		}
	}
	f.rewrite(func(at int) ([]instr, int) {
		if folded[at] {
			return nil, 4
		}
		return nil, 0
	})
}

// addressUser returns the index of the load or store that takes its address from the top of the
// stack before an instruction, or 0 if another instruction takes it or it is unknown.
func (f *function) addressUser(at int) int {
	height := 1 // depth of the stack above and including the address
	for ; at < len(f.body); at++ {
		i := f.body[at]
		takes, leaves, ok := stackEffect(i)
		switch {
		case !ok:
			return 0
		case height > takes:
			height += leaves - takes
			continue
		case height == takes && i.op >= opFirstLoad && i.op <= opLastStore:
			return at
		}
		return 0
	}
	return 0
}

// stackEffect returns the numbers of values that an instruction pops and pushes. ok is false for
// control flow.
func stackEffect(i instr) (takes, leaves int, ok bool) {
	switch op := i.op; {
	case op == opLocalGet, op == opGlobalGet, op == opMemorySize, op >= opI32Const && op <= opF64Const:
		return 0, 1, true
	case op == opLocalSet, op == opGlobalSet, op == opDrop:
		return 1, 0, true
	case op == opSelect:
		return 3, 1, true
	case op >= opFirstStore && op <= opLastStore:
		return 2, 0, true
	case op == opLocalTee, op >= opFirstLoad && op <= opLastLoad, isUnary(op), op == opPrefixed && i.a < 8:
		return 1, 1, true
	case op > opI32Eqz && op < opI32WrapI64:
		return 2, 1, true
	}
	return 0, 0, false
}

// isUnary reports whether a numeric instruction has one operand: tests for zero, bit counts,
// functions of a float, and conversions.
func isUnary(op byte) bool {
	return op == opI32Eqz || op == opI64Eqz || op >= 0x67 && op <= 0x69 || op >= 0x79 && op <= 0x7b ||
		op >= 0x8b && op <= 0x91 || op >= 0x99 && op <= 0x9f || op >= opI32WrapI64 && op <= opLastNumeric
}

// shorten replaces pairs of instructions by one: a load and the low half of its result by a load of
// that half, and the two steps of SP before a return (over the frame and over the return address)
// by one.
func (f *function) shorten() {
	f.rewrite(func(at int) ([]instr, int) {
		rest := f.body[at:]
		if len(rest) > 1 && rest[0].op == opI64Load && rest[1].op == opI32WrapI64 {
			return []instr{{op: opI32Load, a: 2, b: rest[0].b}}, 2
		}
		frame, ok := stepOfSP(rest)
		if !ok {
			return nil, 0
		}
		address, ok := stepOfSP(rest[5:])
		if !ok || len(rest) < 12 || rest[10].op != opI32Const || rest[11].op != opReturn {
			return nil, 0
		}
		return []instr{{op: opLocalGet, a: spLocal}, {op: opI32Const, a: frame + address}, {op: opI32Add}, {op: opGlobalSet, a: spGlobal}}, 10
	})
}

// stepOfSP returns the constant that five instructions add to SP, if they do just that.
func stepOfSP(body []instr) (int64, bool) {
	if len(body) < 5 || !body[0].is(opLocalGet, spLocal) || body[1].op != opI32Const || body[2].op != opI32Add ||
		!body[3].is(opLocalTee, spLocal) || !body[4].is(opGlobalSet, spGlobal) {
		return 0, false
	}
	return body[1].a, true
}
