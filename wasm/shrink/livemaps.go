package main

import (
	"encoding/binary"
	"slices"
)

// Format of the maps of live pointers, from Go's runtime/stkframe.go. A record refers to a map of
// the arguments and one of the local variables; its value table holds one number for both. Each map
// begins with two words of 4 bytes: the number of bitmaps and the number of bits in one.
const (
	argumentMaps, localMaps = 0, 1
	mapsHeader              = 8
)

// orderMaps renumbers the maps that a function's value table uses in the order of their first use,
// and returns their old numbers. The first map keeps its number: the runtime uses it where the
// table has no value. Go's compiler also numbers maps of places that renumber removed.
func (f *record) orderMaps() (asked []int32) {
	asked = []int32{0}
	for i, run := range f.maps {
		if run.value == noValue {
			continue
		}
		number := slices.Index(asked, run.value)
		if number < 0 {
			number = len(asked)
			asked = append(asked, run.value)
		}
		f.maps[i].value = int32(number)
	}
	return asked
}

// pickMaps returns the maps of a function with the given numbers.
func pickMaps(all []byte, numbers []int32) ([]byte, error) {
	if len(all) < mapsHeader {
		return nil, errFuncdata
	}
	bits := binary.LittleEndian.Uint32(all[4:])
	size := (uint64(bits) + 7) / 8
	picked := binary.LittleEndian.AppendUint32(nil, uint32(len(numbers)))
	picked = binary.LittleEndian.AppendUint32(picked, bits)
	for _, number := range numbers {
		from := mapsHeader + size*uint64(number)
		if number < 0 || from+size > uint64(len(all)) {
			return nil, errFuncdata
		}
		picked = append(picked, all[from:from+size]...)
	}
	return picked, nil
}
