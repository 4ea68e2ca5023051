package main

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
)

// goBegin is how Go's functions begin: SP goes to local variable 1.
var goBegin = []instr{{op: opGlobalGet, a: spGlobal}, {op: opLocalSet, a: spLocal}}

func goFunction(body ...instr) *function {
	return &function{locals: []localGroup{{1, valueI32}, {2, valueI64}}, body: append(append([]instr(nil), goBegin...), body...)}
}

func same(t *testing.T, f *function, want ...instr) {
	t.Helper()
	if want = append(append([]instr(nil), goBegin...), want...); !reflect.DeepEqual(f.body, want) {
		t.Errorf("the body is\n%v, want\n%v", f.body, want)
	}
}

var (
	block, loop, end = instr{op: opBlock, a: emptyBlock}, instr{op: opLoop, a: emptyBlock}, instr{op: opEnd}
	ifThen           = instr{op: opIf, a: emptyBlock}
	getPC, getSP     = instr{op: opLocalGet, a: 0}, instr{op: opLocalGet, a: spLocal}
	setPC            = instr{op: opLocalSet, a: 0}
	nothing          = instr{op: opUnreachable}
)

func i32(n int64) instr { return instr{op: opI32Const, a: n} }
func br(n int64) instr  { return instr{op: opBr, a: n} }

func TestFunctionsAreWrittenAsTheyWereRead(t *testing.T) {
	code := []byte{
		2, 1, valueI32, 3, valueI64, // locals
		0x41, 0x80, 0x7f, 0x42, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, // constants, one of 10 bytes
		0x43, 1, 2, 3, 4, 0x44, 1, 2, 3, 4, 5, 6, 7, 8,
		0x02, 0x40, 0x0e, 2, 0, 1, 0, 0x0b, 0x11, 0, 0, 0x28, 2, 0x90, 1,
		0xfc, 10, 0, 0, 0xfc, 11, 0, 0xfc, 6, 0x3f, 0, 0x0b,
	}
	f, err := readFunction(code)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.write(); !bytes.Equal(got, code) {
		t.Errorf("written as\n% x, read from\n% x", got, code)
	}
	for n := range code {
		_, _ = readFunction(code[:n]) // no panic
	}
	if _, err := readFunction([]byte{0, 0xfd, 0}); err == nil {
		t.Error("an unknown instruction is taken")
	}
}

func TestForwardJumpsAreDirect(t *testing.T) {
	table := instr{op: opBrTable, labels: []uint32{0, 1, 1, 2}}
	head := []instr{loop, block, block, block, getPC, table, end}
	tail := []instr{end, nothing, end, nothing, end, end}
	f := goFunction(append(append(head,
		getSP, ifThen, i32(3), setPC, br(3), end, // place 3 is the end of the outermost block
		i32(1), setPC, br(2), // place 1 that of the next
		i32(0), setPC, br(2)), // resume point 0 is above
		tail...)...)
	f.straightenJumps()
	same(t, f, append(append(head, getSP, instr{op: opBrIf, a: 1}, br(0), i32(0), setPC, br(2)), tail...)...)
}

func TestUnwindingReturns(t *testing.T) {
	call, tail := instr{op: opCall, a: 7}, []instr{nothing, end, i32(1), end}
	f := goFunction(append([]instr{block, block, i32(0), call, {op: opBrIf, a: 1}, end, i32(0), {op: opBrIf, a: 0}}, tail...)...)
	f.returnAtUnwinding()
	unwind := []instr{ifThen, i32(1), {op: opReturn}, end}
	want := append([]instr{block, block, i32(0), call}, unwind...)
	want = append(append(append(want, end, i32(0)), unwind...), tail...)
	same(t, f, want...)

	// The block that ends before the constant is not the one that is branched out of.
	body := append([]instr{block, {op: opBrIf, a: 0}, end, block}, tail...)
	f = goFunction(body...)
	f.returnAtUnwinding()
	same(t, f, body...)
}

func TestCodeAfterPanicIsDropped(t *testing.T) {
	behind := []instr{{op: opGlobalGet, a: spGlobal}, {op: opLocalSet, a: spLocal}, ifThen, i32(1), {op: opReturn}, end}
	call := func(callee int64) []instr { return append([]instr{i32(0), {op: opCall, a: callee}}, behind...) }
	f := goFunction(slices.Concat(call(7), []instr{nothing}, call(8), call(7), []instr{end})...)
	f.endPanics(func(callee int64) bool { return callee == 7 })
	panic := append(call(7)[:2:2], instr{op: opReturn})
	same(t, f, slices.Concat(panic, call(8), panic, []instr{end})...)
	for name, want := range map[string]bool{
		"runtime.sigpanic": true, "runtime.goPanicSliceAlen": true, "runtime.panicdottypeE": true,
		"runtime.panicCheck1": false, "main.goPanic": false,
	} {
		if panics(name) != want {
			t.Errorf("%s panics: %v", name, !want)
		}
	}
}

