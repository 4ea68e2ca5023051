package main

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// name is a name as Go's linker writes it.
func name(flags byte, text string) []byte {
	return append(binary.AppendUvarint([]byte{flags}, uint64(len(text))), text...)
}

func TestNamesOfCompositeTypesAreBlanked(t *testing.T) {
	long := "*struct { F uintptr; X0 " + strings.Repeat("*", 200) + "int }"
	blanked := []string{"*struct { F uintptr; X0 int }", "*func(int) []int", "*[8]struct { key int; elem bool }", "*[]string", "*map[string]int", "*map.group[int]bool", long}
	kept := []string{"*main.T", "*runtime.Error", "get", "key", "*", ""}
	var memory, want []byte
	for i, text := range append(append([]string{}, blanked...), kept...) {
		flags := byte(i % 2)
		memory = append(memory, name(flags, text)...)
		if i < len(blanked) {
			text = string(make([]byte, len(text)))
		}
		want = append(want, name(flags, text)...)
	}
	// Not names: a text of another length than is stated, and one within a name.
	others := append(name(0, "*func(int)\x01"), "as in *func(int) and *[]string"...)
	memory, want = append(memory, others...), append(want, others...)
	if blankTypeNames(memory); !bytes.Equal(memory, want) {
		t.Errorf("%q, want %q", memory, want)
	}
	blankTypeNames(memory[:0])
	blankTypeNames([]byte{0, 200}) // a name that is cut
}
