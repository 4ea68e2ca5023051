package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// What is known of the table of functions, from Go's runtime/symtab.go and
// runtime2.go. It is that of one version of Go: another one is refused.
const (
	knownVersion = "go1.26"
	magic        = "\xf1\xff\xff\xff\x00\x00\x01\x08" // with the sizes of an instruction and a pointer

	// The fixed part of a function's record, in words of 4 bytes; the offsets
	// of its pcdata tables and of its funcdata follow.
	wordName, wordDefer, wordPCSP, wordPCFile, wordPCLine = 1, 3, 4, 5, 6
	wordTables, wordUnit, wordStartLine                   = 7, 8, 9
	wordCounts, words                                     = 10, 11

	// Places of what is kept: the maps of live pointers that the garbage
	// collector needs, and inlined calls, to unwind. All others serve
	// asynchronous preemption, which WebAssembly has not, and tracebacks.
	stackMapTable, inlineTable, boundsTable = 1, 2, 4
	keptData                                = 5 // pointer maps, stack objects, inlined calls, deferred calls

	none = ^uint32(0)
)

// The names that functions keep. Go's runtime asks whether one is its own, and
// takes apart that of a method called through a nil pointer, for its message.
const (
	runtimePrefix = "runtime."
	otherName     = "go.(*T).f"
	packedNames   = "\x00" + runtimePrefix + "\x00" + otherName + "\x00"
)

// table is the table of functions in a memory: its header's fields.
type table struct {
	memory                                 []byte // from the header on
	functions, names, units, files, values uint64
	funcs                                  uint64
	end                                    uint64       // of the last record
	called                                 []string     // the functions' names, by number
	defers                                 map[int]bool // functions that go on behind a panic, by number
}

// dropNames rewrites the table of functions of a program without source lines
// and names, and returns it.
func dropNames(memory []byte) (*table, error) {
	if !strings.HasPrefix(runtime.Version(), knownVersion) {
		return nil, fmt.Errorf("the tables of %s are unknown: this is for %s", runtime.Version(), knownVersion)
	}
	at := bytes.Index(memory, []byte(magic))
	if at < 0 || len(memory)-at < 72 {
		return nil, errors.New("there is no table of functions")
	}
	t := &table{memory: memory[at:], defers: map[int]bool{}}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(t.memory[8*i:]) }
	t.functions, t.names, t.units, t.files, t.values, t.funcs = field(1), field(4), field(5), field(6), field(7), field(8)
	size := uint64(len(t.memory))
	if t.names > t.units || t.units > t.files || t.files > t.values || t.values > t.funcs || t.funcs > size || t.functions > (size-t.funcs)/8 {
		return nil, errors.New("the table of functions is damaged")
	}
	return t, t.rewrite()
}

// rewrite packs the records of functions and the value tables they need.
// Offsets of both are kept in the records and in the index before them, so that
// both may move within their place.
func (t *table) rewrite() error {
	values := &valueTables{old: t.memory[t.values:t.funcs], packed: []byte{0}, at: map[string]uint32{}}
	funcs := t.memory[t.funcs:]
	index := funcs[:8*t.functions]
	first := binary.LittleEndian.Uint32(index[4:])
	var records []byte
	end := uint64(0)
	for i := range t.functions {
		offset := index[8*i+4:]
		from := binary.LittleEndian.Uint32(offset)
		binary.LittleEndian.PutUint32(offset, first+uint32(len(records)))
		f, err := readRecord(funcs, from)
		if err != nil {
			return err
		}
		end = max(end, uint64(from)+f.size())
		t.called = append(t.called, t.name(f.fixed[wordName]))
		t.defers[int(i)] = f.fixed[wordDefer] != 0
		f.fixed[wordName] = t.rename(f.fixed[wordName])
		if err := f.drop(values); err != nil {
			return err
		}
		records = f.append(records)
	}
	t.end = t.funcs + end
	replace(funcs[first:end], records)
	replace(t.memory[t.values:t.funcs], values.packed)
	replace(t.memory[t.names:t.units], []byte(packedNames))
	replace(t.memory[t.units:t.values], nil) // names of files, by compilation unit
	return nil
}

