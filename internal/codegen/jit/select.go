//go:build amd64 || arm64

package jit

import "github.com/rlx-go/rlx/ir/scalar"

// apply writes the instructions of a step.
func (g *generator) apply(s *step) {
	if g.convertLong(s) {
		return
	}
	switch {
	case s.op == scalar.OpBitcast, s.op == scalar.OpConvert && s.typ.IsInteger() && s.from.IsInteger():
		g.keepBits(s)
	case s.op == scalar.OpSelect:
		g.choose(s)
	case s.op == scalar.OpConvert:
		g.convert(s)
	case s.op >= scalar.OpEq && s.op <= scalar.OpGe && !s.from.IsBool():
		g.compare(s)
	case s.typ.IsBool():
		g.logic(s)
	case s.typ.IsFloat():
		g.float(s)
	default:
		g.integer(s)
	}
}
