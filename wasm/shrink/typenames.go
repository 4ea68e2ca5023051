package main

import (
	"encoding/binary"
	"slices"
	"strings"
)

// nameFlags are the bits that the first byte of a name may have set, from Go's
// internal/abi/type.go: exported, followed by a tag, by a package's path, and embedded. The
// length follows as a variable integer, then the text.
const nameFlags = 0x0f

// composites are what the names of types begin with that are made of others and declared
// nowhere. The star is there for types, too, that are no pointers.
var composites = []string{"*struct {", "*func(", "*[", "*map[", "*map.group["}

// blankTypeNames leaves zeros for the names of composite types. A closure and a map have some
// each. What a program panics with names declared types, as an error that it converts; that
// of composites reads only who prints one or has package reflect make a type of them.
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

// isComposite reports whether a text is a name of a composite type.
func isComposite(text []byte) bool {
	if len(text) == 0 || text[0] != '*' || slices.ContainsFunc(text, func(c byte) bool { return c < ' ' }) {
		return false
	}
	return slices.ContainsFunc(composites, func(begin string) bool { return strings.HasPrefix(string(text), begin) })
}