// place returns where a memory has the table.
func (t *table) place(memory []byte) place {
	from := len(memory) - len(t.memory)
	return place{from, from + int(t.end)}
}

// name returns the name at a place.
func (t *table) name(at uint32) string {
	names := t.memory[t.names:t.units]
	if uint64(at) >= uint64(len(names)) {
		return ""
	}
	name, _, _ := bytes.Cut(names[at:], []byte{0})
	return string(name)
}

// rename returns the place of what is left of a function's name.
func (t *table) rename(at uint32) uint32 {
	names := t.memory[t.names:t.units]
	switch {
	case at == 0 || uint64(at) >= uint64(len(names)):
		return 0
	case bytes.HasPrefix(names[at:], []byte(runtimePrefix)):
		return 1
	}
	return uint32(2 + len(runtimePrefix))
}

// replace puts bytes at the beginning of a place and zeros into the rest.
func replace(place, data []byte) { clear(place[copy(place, data):]) }

// record is what is kept of one function.
type record struct {
	fixed        [words]uint32
	tables, data []uint32
}

func readRecord(funcs []byte, at uint32) (*record, error) {
	f := &record{}
	if uint64(at)+4*words > uint64(len(funcs)) {
		return nil, errors.New("a function has no record")
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(funcs[int(at)+4*i:]) }
	for i := range f.fixed {
		f.fixed[i] = word(i)
	}
	tables, data := int(f.fixed[wordTables]), int(f.fixed[wordCounts]>>24)
	if tables > 16 || uint64(at)+uint64(4*(words+tables+data)) > uint64(len(funcs)) {
		return nil, errors.New("the record of a function is damaged")
	}
	for i := range tables {
		f.tables = append(f.tables, word(words+i))
	}
	for i := range data {
		f.data = append(f.data, word(words+tables+i))
	}
	return f, nil
}

func (f *record) size() uint64 { return uint64(4 * (words + len(f.tables) + len(f.data))) }

// drop leaves out what only tracebacks read.
func (f *record) drop(values *valueTables) error {
	var err error
	f.fixed[wordPCSP] = values.keep(f.fixed[wordPCSP], &err)
	for _, word := range []int{wordPCFile, wordPCLine, wordUnit, wordStartLine} {
		f.fixed[word] = 0
	}
	for i, at := range f.tables {
		switch i {
		case stackMapTable, inlineTable, boundsTable:
			f.tables[i] = values.keep(at, &err)
		default:
			f.tables[i] = 0
		}
	}
	for i := keptData; i < len(f.data); i++ {
		f.data[i] = none
	}
	f.tables, f.data = trim(f.tables, 0), trim(f.data, none)
	return err
}

// trim cuts off the last entries that stand for nothing.
func trim(list []uint32, nothing uint32) []uint32 {
	for len(list) > 0 && list[len(list)-1] == nothing {
		list = list[:len(list)-1]
	}
	return list
}

func (f *record) append(out []byte) []byte {
	f.fixed[wordTables] = uint32(len(f.tables))
	f.fixed[wordCounts] = f.fixed[wordCounts]&0xffffff | uint32(len(f.data))<<24
	for _, list := range [][]uint32{f.fixed[:], f.tables, f.data} {
		for _, word := range list {
			out = binary.LittleEndian.AppendUint32(out, word)
		}
	}
	return out
}

// valueTables are the tables that give a value for each place in a function,
// each a run of pairs that ends with a zero.
type valueTables struct {
	old, packed []byte
	at          map[string]uint32
}

// keep copies a table, once for all that are equal, and returns its new place.
func (v *valueTables) keep(at uint32, err *error) uint32 {
	if at == 0 {
		return 0
	}
	end := uint64(at)
	for first := true; ; first = false {
		if end >= uint64(len(v.old)) {
			*err = errors.New("a table of values has no end")
			return 0
		}
		if v.old[end] == 0 && !first {
			end++
			break
		}
		for range 2 { // the value's change, and how far it reaches
			_, n := binary.Uvarint(v.old[end:])
			end += uint64(max(n, 1))
		}
	}
	content := string(v.old[at:end])
	place, ok := v.at[content]
	if !ok {
		place = uint32(len(v.packed))
		v.at[content] = place
		v.packed = append(v.packed, content...)
	}
	return place
}
