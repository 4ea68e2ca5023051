package main

import (
	"encoding/binary"
	"errors"
)

// Numbers of the sections of a module that are rewritten.
const (
	codeSection = 10
	dataSection = 11 // initialises memory
)

var errDamaged = errors.New("not a WebAssembly module as Go's linker writes it")

// preamble is how a module begins: a magic number and the version.
const preamble = "\x00asm\x01\x00\x00\x00"

// module is a module in sections.
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

// section returns the payload of the section of a number, nil if there is none.
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

func (m module) write() []byte {
	out := []byte(preamble)
	for _, s := range m {
		out = append(appendUint(append(out, s.id), uint64(len(s.payload))), s.payload...)
	}
	return out
}

func appendUint(out []byte, n uint64) []byte { return binary.AppendUvarint(out, n) }
