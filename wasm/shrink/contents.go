package main

import (
	"maps"
	"slices"
)

// contents are the places of byte strings that records of functions lead to, each once.
type contents map[string]uint32

// add notes one that is to be packed.
func (c contents) add(content string) { c[content] = 0 }

// pack gives each a place behind what begin has, a multiple of an alignment, and returns all.
// Sorted they compress better than in the order in which records lead to them.
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
