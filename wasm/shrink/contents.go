package main

import (
	"maps"
	"slices"
)

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
