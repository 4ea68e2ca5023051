package cpu

import (
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native"
)

// referenceStep runs the reference implementation of an op that has kernels for GPUs but
// neither a body nor a routine for the CPU. It is slow.
type referenceStep struct {
	node    *ir.Node
	in, out []*buffer // nil for an unused result
}

// reference compiles a node to its op's reference implementation.
func (c *compiler) reference(g *fusion.Group) error {
	x := fusion.RoutineOf(g)
	if x.Node.Def().Eval == nil {
		return x.Node.Fail(ir.Errorf(ir.ErrUnsupported, "the op has kernels for GPUs only: no body and no reference implementation"))
	}
	s := &referenceStep{node: x.Node, out: make([]*buffer, len(x.Out))}
	for i, e := range x.In {
		buf, err := c.materialize(fmt.Sprint(g.Name(), " operand ", i), e)
		if err != nil {
			return err
		}
		s.in = append(s.in, buf)
	}
	for i, t := range x.Node.Types() {
		if x.Out[i] != nil {
			s.out[i] = c.scratch(t.DType, product(x.Out[i].Dims))
		}
	}
	c.add(s)
	elements := 0 // a run converts all of them to arrays
	for _, b := range slices.Concat(s.in, s.out) {
		if b != nil {
			elements += b.elems
		}
	}
	c.program.memory.reserve(native.Allocation{Name: "workspace of " + g.Name(), Bytes: bytesOf(ir.C128, []int{elements})}, nil)
	for i, space := range x.Out {
		if space == nil {
			continue
		}
		if err := c.storeResult(g.Name(), *space, s.out[i], func(value scalar.Expr) fusion.ElementStore { return x.Store(i, value) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *referenceStep) run(*runner) {
	in := make([]*ir.Array, len(s.in))
	for i, b := range s.in {
		var err error
		if in[i], err = ir.ArrayOf(s.node.Input(i).Type(), b.data[:b.bytes()]); err != nil {
			panic(s.node.Fail(err)) // a run returns what steps panic with
		}
	}
	out, err := s.node.Def().Eval(&ir.EvalContext{}, s.node, in)
	if err != nil {
		panic(s.node.Fail(err))
	}
	for i, b := range s.out {
		if b != nil {
			copy(b.data, out[i].Bytes())
		}
	}
}
