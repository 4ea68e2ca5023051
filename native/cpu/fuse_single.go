package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
)

// addSingle makes an instruction on single numbers part of a kernel.
func (s *segment) addSingle(in *instr) bool { return s.ofKind(in, s.addsSingle) }

func (s *segment) addsSingle(in *instr) bool {
	switch in.kind {
	case opMove:
		if !in.dst.inKernels() {
			return false
		}
		v := s.spread(in.args[0], wordType(in.dst))
		s.writeSingle(in.dst, v)
	case opLoad:
		if !in.isWord() {
			return false
		}
		s.writeSingle(in.dst, s.k.Spread(s.array(fusedArray{access: in}), in.buf.dtype))
	case opStore:
		if !in.isWord() || in.node == guarded {
			return false
		}
		v := s.spread(in.args[0], in.buf.dtype)
		if s.k.IsTruth(v) {
			return false
		}
		s.k.StoreFirst(s.array(fusedArray{access: in, stores: true}), v)
	case opApply:
		return s.applySingle(in)
	default:
		return false
	}
	return true
}

// isWord reports whether a load or store of one element is of a type that lanes have
// and its place a sum of coordinates.
func (in *instr) isWord() bool {
	switch in.buf.dtype {
	case ir.F32, ir.I32, ir.U32, ir.F64, ir.I64, ir.U64:
		return !in.at.general && in.at.mask == nil
	}
	return false
}

func (s *segment) applySingle(in *instr) bool {
	o := in.operation()
	if !jit.Has(o) || !in.dst.inKernels() || in.changesWidth() {
		return false
	}
	args := make([]jit.Value, len(in.node.Args))
	for i, a := range in.node.Args {
		if args[i] = s.spread(in.args[i], a.Type); s.k.IsTruth(args[i]) != a.Type.IsBool() {
			return false
		}
	}
	v, _ := s.k.Apply(o, args...)
	s.writeSingle(in.dst, v)
	return true
}

func (s *segment) writeSingle(r register, v jit.Value) {
	if !slices.Contains(s.written, r) {
		s.written = append(s.written, r)
	}
	s.single[r] = v
}
