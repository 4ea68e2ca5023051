package cpu

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
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

// hasExchange reports whether a graph or one of its subgraphs has collectives of several ranks.
func hasExchange(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		mesh, ok := ops.MeshOf(n)
		return ok && mesh.Devices > 1 || slices.ContainsFunc(n.Subgraphs(), hasExchange)
	})
}

// checkMesh returns an error of kind [ir.ErrUnsupported] for the first collective of several ranks
// that the mesh does not have, or that runs on some ranks only where a condition differs.
func checkMesh(g *ir.Graph, mesh *collective.Mesh) error {
	for _, n := range g.Nodes() {
		if a, ok := ops.MeshOf(n); ok && a.Devices > 1 {
			switch {
			case mesh == nil:
				return n.Fail(ir.Errorf(ir.ErrUnsupported, "%d devices along %q, and no mesh is given: the graph runs on one", a.Devices, a.MeshAxis))
			case mesh.Along(a.MeshAxis) == nil || mesh.Along(a.MeshAxis).Size() != a.Devices:
				return n.Fail(ir.Errorf(ir.ErrUnsupported, "%d devices along %q; the mesh is %s", a.Devices, a.MeshAxis, mesh))
			}
		}
		for _, sub := range n.Subgraphs() {
			if (n.Op() == ops.OpCond || n.Op() == ops.OpWhile) && hasExchange(sub) {
				return n.Fail(ir.Errorf(ir.ErrUnsupported, "a collective in %s: ranks that decide differently would wait for each other", n.Op()))
			}
			if err := checkMesh(sub, mesh); err != nil {
				return err
			}
		}
	}
	return nil
}

// agree compares what the ranks of a mesh have compiled, and returns an error on all of them unless
// it is the same everywhere. A rank whose compilation failed takes part, so that the others do not
// wait for it. A module without collectives is not compared.
func agree(ctx context.Context, m *ir.Module, mesh *collective.Mesh, failed error) error {
	if mesh == nil || !slices.ContainsFunc(m.Entries, func(e ir.Entry) bool { return hasExchange(e.Graph) }) {
		return nil
	}
	var digest [32]byte
	if failed == nil {
		h := sha256.New()
		fmt.Fprintf(h, "%s %s\n", Name, mesh)
		for _, e := range m.Entries {
			fmt.Fprintf(h, "%q %s\n", e.Name, e.Graph.Hash())
		}
		h.Sum(digest[:0])
	}
	return mesh.World().Agree(ctx, fmt.Sprintf("the plan of module %q", m.Name), digest)
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
	x := g.Routine()
	n := x.Node
	a, _ := ops.MeshOf(n)
	group := c.p.mesh.Along(a.MeshAxis)
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
		c.add(&exchangeStep{entry: c.e, group: group, call: callOf(n), in: in, out: out, code: uint32(code)})
	}
	if x.Out[0] == nil {
		return nil
	}
	return c.storeResult(g.Name(), *x.Out[0], out, func(value scalar.Expr) fusion.ElementStore { return x.Store(0, value) })
}

// callOf returns the call of a node, without its arrays.
func callOf(n *ir.Node) collective.Call {
	c := collective.Call{DType: n.Input(0).DType()}
	switch a := n.Attrs().(type) {
	case *ops.AllReduceAttrs:
		c.Reduction = map[string]collective.Reduction{
			ops.AllReduceSum: collective.Sum, ops.AllReduceMax: collective.Max, ops.AllReduceMin: collective.Min,
		}[a.Reduction]
	case *ops.AlongAttrs:
		c.Op = collective.AllGather
		if n.Op() == ops.OpReduceScatter {
			c.Op = collective.ReduceScatter
		}
	case *ops.AllToAllAttrs:
		c.Op = collective.AllToAll
	case *ops.PermuteAttrs:
		c.Op = collective.Permute
		for i, from := range a.Sources {
			c.Pairs = append(c.Pairs, [2]int{from, a.Targets[i]})
		}
	case *ops.RootAttrs:
		c.Op, c.Root = collective.Broadcast, a.Root
	}
	return c
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

// giveUp ends the group of an entry whose run failed on this rank: the others are a step ahead, or
// wait.
func (e *entry) giveUp(err error) {
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
