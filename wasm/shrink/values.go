package main

import (
	"encoding/binary"
	"errors"
)

// values are a table that gives a value for each place in a function: runs of places with
// one value.
type values []valueRun

type valueRun struct {
	value int32
	end   int64 // the first place behind it
}

// noValue is what a table begins with.
const noValue = -1

// readValues reads a table at the beginning of data: pairs of how much the value changes
// and how many places have it, up to a zero that is not the first change.
func readValues(data []byte) (values, error) {
	var table values
	value, place := int32(noValue), int64(0)
	for {
		change, n := binary.Uvarint(data)
		if n > 0 && change == 0 && len(table) > 0 {
			return table, nil
		}
		length, m := binary.Uvarint(data[max(n, 0):])
		if n <= 0 || m <= 0 {
			return nil, errors.New("a table of values has no end")
		}
		value += int32(-(change & 1) ^ change>>1)
		place += int64(length)
		table = append(table, valueRun{value, place})
		data = data[n+m:]
	}
}

// append writes a table.
func (v values) append(out []byte) []byte {
	value, place := int32(noValue), int64(0)
	for _, r := range v {
		change := r.value - value
		out = binary.AppendUvarint(out, uint64(uint32(change<<1^change>>31)))
		out = binary.AppendUvarint(out, uint64(r.end-place))
		value, place = r.value, r.end
	}
	return append(out, 0)
}

// content returns what append writes.
func (v values) content() string { return string(v.append(nil)) }

// at returns the value for a place.
func (v values) at(place int64) int32 {
	for _, r := range v {
		if place < r.end {
			return r.value
		}
	}
	return noValue
}

// max returns the greatest value.
func (v values) max() int32 {
	most := int32(noValue)
	for _, r := range v {
		most = max(most, r.value)
	}
	return most
}

// fillValues returns a table with given values for some places up to the last one, each up
// to the next one that is given, and with a value somewhere that is as great as most. Few
// lengths make equal tables.
func fillValues(given map[int64]int32, last int64, most int32) values {
	var table values
	for place := range last + 1 {
		value, ok := given[place]
		switch n := len(table); {
		case !ok:
		case n > 0 && table[n-1].value == value:
		default:
			if n > 0 {
				table[n-1].end = place
			}
			table = append(table, valueRun{value: value})
		}
	}
	if max(table.max(), most) == noValue {
		return nil // it says nothing
	}
	if table.max() < most {
		table[len(table)-1].end = last + 1
		table = append(table, valueRun{value: most})
	}
	end := int64(1)<<7 - 1
	if last >= end-1 {
		end = 1 << pcBits
	}
	table[len(table)-1].end = end
	return table
}
