package main

import (
	"encoding/binary"
	"slices"
)

// What is known of maps of live pointers, from Go's runtime/stkframe.go: a record leads to those
// of arguments and to those of local variables, of which its table of values gives one number
// for both. They begin with two words of 4 bytes, how many there are and how many bits one has.
const (
	argumentMaps, localMaps = 0, 1
	mapsHeader              = 8
)

// orderMaps numbers the maps that a function's table of values asks for as they come there, and
// returns their old numbers. The first one stays: the runtime takes it where the table has no
// value. Go's compiler numbers all that it made, also for places that renumber forgot.
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

// pickMaps returns some of the maps of a function, given their numbers.
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
