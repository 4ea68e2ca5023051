package main

import (
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addresses holds the function addresses found in a memory.
type addresses struct {
	functions   []int64         // numbers of the functions whose address is in memory outside descriptors
	descriptors map[int64]int64 // function number by address of its descriptor
}

// findAddresses looks for the addresses of functions in a memory outside their tables. A word that
// only looks like an address keeps a function that is not needed. There are addresses
//
//   - in descriptors, words that values of function type point to. The linker puts all of them
//     in a row, so an address in one does not show that its function is used: the address of the
//     descriptor must be in memory or in code;
//   - in other words, such as those of interfaces;
//   - by their high part alone, in the tables of types' methods. The linker omits the address of a
//     method that is called through no interface, unless other functions call the method; these
//     may themselves be dropped. All interfaces that methods of Go's runtime can belong to have
//     exported methods.
func (t *table) findAddresses(memory []byte) addresses {
	descriptors := t.findDescriptors(memory)
	a := addresses{descriptors: map[int64]int64{}}
	for at := descriptors.from; at < descriptors.to; at += 8 {
		a.descriptors[int64(at)] = t.numberAt(memory, at)
	}
	for at := 0; at+4 <= len(memory); at += 4 {
		if descriptors.has(at) || t.place.has(at) {
			continue
		}
		if number := t.numberAt(memory, at); at%8 == 0 && number >= 0 {
			a.functions = append(a.functions, number)
		}
		word := int64(binary.LittleEndian.Uint32(memory[at:]))
		if number, ok := a.descriptors[word]; ok {
			a.functions = append(a.functions, number)
		}
		if number := word - tableBase; number >= 0 && number < int64(len(t.called)) && inMethodTables(t.called[number]) {
			a.functions = append(a.functions, number)
		}
	}
	return a
}

// findDescriptors returns the longest row of addresses in a memory.
func (t *table) findDescriptors(memory []byte) (row span) {
	for at := 0; at < len(memory); at += 8 {
		from := at
		for !t.place.has(at) && t.numberAt(memory, at) >= 0 {
			at += 8
		}
		if at-from > row.to-row.from {
			row = span{from, at}
		}
	}
	return row
}

// numberAt returns the number of the function whose address is stored at offset i, or -1.
func (t *table) numberAt(memory []byte, at int) int64 {
	if at+8 > len(memory) {
		return -1
	}
	address := int64(binary.LittleEndian.Uint64(memory[at:]))
	number := address>>pcBits - tableBase
	if address&(1<<pcBits-1) != 0 || number < 0 || number >= int64(len(t.called)) {
		return -1
	}
	return number
}

// inMethodTables reports whether a function may be called through its offset in a method table.
func inMethodTables(name string) bool {
	if !strings.HasPrefix(name, runtimePrefix) {
		return true
	}
	first, _ := utf8.DecodeRuneInString(name[strings.LastIndexByte(name, '.')+1:])
	return unicode.IsUpper(first)
}
