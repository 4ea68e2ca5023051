package main

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Numbers of the sections that are rewritten.
const (
	customSection   = 0
	typeSection     = 1
	importSection   = 2
	functionSection = 3 // types of functions
	exportSection   = 7
	startSection    = 8 // the start function
	codeSection     = 10
	dataSection     = 11 // initial contents of memory
)

var errDamaged = errors.New("not a WebAssembly module as Go's linker writes it")

// preamble is the start of a module: a magic number and the version.
const preamble = "\x00asm\x01\x00\x00\x00"

// module is a module divided into sections.
type module []section

type section struct {
	id      byte
	payload []byte
}

func readModule(data []byte) (module, error) {
	if len(data) < len(preamble) || string(data[:len(preamble)]) != preamble {
		return nil, errDamaged
	}
	var m module
	for r := (&reader{data: data[len(preamble):]}); len(r.data) > 0; {
		m = append(m, section{r.byte(), r.take(uint64(r.unsigned()))})
		if r.err != nil {
			return nil, r.err
		}
	}
	return m, nil
}

// section returns the payload of the section with the given number, nil if there is none.
func (m module) section(id byte) []byte {
	for _, s := range m {
		if s.id == id {
			return s.payload
		}
	}
	return nil
}

func (m module) replace(id byte, payload []byte) {
	for i := range m {
		if m[i].id == id {
			m[i].payload = payload
		}
	}
}

// addStart adds a function without parameters and results that runs when the module is
// instantiated, before Go's runtime does.
func (m *module) addStart(f *function) error {
	functionType := []byte{0x60, 0, 0}
	typeNumber, err := m.appendEntry(typeSection, functionType)
	if err != nil {
		return err
	}
	number, err := m.appendEntry(functionSection, appendUint(nil, typeNumber))
	if err != nil {
		return err
	}
	body := f.write()
	if _, err := m.appendEntry(codeSection, append(appendUint(nil, uint64(len(body))), body...)); err != nil {
		return err
	}
	imports, size := binary.Uvarint(m.section(importSection)) // all imports are functions
	exports := slices.IndexFunc(*m, func(s section) bool { return s.id == exportSection })
	if size <= 0 || exports < 0 {
		return errDamaged
	}
	*m = slices.Insert(*m, exports+1, section{startSection, appendUint(nil, imports+number)})
	return nil
}

// appendEntry adds an entry to a section that is a list, and returns its index.
func (m module) appendEntry(id byte, entry []byte) (uint64, error) {
	payload := m.section(id)
	count, size := binary.Uvarint(payload)
	if size <= 0 {
		return 0, errDamaged
	}
	m.replace(id, slices.Concat(appendUint(nil, count+1), payload[size:], entry))
	return count, nil
}

func (m module) write() []byte {
	out := []byte(preamble)
	for _, s := range m {
		out = append(appendUint(append(out, s.id), uint64(len(s.payload))), s.payload...)
	}
	return out
}

func appendUint(out []byte, n uint64) []byte { return binary.AppendUvarint(out, n) }
