package main

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Opcodes of WebAssembly that the passes read or emit.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opI32Load      = 0x28
	opFirstLoad    = opI32Load
	opI64Load      = 0x29
	opLastLoad     = 0x35
	opI32Store     = 0x36
	opFirstStore   = opI32Store
	opI64Store     = 0x37
	opLastStore    = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eqz       = 0x45
	opI32LtU       = 0x49
	opI64Eqz       = 0x50
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32DivU      = 0x6e
	opI32ShrU      = 0x76
	opI64Add       = 0x7c
	opI32WrapI64   = 0xa7
	opI64ExtendU   = 0xad
	opLastNumeric  = 0xc4
	opPrefixed     = 0xfc

	emptyBlock = -64 // type of a block without parameters and results
	valueI64   = 0x7e
	valueI32   = 0x7f
)

// instr is one instruction. a and b are its immediates in the order of the binary format: alignment
// and offset of a load or store, the second opcode of a prefixed instruction. labels are those of a
// br_table, the default last.
type instr struct {
	op     byte
	a, b   int64
	labels []uint32
}

// is reports whether an instruction has the given opcode and first immediate.
func (i instr) is(op byte, a int64) bool { return i.op == op && i.a == a }

// readBodies returns the bodies of the functions of a code section.
func readBodies(payload []byte) ([][]byte, error) {
	r := &reader{data: payload}
	var bodies [][]byte
	for n := r.unsigned(); n > 0 && r.err == nil; n-- {
		bodies = append(bodies, r.take(uint64(r.unsigned())))
	}
	return bodies, r.err
}

// writeBodies returns a code section.
func writeBodies(bodies [][]byte) []byte {
	out := appendUint(nil, uint64(len(bodies)))
	for _, body := range bodies {
		out = append(appendUint(out, uint64(len(body))), body...)
	}
	return out
}

// rewriteCode shortens functions and renumbers the places in them.
func rewriteCode(m module, bodies [][]byte, functions *table) error {
	imports, size := binary.Uvarint(m.section(importSection)) // all imports are functions
	if size <= 0 {
		return errDamaged
	}
	trap := slices.Index(functions.called, "runtime.sigpanic") + int(imports)
	read := make([]*function, len(bodies))
	for number, body := range bodies {
		var err error
		if read[number], err = readFunction(body); err != nil {
			return err
		}
	}
	push, err := callees(m, read, int(imports))
	if err != nil {
		return err
	}
	for number, f := range read {
		if !f.isGo() {
			continue
		}
		f.straightenJumps()
		record := functions.records[number]
		if push[number] {
			f.renumber(record, baseOf(number), int64(trap))
		}
		f.returnAtUnwinding()
		f.dropBlocks()
		f.endPanics(func(callee int64) bool { return panics(functions.called[callee-int64(imports)]) })
		f.foldOffsets()
		f.shorten()
		f.passAddresses(baseOf(number), func(callee int64) bool { return callee >= int64(imports) && push[callee-int64(imports)] })
		f.shareAddress(number, record.fixed[wordDefer] == 0)
		if push[number] {
			f.pushOnEntry()
		}
		bodies[number] = f.write()
	}
	return nil
}

// function is the body of a function.
type function struct {
	locals []localGroup
	body   []instr
}

// localGroup is a run of local variables of one type.
type localGroup struct {
	count uint64
	kind  byte
}

// reader decodes the binary format. A read past the end returns 0 and sets err.
type reader struct {
	data []byte
	err  error
}

func (r *reader) byte() byte {
	if len(r.data) == 0 {
		r.err = errDamaged
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.err, r.data = errDamaged, nil
		return nil
	}
	taken := r.data[:n]
	r.data = r.data[n:]
	return taken
}

func (r *reader) unsigned() int64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.err, r.data = errDamaged, nil
		return 0
	}
	r.data = r.data[size:]
	return int64(n)
}

