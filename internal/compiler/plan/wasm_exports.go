package plan

import "encoding/binary"

// Section, kind and type codes of the WebAssembly binary format
// (https://webassembly.github.io/spec/core/binary/modules.html).
const (
	codeHeader = "\x00asm\x01\x00\x00\x00"

	codeTypes     = 1
	codeImports   = 2
	codeFunctions = 3
	codeExports   = 7

	codeFunction = 0 // the kind of an import or export
	codeTable    = 1
	codeMemory   = 2
	codeGlobal   = 3

	codeFunctionType = 0x60
	codeI32          = 0x7f
)

// notKernel is the parameter count of a function that cannot be a kernel: it has results,
// or parameters of other types than i32.
const notKernel = -1

// gridParams is the number of extra parameters of a kernel of several workgroups:
// the first workgroup, the end, and the address of workgroup memory.
const gridParams = 3

// kernelParams returns the parameter count, or notKernel, of each function that a module
// exports, by name. It does not read the code of functions. It returns nil for an invalid
// module.
func kernelParams(module []byte) map[string]int {
	if len(module) < len(codeHeader) || string(module[:len(codeHeader)]) != codeHeader {
		return nil
	}
	m := codeModule{}
	for r := (codeReader{rest: module[len(codeHeader):]}); len(r.rest) > 0; {
		id := r.byte()
		section := codeReader{rest: r.take(r.number())}
		switch id {
		case codeTypes:
			m.types(&section)
		case codeImports:
			m.imports(&section)
		case codeFunctions:
			section.list(func() { m.functions = append(m.functions, m.paramsOf(section.number())) })
		case codeExports:
			m.exports(&section)
		}
		if r.failed || section.failed {
			return nil
		}
	}
	return m.exported
}

// codeModule holds the parsed sections of a module.
type codeModule struct {
	params    []int // by function type: the parameter count or notKernel
	functions []int // by function, imported ones first: the same
	exported  map[string]int
}

func (m *codeModule) paramsOf(index int) int {
	if index < 0 || index >= len(m.params) {
		return notKernel
	}
	return m.params[index]
}

func (m *codeModule) types(r *codeReader) {
	r.list(func() {
		r.failed = r.failed || r.byte() != codeFunctionType
		n := 0
		r.list(func() {
			if r.byte() != codeI32 {
				n = notKernel
			} else if n != notKernel {
				n++
			}
		})
		r.list(func() { r.byte(); n = notKernel })
		m.params = append(m.params, n)
	})
}

func (m *codeModule) imports(r *codeReader) {
	r.list(func() {
		r.text()
		r.text()
		switch r.byte() {
		case codeFunction:
			m.functions = append(m.functions, m.paramsOf(r.number()))
		case codeTable:
			r.byte()
			r.limits()
		case codeMemory:
			r.limits()
		case codeGlobal:
			r.take(2)
		default:
			r.failed = true
		}
	})
}

func (m *codeModule) exports(r *codeReader) {
	m.exported = map[string]int{}
	r.list(func() {
		name, kind, index := r.text(), r.byte(), r.number()
		n := notKernel
		if kind == codeFunction && index >= 0 && index < len(m.functions) {
			n = m.functions[index]
		}
		m.exported[name] = n
	})
}

// codeReader reads a module. After a failure it returns zeros.
type codeReader struct {
	rest   []byte
	failed bool
}

func (r *codeReader) take(n int) []byte {
	if r.failed || n < 0 || n > len(r.rest) {
		r.failed = true
		return nil
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *codeReader) byte() byte {
	if b := r.take(1); !r.failed {
		return b[0]
	}
	return 0
}

// number reads an unsigned number of 32 bits.
func (r *codeReader) number() int {
	x, n := binary.Uvarint(r.rest)
	if n <= 0 || x > 1<<31-1 {
		r.failed = true
		return 0
	}
	r.take(n)
	return int(x)
}

func (r *codeReader) text() string { return string(r.take(r.number())) }

// list reads a count and calls item for each item, which has at least one byte.
func (r *codeReader) list(item func()) {
	for n := r.number(); n > 0 && !r.failed; n-- {
		item()
	}
}

// limits reads the sizes of a memory or table.
func (r *codeReader) limits() {
	bounded := r.byte()&1 != 0
	r.number()
	if bounded {
		r.number()
	}
}

// code checks that the module of a plan exports the kernel of a dispatch with the
// parameters that the dispatch passes.
func (v *validator) code(k *Kernel, d *Dispatch) *FormatError {
	if v.p.Code == nil {
		return nil
	}
	want := len(k.Storage) + k.Counters
	if k.ScalarBytes > 0 {
		want++
	}
	if d.Groups[0] > 1 {
		want += gridParams
	}
	if got, found := v.exported[k.Source]; !found || got != want {
		return invalid(45, "the code exports no function %q of %d parameters of type i32", k.Source, want)
	}
	return nil
}
