package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Loops are unrolled: Core ML's planner and the Neural Engine need straight-line programs. The
// emitter bounds their size.
func init() {
	add(ops.OpScan, scan)
	add(ops.OpWhile, whileLoop)
	add(ops.OpCond, func(e *Emitter, n *ir.Node, in []Value) []Value {
		branch := func(i int) func() []Value {
			return func() []Value { return e.Graph(n.Subgraphs()[i], in[1:]) }
		}
		yes := e.where(in[0].Ref, branch(0))
		no := e.where(e.op1("logical_not", in[0].Ref), branch(1))
		return e.chosen(in[0].Ref, yes, no)
	})
}

// chosen selects between values by a bool of one element.
func (e *Emitter) chosen(cond mil.Ref, yes, no []Value) []Value {
	out := make([]Value, len(yes))
	for i := range out {
		if e.Err() == nil {
			out[i] = Value{e.choose(cond, yes[i].Ref, no[i].Ref), yes[i].Dims}
		}
	}
	return out
}

func scan(e *Emitter, n *ir.Node, in []Value) []Value {
	a, body := n.Attrs().(*ops.ScanAttrs), n.Subgraphs()[0]
	length, _ := a.Length.Const()
	consts, carries, xs := in[:a.Consts], in[a.Consts:a.Consts+a.Carries], in[a.Consts+a.Carries:]
	stacks := make([][]mil.Ref, n.NumResults()-a.Carries)
	for step := range length {
		if a.Reverse {
			step = length - 1 - step
		}
		args := slices.Concat(consts, carries)
		for i, x := range xs {
			dims := whole(n.Input(a.Consts + a.Carries + i).Type())
			r, part := e.cut(e.Whole(x), dims, 0, step, step+1, 1)
			args = append(args, e.value(r, part[1:]))
		}
		out := e.Graph(body, args)
		carries = out[:a.Carries]
		for i, y := range out[a.Carries:] {
			stacks[i] = append(stacks[i], e.Whole(y))
		}
		if e.Err() != nil {
			return make([]Value, n.NumResults())
		}
	}
	out := slices.Clone(carries)
	for i, parts := range stacks {
		if a.Reverse {
			slices.Reverse(parts)
		}
		out = append(out, e.stacked(parts, whole(n.Types()[a.Carries+i])))
	}
	return out
}

// stacked concatenates slices along a new first axis.
func (e *Emitter) stacked(parts []mil.Ref, dims []int) Value {
	one := append([]int{1}, dims[1:]...)
	sizes := make([][]int, len(parts))
	for i := range parts {
		parts[i], sizes[i] = e.reshape(parts[i], fold(one)), one
	}
	r, _ := e.join(parts, sizes, 0)
	return e.value(r, dims)
}

// whileLoop unrolls the maximum number of iterations. Once the condition is false, further
// iterations do not change the carries.
func whileLoop(e *Emitter, n *ir.Node, in []Value) []Value {
	a := n.Attrs().(*ops.WhileAttrs)
	if a.MaxSteps == 0 {
		e.Fail(ir.Errorf(ir.ErrUnsupported, "the loop has no max_steps; a loop is unrolled and needs one"))
		return make([]Value, n.NumResults())
	}
	consts, carries := in[:a.Consts], in[a.Consts:]
	var active mil.Ref
	for range a.MaxSteps {
		args := slices.Concat(consts, carries)
		condition := func() []Value { return e.Graph(n.Subgraphs()[0], args) }
		if !active.Valid() {
			active = condition()[0].Ref
		} else {
			active = e.op2("logical_and", active, e.where(active, condition)[0].Ref)
		}
		next := e.where(active, func() []Value { return e.Graph(n.Subgraphs()[1], args) })
		if e.Err() != nil {
			return make([]Value, n.NumResults())
		}
		carries = e.chosen(active, next, carries)
	}
	return carries
}
