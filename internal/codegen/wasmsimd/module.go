package wasmsimd

import "encoding/binary"

// Section codes of a module.
const (
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionExport   = 7
	sectionCode     = 10
)

// Kinds of imports and exports.
const (
	kindFunction = 0
	kindMemory   = 2
)

// boundedMemory is the flag of an imported memory with a maximum size, here maxPages,
// the largest possible. A host that shares the memory among threads also sets bit 1.
const (
	boundedMemory = 1
	maxPages      = 1 << 16
)

// moduleHeader is the magic number and the version of the binary format.
const moduleHeader = "\x00asm\x01\x00\x00\x00"

// Link returns the module of some kernels, printed by [Printer.Print]: it
// exports kernel i as "k"+i in decimal and imports its memory as "rlx" "memory"
// and, where kernels call them, functions of "Math".
func Link(sources []string) []byte {
	l := linker{types: map[string]uint64{}}
	var functions, exports, code []byte
	bodies := make([]string, len(sources))
	for i, source := range sources {
		params, n := binary.Uvarint([]byte(source))
		l.math = l.math || source[n] != 0
		functions = appendUnsigned(functions, l.typeOf(int(params), typeI32, nil))
		bodies[i] = source[n+1:]
	}
	imports := l.imports()
	first := 0
	if l.math {
		first = len(mathNames)
	}
	for i, body := range bodies {
		exports = appendText(exports, KernelName(i))
		exports = appendUnsigned(append(exports, kindFunction), uint64(first+i))
		code = appendText(code, body)
	}
	count := func(content []byte) []byte { return append(appendUnsigned(nil, uint64(len(sources))), content...) }
	out := []byte(moduleHeader)
	for _, s := range []struct {
		id      byte
		content []byte
	}{
		{sectionType, append(appendUnsigned(nil, uint64(len(l.types))), l.typeSection...)},
		{sectionImport, imports},
		{sectionFunction, count(functions)},
		{sectionExport, count(exports)},
		{sectionCode, count(code)},
	} {
		out = appendUnsigned(append(out, s.id), uint64(len(s.content)))
		out = append(out, s.content...)
	}
	return out
}

// linker collects the types of functions.
type linker struct {
	types       map[string]uint64 // numbers, by encoding
	typeSection []byte
	math        bool
}

// typeOf returns the number of the type of functions with n parameters of type
// t and the given results.
func (l *linker) typeOf(n int, t valueType, results []valueType) uint64 {
	b := appendUnsigned([]byte{0x60}, uint64(n))
	for range n {
		b = append(b, byte(t))
	}
	b = appendUnsigned(b, uint64(len(results)))
	for _, r := range results {
		b = append(b, byte(r))
	}
	number, known := l.types[string(b)]
	if !known {
		number = uint64(len(l.types))
		l.types[string(b)] = number
		l.typeSection = append(l.typeSection, b...)
	}
	return number
}

// imports returns the import section. Functions come first, so that their
// numbers are those of [mathCalls].
func (l *linker) imports() []byte {
	n := 1
	var b []byte
	if l.math {
		n += len(mathNames)
		for i, name := range mathNames {
			operands := 1
			if i >= firstBinaryCall {
				operands = 2
			}
			b = appendText(appendText(b, "Math"), name)
			b = appendUnsigned(append(b, kindFunction), l.typeOf(operands, typeF64, []valueType{typeF64}))
		}
	}
	b = appendText(appendText(b, "rlx"), "memory")
	b = appendUnsigned(append(b, kindMemory, boundedMemory, 0), maxPages)
	return append(appendUnsigned(nil, uint64(n)), b...)
}
