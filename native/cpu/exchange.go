package cpu

import (
	"context"
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/executor/ranks"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native/collective"
)

// isExchange reports whether a node is a step among several ranks: a collective of contiguous
// arrays, or the index of the rank along an axis. Other collectives are expanded to such ones.
func isExchange(n *ir.Node) bool {
	mesh, ok := ops.MeshOf(n)
	return ok && mesh.Devices > 1 && ops.IsContiguous(n)
}

// exchangeStep is a collective among ranks.
type exchangeStep struct {
	entry   *entry
	group   *collective.Group
	call    collective.Call
	in, out *buffer
	code    uint32 // the status code of its failure
}

// exchange compiles a collective: it materialises the operand, makes the call, and stores the result.
func (c *compiler) exchange(g *fusion.Group) error {
	x := fusion.RoutineOf(g)
	n := x.Node
	a, _ := ops.MeshOf(n)
	group := c.program.mesh.Along(a.MeshAxis)
	t := n.Types()[0]
	dims, _ := t.Shape.Ints()
	out := c.scratch(t.DType, product(dims))
	if n.Op() == ops.OpAxisIndex {
		c.add(&indexStep{rank: int32(group.Rank()), out: out})
	} else {
		in, err := c.materialize(g.Name()+" operand", x.In[0])
		if err != nil {
			return err
		}
		code := firstCode + slices.Index(c.checks, n)
		c.add(&exchangeStep{entry: c.entry, group: group, call: ranks.CallOf(ops.RoutineOf(n)), in: in, out: out, code: uint32(code)})
	}
	if x.Out[0] == nil {
		return nil
	}
	return c.storeResult(g.Name(), *x.Out[0], out, func(value scalar.Expr) fusion.ElementStore { return x.Store(0, value) })
}

// run makes the call, unless the run has failed already: then no state is written, on any rank, as
// all that write states come after all collectives.
func (s *exchangeStep) run(r *runner) {
	if r.env.status.failed() {
		s.group.Abort(errors.New("the run failed on this rank before the collective"))
		return
	}
	s.call.Send, s.call.Recv = s.in.data[:s.in.bytes()], s.out.data[:s.out.bytes()]
	s.call.Entry, s.call.Step = s.entry.name, s.entry.runs
	if err := s.group.Do(context.Background(), &s.call); err != nil {
		s.entry.lost = err
		r.env.status.fail(s.code)
	}
}

// abort closes the group of an entry after its run failed on this rank: the other ranks are a step
// ahead, or wait.
func (e *entry) abort(err error) {
	if e.world != nil {
		e.world.Abort(err)
	}
}

// indexStep stores the rank along an axis.
type indexStep struct {
	rank int32
	out  *buffer
}

func (s *indexStep) run(*runner) { view[int32](s.out)[0] = s.rank }

// Collectives implements [native.Collectives].
func (b backend) Collectives() error { return nil }
