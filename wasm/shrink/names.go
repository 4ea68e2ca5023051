package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
)

// Format of the function table, from Go's runtime/symtab.go and runtime2.go in the releases that
// layouts lists. Other releases are refused.
const (
	magic = "\xf1\xff\xff\xff\x00\x00\x01\x08" // followed by the sizes of an instruction and of a pointer

	// Fixed part of a function's record, in words of 4 bytes. The offsets of its pcdata tables and
	// of its funcdata follow.
	wordEntry, wordName, wordArguments  = 0, 1, 2
	wordDefer                           = 3
	wordPCSP, wordPCFile, wordPCLine    = 4, 5, 6
	wordTables, wordUnit, wordStartLine = 7, 8, 9
	wordCounts, words                   = 10, 11

	// Indices of the tables that are kept: those of the garbage collector. All others serve
	// tracebacks and asynchronous preemption, which WebAssembly lacks. recover reads the table of
	// inlined calls to find its caller, but a function that recovers is never inlined.
	stackMapTable, boundsTable = 1, 4
	inlineData                 = 3
	keptData                   = 5 // pointer maps, stack objects, inlined calls, deferred calls

	// Low bytes of the word of counts in the record of a function that Go's compiler made: function
	// ID 0 or that of a wrapper, and this flag clear.
	wrapperID, assemblyFlag = 23, 1 << 2 << 8

	none = ^uint32(0)

	// Smallest negative argument size, as 32 bits: the runtime takes the size from the pointer map.
	someArguments = 8
)

// Names that are kept. The runtime compares them with its own functions, and parses that of a
// method called through a nil pointer for its error message.
const (
	runtimePrefix = "runtime."
	otherName     = "go.(*T).f"
	packedNames   = "\x00" + runtimePrefix + "\x00" + otherName + "\x00"
)

// table is the function table in a memory, with the fields of its header.
type table struct {
	memory                                 []byte // from the header to the end
	functions, names, units, files, values uint64
	funcs                                  uint64
	end                                    uint64                  // address of the last record
	called                                 []string                // names of functions, by number
	records                                []*record               // records of functions, by number
	module                                 func(offset int) uint64 // address of the runtime's moduledata
	data                                   funcdata
	place                                  span // bytes of the table in memory, with funcdata and buckets
}

// readTable reads the function table of a program.
func readTable(memory []byte) (*table, error) {
	layout, err := layoutOf(runtime.Version())
	if err != nil {
		return nil, err
	}
	at := bytes.Index(memory, []byte(magic))
	if at < 0 || len(memory)-at < 72 {
		return nil, errors.New("the table of functions is missing")
	}
	t := &table{memory: memory[at:]}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(t.memory[8*i:]) }
	t.functions, t.names, t.units, t.files, t.values, t.funcs = field(1), field(4), field(5), field(6), field(7), field(8)
	size := uint64(len(t.memory))
	if t.names > t.units || t.units > t.files || t.files > t.values || t.values > t.funcs || t.funcs > size || t.functions > (size-t.funcs)/8 {
		return nil, errors.New("the table of functions is damaged")
	}
	if err := t.findModule(memory, layout); err != nil {
		return nil, err
	}
	return t, t.readRecords()
}

// findModule finds the runtime's moduledata.
func (t *table) findModule(memory []byte, layout moduleLayout) error {
	base := uint64(len(memory) - len(t.memory))
	begin := binary.LittleEndian.AppendUint64(nil, base)
	begin = binary.LittleEndian.AppendUint64(begin, base+t.names)
	at := bytes.Index(memory, begin)
	if at < 0 || at+layout.end+8 > len(memory) {
		return errors.New("the description of the module is missing")
	}
	t.module = func(offset int) uint64 { return binary.LittleEndian.Uint64(memory[at+offset:]) }
	data, buckets, end := t.module(layout.data), t.module(moduleBuckets), t.module(layout.end)
	if data > buckets || buckets > end || end > uint64(len(memory)) {
		return errors.New("the description of the module is damaged")
	}
	t.data, t.place = funcdata{memory: memory[data:buckets]}, span{int(base), int(end)}
	return nil
}

func (t *table) readRecords() error {
	funcs, tables := t.memory[t.funcs:], t.memory[t.values:t.funcs]
	for i := range t.functions {
		from := binary.LittleEndian.Uint32(funcs[8*i+4:])
		f, err := readRecord(funcs, from)
		if err != nil {
			return err
		}
		if err := f.readValues(tables); err != nil {
			return err
		}
		t.end = max(t.end, t.funcs+uint64(from)+f.size())
		t.called = append(t.called, t.name(f.fixed[wordName]))
		t.records = append(t.records, f)
	}
	t.data.add(t.records)
	return nil
}

// write packs the function records and the value tables they use, without names and source lines.
// It updates the offsets in the records and in the index, so both can move.
func (t *table) write() error {
	for _, f := range t.records {
		f.dropData()
	}
	if err := t.data.pack(t.records); err != nil {
		return err
	}
	tables := contents{}
	for _, f := range t.records {
		for _, v := range []values{f.sp, f.maps, f.bounds} {
			if v != nil {
				tables.add(v.content())
			}
		}
	}
	packed := tables.pack([]byte{0}, 1) // offset 0 means no table
	funcs := t.memory[t.funcs:]
	index := funcs[:8*t.functions]
	first := binary.LittleEndian.Uint32(index[4:])
	var records []byte
	for i, f := range t.records {
		binary.LittleEndian.PutUint32(index[8*i+4:], first+uint32(len(records)))
		f.fixed[wordName] = t.rename(f.fixed[wordName])
		f.drop(tables)
		records = f.append(records)
	}
	replace(funcs[first:t.end-t.funcs], records)
	replace(t.memory[t.values:t.funcs], packed)
	replace(t.memory[t.names:t.units], []byte(packedNames))
	replace(t.memory[t.units:t.values], nil) // file names, by compilation unit
	return nil
}

// forget removes all of a function that is never called but its address and name.
func (t *table) forget(numbers []int) {
	for _, number := range numbers {
		old := t.records[number].fixed
		t.records[number] = &record{fixed: [words]uint32{wordEntry: old[wordEntry], wordName: old[wordName], wordCounts: old[wordCounts]}}
	}
}

// name returns the name at an offset.
func (t *table) name(at uint32) string {
	names := t.memory[t.names:t.units]
	if uint64(at) >= uint64(len(names)) {
		return ""
	}
	name, _, _ := bytes.Cut(names[at:], []byte{0})
	return string(name)
}

// rename returns the new offset of a function's shortened name.
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

// replace writes b to the start of a range and zeros to the rest.
func replace(place, data []byte) { clear(place[copy(place, data):]) }
