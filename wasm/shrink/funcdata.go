package main

import (
	"maps"
	"slices"
)

// funcdata is what the records of functions lead to besides tables of values: maps of live
// pointers, stack objects, and what only tracebacks read. Functions share what is equal.
type funcdata struct {
	memory []byte
	kept   map[uint32]bool // by place in memory, all that there is
}

// add notes the places that a function's record leads to.
func (d *funcdata) add(places []uint32) {
	for _, at := range places {
		if at != none && !d.kept[at] {
			d.kept[at] = false
		}
	}
}

// keep notes those that it still leads to.
func (d *funcdata) keep(places []uint32) {
	for _, at := range places {
		if at != none {
			d.kept[at] = true
		}
	}
}

// clear clears what no function keeps: from its place to the next.
func (d *funcdata) clear() {
	places := slices.Sorted(maps.Keys(d.kept))
	for i, at := range places {
		end := uint32(len(d.memory))
		if i+1 < len(places) {
			end = places[i+1]
		}
		if !d.kept[at] && at <= end && end <= uint32(len(d.memory)) {
			clear(d.memory[at:end])
		}
	}
}
