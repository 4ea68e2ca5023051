package main

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

func TestUnreachableFunctionsAreDropped(t *testing.T) {
	const imports = 3
	body := func(i ...instr) []byte { return (&function{body: append(i, instr{op: opEnd})}).write() }
	leaf := body(instr{op: opDrop})
	address := func(number int64) int64 { return (tableBase + number) << pcBits }
	const row = 32 // where the row of descriptors begins in memory
	bodies := [][]byte{
		0:  body(instr{op: opCall, a: imports + 1}), // exported
		1:  body(instr{op: opI64Const, a: address(2)}),
		2:  body(instr{op: opCall, a: 0}, instr{op: opI64Const, a: row + 8}), // an import, and where a descriptor is
		3:  leaf,                                                             // its address is in memory
		4:  leaf,                                                             // as is the high part of its
		5:  leaf,                                                             // and where its descriptor is
		6:  leaf,                                                             // its descriptor is in code
		7:  leaf,                                                             // an exported method of the runtime
		8:  leaf,                                                             // another one of it
		9:  leaf,                                                             // only the table of functions has it
		10: leaf,                                                             // has a descriptor alone
		11: body(instr{op: opCall, a: imports + 12}),
		12: body(instr{op: opCall, a: imports + 11}), // these two have each other alone
	}
	names := make([]string, len(bodies))
	names[7], names[8] = "runtime.(*T).Error", "runtime.(*T).read"
	var memory []byte
	for _, word := range []int64{
		address(3), tableBase + 4 | (tableBase+7)<<32, row, tableBase + 8 | 7<<32,
		address(5), address(6), address(10), // the row
		tableBase + 9, tableBase + 13 | (tableBase-1)<<32,
	} {
		memory = binary.LittleEndian.AppendUint64(memory, uint64(word))
	}
	m := module{{importSection, []byte{imports}}, {exportSection, []byte("\x02\x01f\x00\x03\x01m\x02\x00")}}
	functions := &table{called: names, place: span{row + 24, row + 32}}
	dropped, err := dropUnused(m, bodies, functions.findAddresses(memory))
	if want := []int{8, 9, 10, 11, 12}; err != nil || !slices.Equal(dropped, want) {
		t.Fatalf("functions %v are dropped, want %v; %v", dropped, want, err)
	}
	for number, body := range bodies {
		if was := bytes.Equal(body, traps); was != (number >= 8) {
			t.Errorf("function %d is dropped: %v", number, was)
		}
	}
	if _, err := dropUnused(module{{importSection, []byte{imports}}, {exportSection, []byte{1}}}, bodies, addresses{}); err == nil {
		t.Error("damaged exports are no error")
	}
}

func TestUnusedRuntimeFunctionsAreReplaced(t *testing.T) {
	names := []string{"main.main", "runtime.traceback", "runtime.traceLocker.GoPark", "runtime.traceLocker.ok", "runtime.mProf_Malloc", "runtime.saveAncestors", "runtime.freeSpecial"}
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
	check(names, nil, returns, traps, nil, returns, zeros(16, 1), traps)
	check(append(names, "runtime.StartTrace"), nil, returns, nil, nil, returns)
	check(append(names, "runtime.MemProfile"), nil, returns, traps, nil, nil, zeros(16, 1), nil)
	check(append(names, "runtime.getOrAddWeakHandle"), nil, returns, traps, nil, returns, zeros(16, 1), nil)
}
