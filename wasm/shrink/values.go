package main

import (
	"encoding/binary"
	"errors"
)

// values is a table of one value per place of a function, stored as runs of equal values.
type values []valueRun

type valueRun struct {
	value int32
	end   int64 // end of the run
}

// noValue is the value before the first change of a table.
const noValue = -1

// readValues decodes the table at the start of data: pairs of a change of the value and a number of
// places, up to a zero that is not the first change.
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

// append appends the encoded table to b.
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

// content returns the encoded table.
func (v values) content() string { return string(v.append(nil)) }

// at returns the value at a place.
func (v values) at(place int64) int32 {
	for _, r := range v {
		if place < r.end {
			return r.value
		}
	}
	return noValue
}

// max returns the largest value.
func (v values) max() int32 {
	most := int32(noValue)
	for _, r := range v {
		most = max(most, r.value)
	}
	return most
}

// fillValues returns a table with given values at some places up to last, each extended to the next
// given one, and padded so that its maximum is most. Few distinct lengths make more tables equal.
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
