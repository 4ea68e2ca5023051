package main

import (
	"encoding/binary"
	"errors"
)

// record is the retained data of one function.
type record struct {
	fixed        [words]uint32
	tables, data []uint32

	sp, maps, bounds values // the frame's depth, and the index of the map of live pointers
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

// readValues reads the value tables that are kept.
func (f *record) readValues(all []byte) (err error) {
	read := func(at uint32) (v values) {
		switch {
		case at == 0 || err != nil:
		case uint64(at) >= uint64(len(all)):
			err = errors.New("a function has no table of values")
		default:
			v, err = readValues(all[at:])
		}
		return v
	}
	f.sp = read(f.fixed[wordPCSP])
	for i, at := range f.tables {
		switch i {
		case stackMapTable:
			f.maps = read(at)
		case boundsTable:
			f.bounds = read(at)
		}
	}
	return err
}

// regular reports whether Go's compiler made the function and it has only the tables of its frame.
func (f *record) regular() bool {
	id := f.fixed[wordCounts] & 0xff
	return (id == 0 || id == wrapperID) && f.fixed[wordCounts]&assemblyFlag == 0 && f.sp != nil && f.bounds == nil
}

// drop removes value tables that only tracebacks read, given their offsets.
func (f *record) drop(tables contents) {
	place := func(v values) uint32 {
		if v == nil {
			return 0
		}
		return tables[v.content()]
	}
	f.fixed[wordPCSP] = place(f.sp)
	f.fixed[wordArguments] = uint32(min(int32(f.fixed[wordArguments]), someArguments))
	for _, word := range []int{wordPCFile, wordPCLine, wordUnit, wordStartLine} {
		f.fixed[word] = 0
	}
	f.tables = trim([]uint32{stackMapTable: place(f.maps), boundsTable: place(f.bounds)}, 0)
}

// dropData removes funcdata that only tracebacks read.
func (f *record) dropData() {
	for i := range f.data {
		if i == inlineData || i >= keptData {
			f.data[i] = none
		}
	}
	f.data = trim(f.data, none)
}

// trim removes trailing entries that are empty.
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
