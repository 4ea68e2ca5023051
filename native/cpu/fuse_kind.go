package cpu

import (
	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// kind is which numbers the lanes of a kernel are: all of one kernel are alike.
type kind uint8

const (
	anyKind kind = iota // truths alone
	words               // of 32 bits
	longs               // of 64 bits
)

// width returns how many lanes a register has.
func (k kind) width() int {
	if k == longs {
		return jit.Width() / 2
	}
	return jit.Width()
}

// segmentOf begins a kernel of a kind.
func (f *fuser) segmentOf(k kind) *segment {
	s := f.segment()
	s.kind, s.k.Long = k, k == longs
	return s
}

// ofKind adds an instruction by the given way unless it is of another kind than the
// kernel so far; it reports whether it did.
func (s *segment) ofKind(in *instr, add func(in *instr) bool) bool {
	k, ok := in.numbers()
	if !ok || k != anyKind && s.kind != anyKind && s.kind != k {
		return false
	}
	before := s.kind
	if k != anyKind {
		s.kind, s.k.Long = k, k == longs
	}
	if add(in) {
		return true
	}
	s.kind, s.k.Long = before, before == longs
	return false
}

// numbers returns the kind of the numbers that an instruction has to do with; false
// where they differ.
func (in *instr) numbers() (kind, bool) {
	found := anyKind
	note := func(k kind) bool {
		if k == anyKind || found == k {
			return true
		}
		first := found == anyKind
		found = k
		return first
	}
	switch in.kind {
	case opLoad, opStore:
		if in.buf.dtype.IsBool() {
			return words, true
		}
		return kindOf(in.buf.dtype), true
	case opMove:
		return kindOf(wordType(in.dst)), true
	case opApply:
		if in.changesWidth() {
			return longs, jit.Has(in.operation())
		}
		same := note(kindOf(in.node.Type))
		for _, a := range in.node.Args {
			same = note(kindOf(a.Type)) && same
		}
		return found, same
	}
	return found, true
}

// changesWidth reports whether an instruction converts numbers between 32 and 64 bits.
func (in *instr) changesWidth() bool {
	if in.node.Op != scalar.OpConvert {
		return false
	}
	from, to := kindOf(in.node.Args[0].Type), kindOf(in.node.Type)
	return from != to && from != anyKind && to != anyKind
}

func kindOf(t ir.DType) kind {
	switch classOf(t) {
	case classF64, classLong:
		return longs
	}
	if t.IsBool() {
		return anyKind
	}
	return words
}

// kindOfRunning returns the kind of running values; false where kernels do not
// compute with them, or not with all of them together.
func kindOfRunning(list []running) (kind, bool) {
	found := anyKind
	for _, r := range list {
		k := kindOf(wordType(r.acc))
		if !r.acc.inKernels() || found != anyKind && found != k {
			return 0, false
		}
		found = k
	}
	return found, true
}
