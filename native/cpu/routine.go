package cpu

import (
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native"
)

// routine computes the results of an op for one matrix of each operand, in row-major order and
// in f64, to and from which narrower types are converted. It may overwrite operands.
type routine func(w *workspace, n *ir.Node, in, out [][]float64)

// claims reports whether the backend has a routine for a node, so that it is not expanded.
func claims(n *ir.Node) bool {
	_, packed := packingOf(n)
	return packed || routines[n.Op()] != nil
}

// routineStep runs a routine for each matrix of a batch.
type routineStep struct {
	routine routine
	node    *ir.Node
	batch   int
	in, out []*buffer // of f64
	sizes   [2][]int  // elements of one matrix of each operand and of each result
	work    []workspace
}

// routine compiles a call: it materialises the operands, computes all matrices, and stores the
// used results.
func (c *compiler) routine(g *fusion.Group) error {
	if p, ok := packingOf(g.Members[0].Node); ok {
		return c.packedProduct(g, p)
	}
	x := g.Routine()
	s := &routineStep{routine: routines[x.Node.Op()], node: x.Node, batch: 1, work: make([]workspace, workers())}
	lead := x.In[0].Dims[:len(x.In[0].Dims)-2]
	if s.batch = product(lead); s.batch == 0 {
		return nil
	}
	for i, e := range x.In {
		e.Value = scalar.Convert(e.Value, ir.F64)
		buf, err := c.materialize(fmt.Sprint(g.Name(), " operand ", i), e)
		if err != nil {
			return err
		}
		s.in, s.sizes[0] = append(s.in, buf), append(s.sizes[0], product(e.Dims[len(lead):]))
	}
	for _, t := range x.Node.Types() {
		dims, _ := t.Shape.Ints()
		s.out = append(s.out, c.scratch(ir.F64, product(dims)))
		s.sizes[1] = append(s.sizes[1], product(dims[len(lead):]))
	}
	c.add(s)
	c.reserveWorkspaces(g, s)
	for i, space := range x.Out {
		if space == nil {
			continue
		}
		d := x.Node.Types()[i].DType
		err := c.storeResult(g.Name(), *space, s.out[i], func(value scalar.Expr) fusion.ElementStore {
			return x.Store(i, scalar.Convert(value, d))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reserveWorkspaces reserves the memory that workers allocate in the first run: about two
// matrices each.
func (c *compiler) reserveWorkspaces(g *fusion.Group, s *routineStep) {
	const matrices = 2
	largest := 0
	for _, n := range slices.Concat(s.sizes[0], s.sizes[1]) {
		largest = max(largest, n)
	}
	c.p.memory.reserve(native.Allocation{
		Name:  "workspace of " + g.Name(),
		Bytes: bytesOf(ir.F64, []int{largest, matrices, min(s.batch, len(s.work))}),
	}, nil)
}

func (s *routineStep) run(r *runner) { r.job.run(s, s.batch) }

func (s *routineStep) do(worker, matrix int) {
	w := &s.work[worker]
	w.next = 0
	w.in = matrices(w.in[:0], s.in, s.sizes[0], matrix)
	w.out = matrices(w.out[:0], s.out, s.sizes[1], matrix)
	s.routine(w, s.node, w.in, w.out)
}

// matrices appends the elements of one matrix of each buffer.
func matrices(list [][]float64, from []*buffer, sizes []int, matrix int) [][]float64 {
	for i, b := range from {
		list = append(list, view[float64](b)[matrix*sizes[i]:(matrix+1)*sizes[i]])
	}
	return list
}

// workspace is the scratch memory of one worker, which grows in the first run.
type workspace struct {
	in, out [][]float64
	buffers [][]float64
	next    int // index of the first buffer that the current call has not taken
	pivots  []int
}

// take returns n numbers, not cleared.
func (w *workspace) take(n int) []float64 {
	if w.next == len(w.buffers) {
		w.buffers = append(w.buffers, nil)
	}
	if cap(w.buffers[w.next]) < n {
		w.buffers[w.next] = make([]float64, n)
	}
	w.next++
	return w.buffers[w.next-1][:n]
}
