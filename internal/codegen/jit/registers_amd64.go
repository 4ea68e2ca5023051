package jit

import (
	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/dtype"
)

// The register with the mask of active lanes: laneMask with AVX-512, lastVector with AVX2.
const (
	laneMask   = 7
	lastVector = 15
)

// at selects the instruction set and the lane width.
func (rs *registers) at(level simd.Level, long bool) {
	rs.Wide, rs.Long = level == simd.AVX512, long
}

// reset frees all registers.
func (rs *registers) reset() {
	rs.vector, rs.mask = file{holds: map[int]Value{}}, file{holds: map[int]Value{}}
	count := lastVector
	if rs.Wide {
		count = 32
		for r := laneMask - 1; r > 0; r-- {
			rs.mask.free = append(rs.mask.free, r)
		}
	}
	for r := count - 1; r >= 0; r-- {
		rs.vector.free = append(rs.vector.free, r)
	}
}

// masks reports whether values of a type are in mask registers.
func (rs *registers) masks(t dtype.DType) bool { return t.IsBool() && rs.Wide }

// splatBits loads a constant into all lanes of a register.
func (rs *registers) splatBits(reg int, bits uint64) {
	rs.Vector(asm.Broadcast, reg, 0, asm.Constant(bits))
}

// moveMasked copies the active lanes.
func (rs *registers) moveMasked(to, from int) {
	if rs.Wide {
		rs.EVEX(rs.Lanes(asm.MoveAll), to, 0, asm.Register(from), asm.Masking{Mask: laneMask})
		return
	}
	rs.VEX(rs.Lanes(asm.BlendVector).Imm(lastVector<<4), to, to, asm.Register(from), false)
}

// spill stores a register to its slot, or loads it.
func (rs *registers) spill(p *location, out bool) {
	rs.loadPointer(scratch, spillArgument)
	at := asm.At(scratch, slotBytes*p.slot)
	switch {
	case p.masked && out:
		rs.VEX(asm.MaskOut, p.reg, 0, at, true)
	case p.masked:
		rs.VEX(asm.MaskIn, p.reg, 0, at, true)
	case out:
		rs.Vector(asm.MoveOut, p.reg, 0, at)
	default:
		rs.Vector(asm.MoveIn, p.reg, 0, at)
	}
}

// last returns an argument as the last operand of an instruction.
func (rs *registers) last(a argument) asm.Operand {
	if a.constant {
		return asm.Constant(a.bits)
	}
	return asm.Register(rs.locations[a.value].reg)
}

// sign returns the sign bit of a lane, ones a lane with all bits set.
func (rs *registers) sign() uint64 {
	if rs.Long {
		return 1 << 63
	}
	return 1 << 31
}

func (rs *registers) ones() uint64 { return 2*rs.sign() - 1 }

// jumpIfNone jumps where a boolean is false in all lanes.
func (rs *registers) jumpIfNone(condition int, to *asm.Label) {
	if rs.Wide {
		rs.VEX(asm.MaskTest, condition, 0, asm.Register(condition), true)
	} else {
		rs.Vector(asm.BitsTest, condition, 0, asm.Register(condition))
	}
	rs.JumpIf(asm.Equal, to)
}

func (rs *registers) copyVector(to, from int) { rs.Vector(asm.MoveAll, to, 0, asm.Register(from)) }

// shift writes a shift of 32-bit lanes by a constant.
func (rs *registers) shift(how, by, from, to int) { rs.Shift(asm.ShiftByByte, how, by, from, to) }

// shiftLanes writes a shift of the kernel's lanes by a constant.
func (rs *registers) shiftLanes(how, by, from, to int) {
	o := asm.ShiftByByte
	if rs.Long && how != asm.ShiftSigned {
		o = asm.ShiftQuad
	}
	rs.Shift(rs.Lanes(o), how, by, from, to)
}

// number returns the float type of lanes.
func (l *lanes) number() dtype.DType {
	if l.Long {
		return dtype.F64
	}
	return dtype.F32
}
