package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"
)

func TestUnusedFunctionDataIsDropped(t *testing.T) {
	r := &record{maps: values{{noValue, 1}, {3, 2}, {0, 4}, {2, 5}, {3, 9}}}
	asked := r.orderMaps()
	if want := []int32{0, 3, 2}; !slices.Equal(asked, want) {
		t.Errorf("maps %v are asked for, want %v", asked, want)
	}
	if want := (values{{noValue, 1}, {1, 2}, {0, 4}, {2, 5}, {1, 9}}); !reflect.DeepEqual(r.maps, want) {
		t.Errorf("the maps by place are %v, want %v", r.maps, want)
	}
	all := []byte{4, 0, 0, 0, 9, 0, 0, 0, 10, 0, 11, 1, 12, 0, 13, 1}
	picked, err := pickMaps(all, asked)
	if want := []byte{3, 0, 0, 0, 9, 0, 0, 0, 10, 0, 13, 1, 12, 0}; err != nil || !bytes.Equal(picked, want) {
		t.Errorf("the maps are %v, %v, want %v", picked, err, want)
	}
	for n := range all {
		if _, err := pickMaps(all[:n], asked); !errors.Is(err, errFuncdata) {
			t.Errorf("maps cut off after %d bytes: %v", n, err)
		}
	}
	if _, err := pickMaps(all, []int32{-2}); !errors.Is(err, errFuncdata) {
		t.Errorf("a negative number of a map: %v", err)
	}
}

func TestDataOfFunctionsIsPackedByContent(t *testing.T) {
	const unused = 28
	memory := slices.Concat(
		[]byte{1, 0, 0, 0, 8, 0, 0, 0, 7}, // 0: maps
		[]byte{5, 6, 5},                   // 9: stack objects
		[]byte{1, 0, 0, 0, 8, 0, 0, 0, 7}, // 12: as the first
		[]byte{1, 0, 0, 0, 0, 0, 0},       // 21: as those are after it, except for their end
		[]byte{9, 9, 9, 9},                // no record keeps it
	)
	records := []*record{{data: []uint32{0, none, 9}}, {data: []uint32{none, 12}}, {data: []uint32{none, none, 21}}}
	d := funcdata{memory: memory}
	d.add(append(records, &record{data: []uint32{unused}}))
	if err := d.pack(records); err != nil {
		t.Fatal(err)
	}
	want := slices.Concat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, []byte{1, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}, []byte{5, 6, 5}, make([]byte, 5))
	if !bytes.Equal(memory, want) {
		t.Errorf("packed is\n%v, want\n%v", memory, want)
	}
	for i, want := range [][]uint32{{8, none, 24}, {none, 8}, {none, none, 0}} {
		if !slices.Equal(records[i].data, want) {
			t.Errorf("record %d leads to %v, want %v", i, records[i].data, want)
		}
	}
	if err := d.pack([]*record{{data: []uint32{uint32(len(memory)) + 1}}}); !errors.Is(err, errFuncdata) {
		t.Errorf("a place outside: %v", err)
	}
}

// At each place the collector finds the pointers that it found before, and the stack objects.
func TestPackedDataDecodesToOriginal(t *testing.T) {
	data, err := os.ReadFile(build(t, program))
	if err != nil {
		t.Fatal(err)
	}
	m, err := readModule(data)
	if err != nil {
		t.Fatal(err)
	}
	tableOf := func() *table {
		memory, err := readSegments(m.section(dataSection))
		if err != nil {
			t.Fatal(err)
		}
		functions, err := readTable(memory)
		if err != nil {
			t.Fatal(err)
		}
		return functions
	}
	was, is := tableOf(), tableOf()
	for _, r := range is.records {
		r.dropData()
	}
	if err := is.data.pack(is.records); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for number, r := range is.records {
		old := was.records[number]
		for _, run := range append(r.maps, valueRun{end: 1}) {
			place := run.end - 1
			for i := range min(len(r.data), localMaps+1) {
				before, after := liveBits(was, old, i, place), liveBits(is, r, i, place)
				if !bytes.Equal(before, after) {
					t.Fatalf("%s: %v live at place %d, were %v", was.called[number], after, place, before)
				}
				compared += len(after)
			}
		}
		for i := localMaps + 1; i < len(r.data); i++ {
			if at := r.data[i]; at != none {
				before, err := was.data.read(old.data[i])
				if err != nil || !bytes.HasPrefix(is.data.memory[at:], before) {
					t.Fatalf("%s: data %d is not what it was (%v)", was.called[number], i, err)
				}
			}
		}
	}
	if compared < 5000 {
		t.Errorf("%d bytes of maps are compared: too few to find anything", compared)
	}
}

// liveBits returns the map of live pointers that Go's runtime takes for a place in a function.
func liveBits(functions *table, r *record, kind int, place int64) []byte {
	if r.data[kind] == none {
		return nil
	}
	maps := functions.data.memory[r.data[kind]:]
	number, size := max(r.maps.at(place), 0), (binary.LittleEndian.Uint32(maps[4:])+7)/8
	if uint32(number) >= binary.LittleEndian.Uint32(maps) {
		return []byte("none")
	}
	return maps[mapsHeader+uint32(number)*size:][:size]
}

func TestContentsArePackedOnceAndSorted(t *testing.T) {
	c := contents{}
	for _, content := range []string{"bcd", "ab", "bcd", "b"} {
		c.add(content)
	}
	if packed := c.pack([]byte{7}, 2); string(packed) != "\x07\x00abb\x00bcd" {
		t.Errorf("packed is %q", packed)
	}
	if want := (contents{"ab": 2, "b": 4, "bcd": 6}); !reflect.DeepEqual(c, want) {
		t.Errorf("the places are %v, want %v", c, want)
	}
}
