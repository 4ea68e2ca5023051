package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// OpScan is a loop over the slices of its operands.
const OpScan ir.Op = "scan"

// ScanAttrs describe a loop. The first Consts operands are loop-invariant, the next
// Carries are the loop-carried state, and all others are sliced along the first axis,
// which has size Length, one slice for each step. With Reverse the steps start with the
// last slice.
type ScanAttrs struct {
	Consts, Carries int
	Length          ir.Dim
	Reverse         bool
}

// Visit shows the attributes.
func (a *ScanAttrs) Visit(v ir.AttrVisitor) {
	v.Int("consts", &a.Consts)
	v.Int("carries", &a.Carries)
	visitDim(v, "length", &a.Length)
	v.Bool("reverse", &a.Reverse)
}

func init() {
	define(&ir.Def{
		Op: OpScan,
		Doc: "Runs a graph once for each slice of its last operands (JAX's scan). The graph takes the constants, the carries and " +
			"the slices, and returns the new carries and any number of values. Results are the carries after the " +
			"last step, and the values of all steps, each stacked along a first axis in the order of the slices.",
		Constraints: numbered(
			"the graph takes as many operands as the node has, of their types; of each operand after the carries it takes a slice",
			"the first axis of each operand after the carries has the size length",
			"the first results of the graph have the types of the carries",
			"the graph has neither parameters nor states",
		),
		Operands:  []string{"operands..."},
		NewAttrs:  func() ir.Attrs { return &ScanAttrs{} },
		Subgraphs: 1,
		Infer:     inferScan,
		Eval:      evalScan,
		JVP:       jvpScan,
		Partial:   partialScan,
		Transpose: transposeScan,
		Batch:     batchScan,
		Prune:     pruneScan,
		Lower:     &ir.ControlLowering{},
	})
}

// Loop describes a [Scan].
type Loop struct {
	// Consts are loop-invariant operands. The body cannot capture values of the
	// surrounding graph.
	Consts []ir.Value
	// Carries are the initial values of the loop-carried state.
	Carries []ir.Value
	// Xs are sliced along their first axis, one slice for each step.
	Xs []ir.Value
	// Length is the number of steps; it may be left out if there are Xs.
	Length  ir.Dim
	Reverse bool
	// Body is one step: it returns the next carries and the values to stack.
	Body func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value)
}

// Scan runs Body once for each slice of Xs, or Length times (JAX's scan). It returns the
// final carries and the values that the steps return, each stacked along a new first axis.
func Scan(b *ir.Builder, l Loop) (carries, ys []ir.Value) {
	if !b.Require(OpScan, "body", l.Body != nil) {
		return make([]ir.Value, len(l.Carries)), nil
	}
	a := &ScanAttrs{Consts: len(l.Consts), Carries: len(l.Carries), Length: l.Length, Reverse: l.Reverse}
	types := slices.Concat(typesOf(l.Consts), typesOf(l.Carries))
	for i, x := range l.Xs {
		if i == 0 && x.Rank() > 0 {
			a.Length = x.Dim(0)
		}
		types = append(types, ir.Type{DType: x.DType(), Shape: x.Shape()[min(1, x.Rank()):]})
	}
	body := closed(b, "step", types, func(s *ir.Builder, in []ir.Value) []ir.Value {
		consts, carries, xs := scanGroups(a, in)
		next, ys := l.Body(s, consts, carries, xs)
		return slices.Concat(next, ys)
	})
	out := b.AddNode(OpScan, a, []*ir.Graph{body}, slices.Concat(l.Consts, l.Carries, l.Xs)...)
	if b.Err() != nil {
		return make([]ir.Value, len(l.Carries)), nil
	}
	return out[:a.Carries], out[a.Carries:]
}

// scanGroups splits a list with an entry for each operand into constants, carries and
// sliced operands.
func scanGroups[T any](a *ScanAttrs, list []T) (consts, carries, xs []T) {
	return list[:a.Consts], list[a.Consts : a.Consts+a.Carries], list[a.Consts+a.Carries:]
}