// counted is what shareAddress puts first, and added is an address that it
// makes: the sum of a local variable and a number.
func counted(base int64, body ...instr) []instr {
	return append([]instr{
		i32(base),
		{op: opLocalTee, a: pcLocal},
		getPC,
		{op: opI32Add},
		{op: opLocalSet, a: lastLocal},
	}, body...)
}

func added(local, n int64, keep bool) []instr {
	sum := []instr{{op: opLocalGet, a: local}, i32(n), {op: opI32Add}}
	if keep {
		sum = append(sum, instr{op: opLocalTee, a: lastLocal})
	}
	return append(sum, instr{op: opI64ExtendU}, instr{op: opI64Store, a: 3})
}

func TestReturnAddressesShareALocal(t *testing.T) {
	const number = 5
	base := int64(tableBase+number) << pcBits
	other := instr{op: opI64Const, a: base + 1<<pcBits}
	store := instr{op: opI64Store, a: 3}
	f := goFunction(getSP, instr{op: opI64Const, a: base + 9}, store, getSP, other, store, instr{op: opLocalGet, a: 3}, end)
	f.shareAddress(number, false)
	same(t, f, counted(base, slices.Concat([]instr{getSP}, added(pcLocal, 9, false),
		[]instr{getSP, other, store, {op: opLocalGet, a: 5}, end})...)...)
	if want := []localGroup{{3, valueI32}, {2, valueI64}}; !reflect.DeepEqual(f.locals, want) {
		t.Errorf("the locals are %v, want %v", f.locals, want)
	}
}

func TestReturnAddressesAreCountedAlongStraightCode(t *testing.T) {
	const number = 5
	base := int64(tableBase+number) << pcBits
	call := func(place int64) []instr {
		return []instr{{op: opI64Const, a: base + place}, {op: opI64Store, a: 3}, {op: opCall, a: 7}, ifThen, i32(1), {op: opReturn}, end}
	}
	after := func(local, n int64) []instr { return append(added(local, n, true), call(0)[2:]...) }
	panics := []instr{{op: opI64Const, a: base + 4}, {op: opI64Store, a: 3}, {op: opCall, a: 8}, ifThen, nothing, end}
	for name, c := range map[string]struct{ body, want [][]instr }{
		"behind each other": {
			[][]instr{{block, block, block, getPC, {op: opBrTable, labels: []uint32{0, 0, 1, 1, 2}}, end}, call(2), {end}, call(4), {end, end}},
			[][]instr{{block, block, block, getPC, {op: opBrTable, labels: []uint32{0, 0, 1, 1, 2}}, end}, after(pcLocal, 2), {end}, after(lastLocal, 2), {end, end}},
		},
		"a jump to between": { // place 3 is of a jump that comes from below
			[][]instr{{loop, block, block, getPC, {op: opBrTable, labels: []uint32{0, 0, 1, 1}}, end}, call(2), {end}, call(5), {i32(3), setPC, br(0), end, end}},
			[][]instr{{loop, block, block, getPC, {op: opBrTable, labels: []uint32{0, 0, 1, 1}}, end}, after(pcLocal, 2), {end}, after(pcLocal, 5), {i32(3), setPC, br(0), end, end}},
		},
		"a way around": {
			[][]instr{call(2), {block, getSP, {op: opBrIf}}, call(3), {end}, call(4), {end}},
			[][]instr{after(pcLocal, 2), {block, getSP, {op: opBrIf}}, after(lastLocal, 1), {end}, after(pcLocal, 4), {end}},
		},
		"two ways that are alike": {
			[][]instr{call(2), {block, getSP, {op: opBrIf}, end}, call(4), {end}},
			[][]instr{after(pcLocal, 2), {block, getSP, {op: opBrIf}, end}, after(lastLocal, 2), {end}},
		},
		"a panic": {
			[][]instr{call(2), {getSP, ifThen}, panics, {end}, call(7), {end}},
			[][]instr{after(pcLocal, 2), {getSP, ifThen}, added(lastLocal, 2, false), panics[2:], {end}, after(lastLocal, 5), {end}},
		},
		"the other way": {
			[][]instr{call(2), {getSP, ifThen, {op: opElse}, end}, call(7), {end}},
			[][]instr{after(pcLocal, 2), {getSP, ifThen, {op: opElse}, end}, after(lastLocal, 5), {end}},
		},
	} {
		f := goFunction(slices.Concat(c.body...)...)
		f.shareAddress(number, true)
		t.Run(name, func(t *testing.T) { same(t, f, counted(base, slices.Concat(c.want...)...)...) })
	}
}

