package jit

import (
	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/dtype"
)

// laneMask is the register with the mask of active lanes.
const laneMask = 31

// at selects the lane width; there is one instruction set.
func (rs *registers) at(_ simd.Level, long bool) { rs.Long = long }

// reset frees all registers.
func (rs *registers) reset() {
	rs.vector, rs.mask = file{holds: map[int]Value{}}, file{holds: map[int]Value{}}
	for r := laneMask - 1; r >= 0; r-- {
		rs.vector.free = append(rs.vector.free, r)
	}
}

// masks returns false: there are no mask registers.
func (rs *registers) masks(dtype.DType) bool { return false }

// splatBits loads a constant into all lanes of a register.
func (rs *registers) splatBits(reg int, bits uint64) { rs.Constant(reg, bits) }

// moveMasked copies the active lanes.
func (rs *registers) moveMasked(to, from int) { rs.Three(asm.InsertBits, to, from, laneMask) }

// spill stores a register to its slot, or loads it.
func (rs *registers) spill(p *location, out bool) {
	o := asm.LoadAt
	if out {
		o = asm.StoreAt
	}
	rs.Two(o|asm.Opcode(p.slot*slotBytes/16)<<10, p.reg, spillBase)
}

// shift writes a shift of 32-bit lanes by a constant.
func (rs *registers) shift(o asm.Opcode, by, from, to int) { rs.Shift(32, o, by, from, to) }

// shiftLanes writes a shift of the kernel's lanes by a constant.
func (rs *registers) shiftLanes(o asm.Opcode, by, from, to int) {
	bits := 32
	if rs.Long {
		bits = 64
	}
	rs.Shift(bits, o, by, from, to)
}

// jumpIfNone jumps where a boolean is false in all lanes.
func (rs *registers) jumpIfNone(condition int, to *asm.Label) {
	t := rs.temp()
	rs.Three(asm.MaxPairs, t, condition, condition)
	rs.Two(asm.MoveOut, scratch, t)
	rs.JumpIfZero(scratch, to)
}

func (rs *registers) copyVector(to, from int) { rs.Copy(to, from) }
