package main

import (
	"encoding/binary"
	"os"
	"reflect"
	"slices"
	"testing"
)

func TestResumePointsAreRenumberedByReachableEntries(t *testing.T) {
	const trap = 77
	base := baseOf(5)
	call := func(place, callee int64, unwind instr) []instr {
		return []instr{getSP, {op: opI64Const, a: base + place}, {op: opI64Store, a: 3}, i32(0), {op: opCall, a: callee}, ifThen, unwind, end}
	}
	body := func(panics, trapped, behind, jump int64, table ...uint32) []instr {
		return slices.Concat(
			[]instr{loop, block, block, block, getPC, {op: opBrTable, labels: table}, end},
			append(append([]instr{getSP, ifThen}, call(panics, 7, nothing)...), end),
			append(append([]instr{getSP, ifThen}, call(trapped, trap, nothing)...), end),
			call(behind, 8, instr{op: opReturn}), []instr{end, nothing, end},
			[]instr{i32(jump), setPC, br(1), end, i32(1), end})
	}
	f := goFunction(body(3, 4, 6, 8, 0, 0, 0, 0, 0, 1, 1, 1, 2)...)
	r := &record{sp: values{{0, 2}, {16, 9}}, maps: values{{-1, 2}, {0, 4}, {1, 9}}}
	f.renumber(r, base, trap)
	same(t, f, body(1, 1, 2, 3, 0, 0, 1, 2)...)
	if want := (values{{0, 1}, {16, 127}}); !reflect.DeepEqual(r.sp, want) {
		t.Errorf("depths are %v, want %v", r.sp, want)
	}
	if want := (values{{0, 1}, {1, 127}}); !reflect.DeepEqual(r.maps, want) {
		t.Errorf("maps are %v, want %v", r.maps, want)
	}
}

// For each call the runtime looks up the return address in its tables.
func TestRenumberedPlacesHaveTheSameValues(t *testing.T) {
	data, err := os.ReadFile(build(t, program))
	if err != nil {
		t.Fatal(err)
	}
	m, err := readModule(data)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := readSegments(m.section(dataSection))
	if err != nil {
		t.Fatal(err)
	}
	functions, err := readTable(memory)
	if err != nil {
		t.Fatal(err)
	}
	bodies, err := readBodies(m.section(codeSection))
	if err != nil {
		t.Fatal(err)
	}
	imports, _ := binary.Uvarint(m.section(importSection))
	trap := int64(slices.Index(functions.called, "runtime.sigpanic")) + int64(imports)
	changed := 0
	for number, body := range bodies {
		old, r := goFunctionOf(t, body), functions.records[number]
		if old == nil {
			continue
		}
		f, new := goFunctionOf(t, body), *r
		f.renumber(&new, baseOf(number), trap)
		if !reflect.DeepEqual(old, f) {
			changed++
		}
		compareReturns(t, functions.called[number], old, f, r, &new, baseOf(number), trap)
	}
	if changed < len(bodies)/2 {
		t.Errorf("%d of %d functions are renumbered", changed, len(bodies))
	}
}

// goFunctionOf returns a function that Go's compiler wrote, nil if it is another.
func goFunctionOf(t *testing.T, body []byte) *function {
	t.Helper()
	f, err := readFunction(body)
	if err != nil {
		t.Fatal(err)
	}
	if !f.isGo() {
		return nil
	}
	f.straightenJumps()
	return f
}

func compareReturns(t *testing.T, name string, old, new *function, was, is *record, base, trap int64) {
	t.Helper()
	if is.sp.max() != was.sp.max() {
		t.Errorf("%s: the frame is %d deep, was %d", name, is.sp.max(), was.sp.max())
	}
	label := func(f *function, place int64) uint32 {
		for at, i := range f.body {
			if i.op == opBrTable && f.body[at-1].is(opLocalGet, 0) {
				return i.labels[min(int(place), len(i.labels)-1)]
			}
		}
		return 0
	}
	after := new.findReturns(base)
	for at, s := range old.findReturns(base) {
		place := after[at].place
		if got, want := is.sp.at(place), was.sp.at(s.place); got != want {
			t.Errorf("%s: depth %d at place %d, was %d at %d", name, got, place, want, s.place)
		}
		if got, want := is.maps.at(place-1), was.maps.at(s.place-1); got != want && place != 0 && old.calleeAfter(at) != trap {
			t.Errorf("%s: map %d at place %d, was %d at %d", name, got, place, want, s.place)
		}
		if got, want := label(new, place), label(old, s.place); got != want && s.resumes {
			t.Errorf("%s: place %d is at label %d, was %d at %d", name, place, got, s.place, want)
		}
	}
	from, to := was.fixed[wordDefer], is.fixed[wordDefer]
	if got, want := is.maps.at(int64(to)), was.maps.at(int64(from)); from != 0 && (got != want || label(new, int64(to)) != label(old, int64(from))) {
		t.Errorf("%s: behind a panic it goes on with map %d at place %d, was %d at %d", name, got, to, want, from)
	}
}

func TestValuesAreWrittenAsTheyWereRead(t *testing.T) {
	for _, want := range []values{{{-1, 1}, {0, 130}}, {{24, 3}, {-2, 70000}}, {{0, 1}}} {
		data := want.append(nil)
		for _, behind := range [][]byte{nil, {7}} {
			got, err := readValues(slices.Concat(data, behind))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%v is read as %v, %v", want, got, err)
			}
		}
		for n := range data {
			if _, err := readValues(data[:n]); err == nil {
				t.Errorf("%v: no error for %d bytes", want, n)
			}
		}
	}
}

func TestBlocksWithoutBranchesAreDropped(t *testing.T) {
	table := instr{op: opBrTable, labels: []uint32{0, 2}}
	f := goFunction(loop, block, block, block, getPC, table, end, getSP, instr{op: opBrIf, a: 1}, end, br(1), end, br(0), end, end)
	f.dropBlocks()
	table.labels = []uint32{0, 1}
	same(t, f, loop, block, block, getPC, table, end, getSP, instr{op: opBrIf, a: 0}, br(1), end, br(0), end, end)
}
