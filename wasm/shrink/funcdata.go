package main

import (
	"errors"
	"maps"
	"slices"
)

// funcdata is the data of function records besides value tables: maps of live pointers, stack
// objects, and data that only tracebacks read. Functions share equal entries.
type funcdata struct {
	memory []byte
	places []uint32 // sorted offsets of the entries
}

// dataAlignment is the alignment of packed entries, that of the words that stack objects begin
// with. WebAssembly requires none, but offsets with equal low bits compress better.
const dataAlignment = 8

var errFuncdata = errors.New("the data of a function is damaged")

// add records the offsets that function records refer to.
func (d *funcdata) add(records []*record) {
	for _, r := range records {
		for _, at := range r.data {
			if at != none {
				d.places = append(d.places, at)
			}
		}
	}
	slices.Sort(d.places)
	d.places = slices.Compact(d.places)
}

// read returns the entry at an offset, which ends where the next one begins.
func (d *funcdata) read(at uint32) ([]byte, error) {
	end := uint32(len(d.memory))
	if i, _ := slices.BinarySearch(d.places, at+1); i < len(d.places) {
		end = d.places[i]
	}
	if at > end || end > uint32(len(d.memory)) {
		return nil, errFuncdata
	}
	return d.memory[at:end], nil
}

// pack writes the entries that records still refer to. Of the maps of live pointers it keeps those
// that the collector can request.
func (d *funcdata) pack(records []*record) error {
	lists, all := make([][]string, len(records)), contents{}
	for i, r := range records {
		var err error
		if lists[i], err = d.readAll(r); err != nil {
			return err
		}
		for j, content := range lists[i] {
			if r.data[j] != none {
				all.add(content)
			}
		}
	}
	packed := all.pack(nil, dataAlignment)
	if len(packed) > len(d.memory) {
		return errFuncdata
	}
	for i, r := range records {
		for j, content := range lists[i] {
			if r.data[j] != none {
				r.data[j] = all[content]
			}
		}
	}
	replace(d.memory, packed)
	return nil
}

// readAll returns the entries of a record, keyed by the position of their offset in the record.
func (d *funcdata) readAll(r *record) ([]string, error) {
	asked := r.orderMaps()
	list := make([]string, len(r.data))
	for i, at := range r.data {
		if at == none {
			continue
		}
		content, err := d.read(at)
		if err == nil && (i == argumentMaps || i == localMaps) {
			content, err = pickMaps(content, asked)
		}
		if err != nil {
			return nil, err
		}
		list[i] = string(content)
	}
	return list, nil
}

// contents holds the distinct byte strings that function records refer to.
type contents map[string]uint32

// add records a byte string to pack.
func (c contents) add(content string) { c[content] = 0 }

// pack appends the byte strings to begin, each aligned, and returns the result. The strings are
// sorted, which compresses better than the order of the records.
func (c contents) pack(begin []byte, alignment int) []byte {
	packed := begin
	for _, content := range slices.Sorted(maps.Keys(c)) {
		for len(packed)%alignment != 0 {
			packed = append(packed, 0)
		}
		c[content] = uint32(len(packed))
		packed = append(packed, content...)
	}
	return packed
}
