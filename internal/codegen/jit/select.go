//go:build amd64 || arm64

package jit

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/ir/scalar"
)

// lanes selects the instructions of steps from registers to registers.
type lanes struct{ *registers }

// apply writes the instructions of a step.
func (l *lanes) apply(s *step) {
	if l.convertLong(s) {
		return
	}
	switch {
	case s.op == scalar.OpBitcast, s.op == scalar.OpConvert && s.typ.IsInteger() && s.from.IsInteger():
		l.keepBits(s)
	case s.op == scalar.OpSelect:
		l.choose(s)
	case s.op == scalar.OpConvert:
		l.convert(s)
	case s.op >= scalar.OpEq && s.op <= scalar.OpGe && !s.from.IsBool():
		l.compare(s)
	case s.typ.IsBool():
		l.logic(s)
	case s.typ.IsFloat():
		l.float(s)
	default:
		l.integer(s)
	}
}

// operation returns the instruction of a step. A test checks that there is one for each of
// [Operations].
func operation(list map[scalar.Op]asm.Opcode, s *step) asm.Opcode {
	o, ok := list[s.op]
	if !ok {
		panic(fmt.Sprint("jit: ", s.op, " of ", s.from))
	}
	return o
}
