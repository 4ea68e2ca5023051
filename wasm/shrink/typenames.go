package main

import (
	"encoding/binary"
	"slices"
	"strings"
)

// nameFlags are the bits that may be set in the first byte of a name, from Go's
// internal/abi/type.go: exported, followed by a tag, followed by a package path, embedded. The
// length as a varint and the text follow.
const nameFlags = 0x0f

// composites are the prefixes of the names of unnamed types. The star is stored in the name of
// every type, pointer or not.
var composites = []string{"*struct {", "*func(", "*[", "*map[", "*map.group["}

// blankTypeNames overwrites the names of unnamed types with zeros. Each closure and map has
// several. A panic prints only the names of declared types; the others are read only by programs
// that print them or build types with package reflect.
func blankTypeNames(memory []byte) {
	for at := 0; at+2 < len(memory); at++ {
		if memory[at]&^nameFlags != 0 {
			continue
		}
		size, n := binary.Uvarint(memory[at+1:])
		if from := at + 1 + n; n > 0 && size <= uint64(len(memory)-from) && isComposite(memory[from:][:size]) {
			clear(memory[from:][:size])
			at = from + int(size) - 1
		}
	}
}

// isComposite reports whether s is the name of an unnamed type.
func isComposite(text []byte) bool {
	if len(text) == 0 || text[0] != '*' || slices.ContainsFunc(text, func(c byte) bool { return c < ' ' }) {
		return false
	}
	return slices.ContainsFunc(composites, func(begin string) bool { return strings.HasPrefix(string(text), begin) })
}
