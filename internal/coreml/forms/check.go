package forms

import (
	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() { add(ops.OpCheckIndex, single(checkIndex)) }

// check is the fault flag of a node that checks indices: an int32 of one element, 1 if the node
// runs and an index is out of range.
type check struct {
	node  *ir.Node
	fault mil.Ref
}

// checkIndex returns the indices unchanged. The check is a separate computation: it is dropped from
// functions that do not request it through [Emitter.Faults].
func checkIndex(e *Emitter, n *ir.Node, in []Value) Value {
	x := in[0].Ref
	bound, _ := n.Attrs().(*ops.CheckIndexAttrs).Bound.Const()
	outside := e.op2("logical_or", e.op2("less", x, e.number(mil.Int32, 0)), e.op2("greater_equal", x, e.number(mil.Int32, float64(bound))))
	if e.under.Valid() {
		outside = e.op2("logical_and", outside, e.under)
	}
	if e.Err() != nil {
		return Value{}
	}
	fault := e.cast(outside, mil.Int32)
	fault = e.reshape(fault, []int{fault.Type.Len()})
	e.checks = append(e.checks, check{n, e.Op("reduce_max", mil.Args{"x": fault, "axes": []int{0}, "keep_dims": true})})
	return in[0]
}

// where emits operations that are valid only where cond, a bool of one element, is true; elsewhere
// their index checks are ignored.
func (e *Emitter) where(cond mil.Ref, branch func() []Value) []Value {
	before := e.under
	defer func() { e.under = before }()
	if e.under = cond; before.Valid() {
		e.under = e.op2("logical_and", before, cond)
	}
	return branch()
}

// Faults returns the nodes that check indices, and an int32 of one element that identifies the
// failed check: 0 for none, else the number of nodes from it to the last one. Without such nodes it
// returns no tensor.
func (e *Emitter) Faults() ([]*ir.Node, mil.Ref) {
	var nodes []*ir.Node
	faults := map[*ir.Node]mil.Ref{}
	for _, c := range e.checks {
		if before, again := faults[c.node]; again { // an iteration of an unrolled loop
			faults[c.node] = e.op2("maximum", before, c.fault)
			continue
		}
		nodes, faults[c.node] = append(nodes, c.node), c.fault
	}
	var code mil.Ref
	for i, n := range nodes {
		numbered := e.op2("mul", faults[n], e.number(mil.Int32, float64(len(nodes)-i)))
		if i > 0 {
			numbered = e.op2("maximum", code, numbered)
		}
		code = numbered
	}
	return nodes, code
}