func scanOf(n *ir.Node) (*ScanAttrs, *ir.Graph) { return n.Attrs().(*ScanAttrs), n.Subgraphs()[0] }

func inferScan(n *ir.Node) ([]ir.Type, error) {
	a, body := scanOf(n)
	if !a.Length.Valid() || a.Consts < 0 || a.Carries < 0 || a.Consts > len(n.Inputs()) || a.Carries > len(n.Inputs())-a.Consts {
		return nil, ir.Attrf("consts is %d and carries %d, of %d operands, and length %s: none must be negative, nor more than there are", a.Consts, a.Carries, len(n.Inputs()), a.Length)
	}
	types := n.InTypes()
	_, carries, xs := scanGroups(a, types)
	for i, x := range xs {
		if len(x.Shape) == 0 || x.Shape[0] != a.Length {
			return nil, ir.Shapef("%s has no first axis of size %s", x, a.Length)
		}
		xs[i].Shape = x.Shape[1:]
	}
	if err := checkClosed(body, types); err != nil {
		return nil, err
	}
	out := outputTypes(body)
	if len(out) < a.Carries {
		return nil, ir.Errorf(ir.ErrGraph, "the graph returns %d values for %d carries", len(out), a.Carries)
	}
	for i, c := range carries {
		if !out[i].Equal(c) {
			return nil, ir.Shapef("carry %d is %s before a step and %s after it", i, c, out[i])
		}
	}
	for i := a.Carries; i < len(out); i++ {
		out[i].Shape = slices.Concat(ir.Shape{a.Length}, out[i].Shape)
	}
	return out, nil
}

func evalScan(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a, body := scanOf(n)
	length, _ := a.Length.Const()
	consts, carries, xs := scanGroups(a, in)
	ys := make([]*ir.Array, n.NumResults()-a.Carries)
	for i := range ys {
		var err error
		if ys[i], err = resultArray(n, a.Carries+i); err != nil {
			return nil, err
		}
	}
	for step := range length {
		if a.Reverse {
			step = length - 1 - step
		}
		args := slices.Concat(consts, carries)
		for _, x := range xs {
			args = append(args, sliceOf(x, step))
		}
		out, err := c.Call(body, args)
		if err != nil {
			return nil, err
		}
		carries = out[:a.Carries]
		for i, y := range out[a.Carries:] {
			for e := range y.Len() {
				copyElement(ys[i], step*y.Len()+e, y, e)
			}
		}
	}
	return slices.Concat(carries, ys), nil
}

// sliceOf returns slice i of x along the first axis.
func sliceOf(x *ir.Array, i int) *ir.Array {
	out := ir.NewArray(x.DType, x.Dims[1:]...)
	for e := range out.Len() {
		copyElement(out, e, x, i*out.Len()+e)
	}
	return out
}

// batchScan batches the body. The batch axis comes first in the body, so it is second,
// after the step axis, in sliced and stacked values.
func batchScan(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	a, body := scanOf(n)
	batched := marked(axes)
	carries := batched[a.Consts : a.Consts+a.Carries]
	outBatched := settle(carries, func() []bool {
		_, out := batchedGraph(b, body, batched, size, nil)
		return slices.Clone(out)
	})
	step, _ := batchedGraph(b, body, batched, size, outBatched)
	operands := slices.Clone(in)
	for i := range in {
		switch {
		case !batched[i]:
		case i < a.Consts+a.Carries:
			operands[i] = BatchAt(b, in[i], axes[i], 0, size)
		default:
			operands[i] = MoveAxis(b, in[i], axes[i], 1)
		}
	}
	attrs := *a
	out := b.AddNode(OpScan, &attrs, []*ir.Graph{step}, operands...)
	at := axesAt(outBatched)
	for i := a.Carries; i < len(at); i++ {
		if at[i] == 0 {
			at[i] = 1
		}
	}
	return out, at
}
