package main

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

func TestFunctionsThatNothingLeadsToAreDropped(t *testing.T) {
	const imports = 3
	body := func(i ...instr) []byte { return (&function{body: append(i, instr{op: opEnd})}).write() }
	leaf := body(instr{op: opDrop})
	bodies := [][]byte{
		0: body(instr{op: opCall, a: imports + 1}), // exported
		1: body(instr{op: opI64Const, a: (tableBase + 2) << pcBits}),
		2: body(instr{op: opCall, a: 0}), // an import
		3: leaf,                          // its address is in memory
		4: leaf,                          // as is the high part of its
		5: leaf,                          // only the table of functions has it
		6: body(instr{op: opCall, a: imports + 7}),
		7: body(instr{op: opCall, a: imports + 6}), // these two have each other alone
	}
	var memory []byte
	for _, word := range []uint32{7, (tableBase + 3) << pcBits, 0, tableBase + 4, tableBase + 5, tableBase + 8, tableBase - 1} {
		memory = binary.LittleEndian.AppendUint32(memory, word)
	}
	m := module{{importSection, []byte{imports}}, {exportSection, []byte("\x02\x01f\x00\x03\x01m\x02\x00")}}
	names, err := dropUnused(m, bodies, memory, place{16, 20})
	if err != nil || !slices.Equal(names, []int{5, 6, 7}) {
		t.Fatalf("functions %v are dropped, %v", names, err)
	}
	for number, body := range bodies {
		if dropped := bytes.Equal(body, traps); dropped != (number >= 5) {
			t.Errorf("function %d is dropped: %v", number, dropped)
		}
	}
	if _, err := dropUnused(module{{importSection, []byte{imports}}, {exportSection, []byte{1}}}, bodies, nil, place{}); err == nil {
		t.Error("damaged exports are no error")
	}
}

func TestTheRuntimeIsReplacedWhereItHasNothingToDo(t *testing.T) {
	names := []string{"main.main", "runtime.traceback", "runtime.traceLocker.GoPark", "runtime.traceLocker.ok", "runtime.mProf_Malloc"}
	check := func(names []string, want ...[]byte) {
		t.Helper()
		bodies := make([][]byte, len(names))
		replaceRuntime(bodies, names)
		for number, body := range bodies[:len(want)] {
			if !bytes.Equal(body, want[number]) {
				t.Errorf("%s is % x, want % x", names[number], body, want[number])
			}
		}
	}
	check(names, nil, returns, traps, nil, returns)
	check(append(names, "runtime.StartTrace"), nil, returns, nil, nil, returns)
	check(append(names, "runtime.MemProfile"), nil, returns, traps, nil, nil)
}
