package wasmsimd

import (
	"encoding/binary"
	"math"
)

// valueType is the type of a local or operand, encoded as in the binary format.
type valueType byte

const (
	typeI32  valueType = 0x7f
	typeI64  valueType = 0x7e
	typeF32  valueType = 0x7d
	typeF64  valueType = 0x7c
	typeV128 valueType = 0x7b
)

// appendUnsigned appends x in unsigned LEB128, the encoding of
// counts, indices and offsets.
func appendUnsigned(b []byte, x uint64) []byte { return binary.AppendUvarint(b, x) }

// appendSigned appends x in signed LEB128, the encoding of integer
// constants.
func appendSigned(b []byte, x int64) []byte {
	for {
		low := byte(x & 0x7f)
		x >>= 7
		if x == 0 && low&0x40 == 0 || x == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

// appendText appends a name: its length and its bytes.
func appendText(b []byte, s string) []byte {
	return append(appendUnsigned(b, uint64(len(s))), s...)
}

// function is the code of one function. Its parameters are the first locals, all i32.
type function struct {
	params int
	locals []valueType
	code   []byte
	depth  int // labels that are open
}

// local adds a local and returns its index.
func (f *function) local(t valueType) uint32 {
	f.locals = append(f.locals, t)
	return uint32(f.params + len(f.locals) - 1)
}

// op appends instructions without immediates.
func (f *function) op(codes ...opcode) {
	for _, c := range codes {
		if c < 0x100 {
			f.code = append(f.code, byte(c))
			continue
		}
		f.code = append(f.code, byte(c>>prefixShift))
		f.code = appendUnsigned(f.code, uint64(c&(1<<prefixShift-1)))
	}
}

// with appends an instruction with an index as its immediate: a local, a label, a
// function.
func (f *function) with(c opcode, index uint32) {
	f.op(c)
	f.code = appendUnsigned(f.code, uint64(index))
}

func (f *function) get(local uint32) { f.with(opLocalGet, local) }
func (f *function) set(local uint32) { f.with(opLocalSet, local) }
func (f *function) tee(local uint32) { f.with(opLocalTee, local) }

func (f *function) constI32(x int32) {
	f.op(opI32Const)
	f.code = appendSigned(f.code, int64(x))
}

func (f *function) constI64(x int64) {
	f.op(opI64Const)
	f.code = appendSigned(f.code, x)
}

func (f *function) constF32(x float32) {
	f.op(opF32Const)
	f.code = binary.LittleEndian.AppendUint32(f.code, math.Float32bits(x))
}

func (f *function) constF64(x float64) {
	f.op(opF64Const)
	f.code = binary.LittleEndian.AppendUint64(f.code, math.Float64bits(x))
}

// constLanes appends a vector of four words.
func (f *function) constLanes(words [4]uint32) {
	f.op(opV128Const)
	for _, w := range words {
		f.code = binary.LittleEndian.AppendUint32(f.code, w)
	}
}

// memory appends a load or store at the address on the stack plus offset.
// Alignment is a hint; elements lie at multiples of their size.
func (f *function) memory(c opcode, alignLog uint32, offset uint64) {
	f.op(c)
	f.code = appendUnsigned(f.code, uint64(alignLog))
	f.code = appendUnsigned(f.code, offset)
}

// lane appends an instruction with a lane index.
func (f *function) lane(c opcode, lane int) {
	f.op(c)
	f.code = append(f.code, byte(lane))
}

// shuffle appends a byte shuffle of the two vectors on the stack.
func (f *function) shuffle(places [16]byte) {
	f.op(opI8x16Shuffle)
	f.code = append(f.code, places[:]...)
}

// begin opens a block, a loop or an if without results.
func (f *function) begin(c opcode) {
	f.op(c)
	f.code = append(f.code, blockVoid)
	f.depth++
}

// end closes what begin opened.
func (f *function) end() {
	f.op(opEnd)
	f.depth--
}

// bytes returns the function in the format of the code section: locals run-length
// encoded by type, then the instructions.
func (f *function) bytes() []byte {
	var runs, out []byte
	n := uint64(0)
	for i := 0; i < len(f.locals); {
		j := i
		for j < len(f.locals) && f.locals[j] == f.locals[i] {
			j++
		}
		runs = append(appendUnsigned(runs, uint64(j-i)), byte(f.locals[i]))
		n++
		i = j
	}
	out = append(appendUnsigned(out, n), runs...)
	out = append(out, f.code...)
	return append(out, byte(opEnd))
}
