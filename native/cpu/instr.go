package cpu

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// instr is one instruction of a nest, still without the registers of a worker.
type instr struct {
	kind opKind
	node scalar.Expr // for apply and check: the operation
	dst  register
	args [3]register
	one  bool // of one lane, however many the block has
	// uniform marks a select whose condition has one lane, unlike its result.
	uniform bool
	buf     *buffer  // for load and store
	at      *address // for load and store
	fused   *fused
}

type opKind uint8

const (
	opApply opKind = iota
	opConst        // the value of node in all lanes
	opSplat        // lane 0 of args[0] in all lanes
	opMove         // args[0]
	opLoad
	opStore // args[0]
	opCounter
	opScalar
	opCheck // where args[0] is 0, the code node.Ref
	opFused // many as a kernel
)

// value is what an expression has become.
type value struct {
	reg   register
	level level
	wide  bool
	loop  int // for levels perInner and perElement: the loop it is computed in
}

// signature is what two equal instructions have in common.
type signature struct {
	op     scalar.Op
	dtype  ir.DType
	bits   uint64
	ref    int
	name   string
	args   [3]register
	splat  bool
	buffer *buffer
}