func TestCalleesPushReturnAddresses(t *testing.T) {
	const number, pushes = 5, 7
	base := int64(tableBase+number) << pcBits
	stepSP := func(n int64, op byte) []instr {
		return []instr{getSP, i32(n), {op: op}, {op: opLocalTee, a: spLocal}, {op: opGlobalSet, a: spGlobal}}
	}
	call := func(callee, place int64) []instr {
		return slices.Concat(stepSP(8, opI32Sub),
			[]instr{getSP, {op: opI64Const, a: base + place}, {op: opI64Store, a: 3}, i32(0), {op: opCall, a: callee}}, goBegin)
	}
	unwind := []instr{ifThen, i32(1), {op: opReturn}, end}
	f := goFunction(slices.Concat(call(pushes, 1), unwind, call(8, 2), unwind, []instr{end})...)
	f.passAddresses(base, func(callee int64) bool { return callee == pushes })
	passed := slices.Concat([]instr{i32(base + 1), {op: opCall, a: pushes}}, unwind, call(8, 2), unwind, []instr{end})
	same(t, f, passed...)
	if got, want := f.findReturns(base), map[int]returnStore{2: {place: 1, resumes: true}, 14: {place: 2, resumes: true}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the return addresses are %v, want %v", got, want)
	}
	f.pushOnEntry()
	same(t, f, slices.Concat([]instr{getPC, i32(pcBits), {op: opI32ShrU}, ifThen}, stepSP(8, opI32Sub),
		[]instr{getSP, getPC, {op: opI64ExtendU}, {op: opI64Store, a: 3}, i32(0), setPC, end}, passed)...)
}

// A function that the host calls, or that has another signature or prologue, does not push.
func TestCalleesThatPush(t *testing.T) {
	m := module{{functionSection, []byte{4, goType, goType, 1, goType}}, {exportSection, []byte{1, 1, 'e', 0, 6}}}
	bodies := []*function{goFunction(end), goFunction(end), goFunction(end), {body: []instr{end}}}
	if got, err := callees(m, bodies, 5); err != nil || !slices.Equal(got, []bool{true, false, false, false}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := callees(m, bodies[1:], 5); err == nil {
		t.Error("a module with more types than functions is taken")
	}
}

func TestPlacesInAFrameAreOffsets(t *testing.T) {
	place := func(n int64) []instr {
		return []instr{getSP, {op: opI64ExtendU}, {op: opI64Const, a: n}, {op: opI64Add}, {op: opI32WrapI64}}
	}
	load := func(n int64) instr { return instr{op: opI64Load, a: 3, b: n} }
	store := func(n int64) instr { return instr{op: opI64Store, a: 3, b: n} }
	set := instr{op: opLocalSet, a: 2}
	f := goFunction(append(append(append(place(8), place(16)...), load(1), store(2)), end)...)
	f.foldOffsets()
	same(t, f, getSP, getSP, load(17), store(10), end)

	for name, rest := range map[string][]instr{
		"a local takes it":    {set, end},
		"a call comes before": {i32(0), {op: opCall, a: 7}, store(0), end},
		"it is stored":        {getSP, load(0), {op: opI32Add}, set, end},
	} {
		body := append(place(8), rest...)
		f := goFunction(body...)
		if f.foldOffsets(); len(f.body) != len(body)+len(goBegin) {
			t.Errorf("%s: the offset is gone", name)
		}
	}
	f = goFunction(append(place(-8), load(0), set, end)...)
	if f.foldOffsets(); len(f.body) != 10 {
		t.Error("an offset below the frame is moved")
	}
}

func TestPairsAreMerged(t *testing.T) {
	step := func(n int64) []instr {
		return []instr{getSP, i32(n), {op: opI32Add}, {op: opLocalTee, a: spLocal}, {op: opGlobalSet, a: spGlobal}}
	}
	f := goFunction(append(append(step(88), step(8)...), i32(0), instr{op: opReturn}, getSP, instr{op: opI64Load, a: 3, b: 24}, instr{op: opI32WrapI64}, end)...)
	f.shorten()
	same(t, f, getSP, i32(96), instr{op: opI32Add}, instr{op: opGlobalSet, a: spGlobal}, i32(0), instr{op: opReturn},
		getSP, instr{op: opI32Load, a: 2, b: 24}, end)

	body := append(append(step(88), step(8)...), getSP, end) // SP is used afterwards
	f = goFunction(body...)
	f.shorten()
	same(t, f, body...)
}
