// Package ranks checks and compares what the ranks of a mesh compile, for the backends with
// collectives.
package ranks

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/native/collective"
)

// Has reports whether a graph or one of its subgraphs has collectives, or indices, of several ranks.
func Has(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		mesh, ok := ops.MeshOf(n)
		return ok && mesh.Devices > 1 || slices.ContainsFunc(n.Subgraphs(), Has)
	})
}

// InModule reports whether an entry of a module has collectives of several ranks.
func InModule(m *ir.Module) bool {
	return slices.ContainsFunc(m.Entries, func(e ir.Entry) bool { return Has(e.Graph) })
}

// Check returns an error of kind [ir.ErrUnsupported] for the first collective of several ranks that
// the mesh does not have, or that runs on some ranks only where a condition differs.
func Check(g *ir.Graph, mesh *collective.Mesh) error {
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
			if (n.Op() == ops.OpCond || n.Op() == ops.OpWhile) && Has(sub) {
				return n.Fail(ir.Errorf(ir.ErrUnsupported, "a collective in %s: ranks that decide differently would wait for each other", n.Op()))
			}
			if err := Check(sub, mesh); err != nil {
				return err
			}
		}
	}
	return nil
}

// Agree compares what the ranks of a mesh have compiled, and returns an error on all of them unless
// it is the same everywhere: the backend, the mesh, the module, and what order says, such as the
// collectives in their order. A rank whose compilation failed takes part, so that the others do not
// wait for it. A module without collectives is not compared.
func Agree(ctx context.Context, backend string, m *ir.Module, mesh *collective.Mesh, order []string, failed error) error {
	if mesh == nil || !InModule(m) {
		return nil
	}
	var digest [32]byte
	if failed == nil {
		h := sha256.New()
		fmt.Fprintf(h, "%s %s\n", backend, mesh)
		for _, e := range m.Entries {
			fmt.Fprintf(h, "%q %s\n", e.Name, e.Graph.Hash())
		}
		for _, line := range order {
			fmt.Fprintf(h, "%q\n", line)
		}
		h.Sum(digest[:0])
	}
	return mesh.World().Agree(ctx, fmt.Sprintf("the plan of module %q", m.Name), digest)
}

// CallOf returns the call of a collective, without its arrays.
func CallOf(c routine.Collective) collective.Call {
	return collective.Call{
		Op: operations[c.Op], Reduction: reductions[c.Reduction], DType: c.DType, Root: c.Root, Pairs: c.Pairs.List(),
		Bytes: int64(c.Count) * int64(c.Unit),
	}
}

var operations = [...]collective.Op{
	routine.AllReduce: collective.AllReduce, routine.AllGather: collective.AllGather, routine.ReduceScatter: collective.ReduceScatter,
	routine.AllToAll: collective.AllToAll, routine.Permute: collective.Permute, routine.Broadcast: collective.Broadcast,
}

var reductions = [...]collective.Reduction{routine.Sum: collective.Sum, routine.Max: collective.Max, routine.Min: collective.Min}
