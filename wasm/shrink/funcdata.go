package main

import (
	"errors"
	"maps"
	"slices"
)

// funcdata is what the records of functions lead to besides tables of values: maps of live
// pointers, stack objects, and what only tracebacks read. Functions share what is equal.
type funcdata struct {
	memory []byte
	places []uint32 // where something begins, in order
}

// dataAlignment is of the places that are given anew: that of words, which stack objects begin
// with. WebAssembly asks for none, but places with equal low bits compress better.
const dataAlignment = 8

var errFuncdata = errors.New("the data of a function is damaged")

// add notes the places that records lead to.
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

// read returns what begins at a place: up to the next one.
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

// pack writes what records still lead to, of the maps of live pointers those alone that are
// asked for. Sorted by content it compresses best, better than by who leads there first.
func (d *funcdata) pack(records []*record) error {
	contents := make([][]string, len(records)) // of their data
	at := map[string]uint32{}
	for i, r := range records {
		var err error
		if contents[i], err = d.contents(r); err != nil {
			return err
		}
		for _, content := range contents[i] {
			at[content] = none
		}
	}
	delete(at, "")
	var packed []byte
	for _, content := range slices.Sorted(maps.Keys(at)) {
		packed = append(packed, make([]byte, -len(packed)&(dataAlignment-1))...)
		at[content] = uint32(len(packed))
		packed = append(packed, content...)
	}
	if len(packed) > len(d.memory) {
		return errFuncdata
	}
	at[""] = none
	for i, r := range records {
		for j, content := range contents[i] {
			r.data[j] = at[content]
		}
	}
	replace(d.memory, packed)
	return nil
}

// contents returns what a record leads to, "" where that is nothing.
func (d *funcdata) contents(r *record) ([]string, error) {
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