func (r *reader) signed() int64 {
	n, size := signed(r.data)
	if size <= 0 {
		r.err, r.data = errDamaged, nil
		return 0
	}
	r.data = r.data[size:]
	return n
}

// readFunction decodes the body of a function.
func readFunction(data []byte) (*function, error) {
	r, f := &reader{data: data}, &function{}
	for n := r.unsigned(); n > 0 && r.err == nil; n-- {
		f.locals = append(f.locals, localGroup{uint64(r.unsigned()), r.byte()})
	}
	for len(r.data) > 0 {
		f.body = append(f.body, r.instr())
	}
	return f, r.err
}

func (r *reader) instr() instr {
	i := instr{op: r.byte()}
	switch op := i.op; {
	case op == opBlock, op == opLoop, op == opIf, op == opI32Const, op == opI64Const:
		i.a = r.signed()
	case op == opBr, op == opBrIf, op == opCall, op >= opLocalGet && op <= opGlobalSet, op == opMemorySize, op == opMemoryGrow:
		i.a = r.unsigned()
	case op == opCallIndirect, op >= opFirstLoad && op <= opLastStore:
		i.a, i.b = r.unsigned(), r.unsigned()
	case op == opBrTable:
		for n := r.unsigned(); n >= 0 && r.err == nil; n-- {
			i.labels = append(i.labels, uint32(r.unsigned()))
		}
	case op == opF32Const:
		if bits := r.take(4); bits != nil {
			i.a = int64(binary.LittleEndian.Uint32(bits))
		}
	case op == opF64Const:
		if bits := r.take(8); bits != nil {
			i.a = int64(binary.LittleEndian.Uint64(bits))
		}
	case op == opPrefixed:
		i.a = r.unsigned()
		if n, ok := memoryOperands(i.a); ok {
			r.take(n)
		} else {
			r.err = fmt.Errorf("unknown instruction %#x %d", op, i.a)
		}
	case op <= 1, op == opElse, op == opEnd, op == opReturn, op == opDrop, op == opSelect, op >= opI32Eqz && op <= opLastNumeric:
	default:
		r.err = fmt.Errorf("unknown instruction %#x", op)
	}
	return i
}

// memoryOperands returns the number of memory indices (all 0) of a prefixed instruction: two for
// memory.copy, one for memory.fill, none for conversions.
func memoryOperands(op int64) (uint64, bool) {
	switch {
	case op == 10:
		return 2, true
	case op == 11:
		return 1, true
	}
	return 0, op < 8
}

// write returns the body in the binary format.
func (f *function) write() []byte {
	out := appendUint(nil, uint64(len(f.locals)))
	for _, group := range f.locals {
		out = append(appendUint(out, group.count), group.kind)
	}
	for _, i := range f.body {
		out = i.append(out)
	}
	return out
}

func (i instr) append(out []byte) []byte {
	out = append(out, i.op)
	switch op := i.op; {
	case op == opBlock, op == opLoop, op == opIf, op == opI32Const, op == opI64Const:
		out = appendInt(out, i.a)
	case op == opBr, op == opBrIf, op == opCall, op >= opLocalGet && op <= opGlobalSet, op == opMemorySize, op == opMemoryGrow:
		out = appendUint(out, uint64(i.a))
	case op == opCallIndirect, op >= opFirstLoad && op <= opLastStore:
		out = appendUint(appendUint(out, uint64(i.a)), uint64(i.b))
	case op == opBrTable:
		out = appendUint(out, uint64(len(i.labels)-1))
		for _, label := range i.labels {
			out = appendUint(out, uint64(label))
		}
	case op == opF32Const:
		out = binary.LittleEndian.AppendUint32(out, uint32(i.a))
	case op == opF64Const:
		out = binary.LittleEndian.AppendUint64(out, uint64(i.a))
	case op == opPrefixed:
		out = appendUint(out, uint64(i.a))
		n, _ := memoryOperands(i.a)
		out = append(out, make([]byte, n)...)
	}
	return out
}
