package main

import (
	"errors"
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
// asked for.
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

// readAll returns what a record leads to, by where it says so.
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
