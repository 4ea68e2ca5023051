package cpu

import (
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native"
)

// routine holds the functions that compute an op in f32 and in f64. Other types are converted; f32
// is computed in f64 if it has no function.
type routine struct {
	single matrixFunction[float32]
	double matrixFunction[float64]
}

// matrixFunction computes results for one matrix of each operand, in row-major order. It may
// overwrite operands.
type matrixFunction[T simd.Float] func(w *workspace[T], n *ir.Node, in, out [][]T)

// claims reports whether the backend has a routine for a node, so that it is not expanded.
func claims(n *ir.Node) bool {
	_, ok := routines[n.Op()]
	return ok || readsPacked(n) || isExchange(n) || isCached(n) || isFourier(n)
}

// routineStep runs a routine for each matrix of a batch.
type routineStep[T simd.Float] struct {
	function matrixFunction[T]
	node     *ir.Node
	batch    int
	chunk    int // matrices of a chunk
	in, out  []*buffer
	read     []bool   // the results that are used
	sizes    [2][]int // elements of one matrix of each operand and of each result
	work     []workspace[T]
}

// routine compiles a call: it materialises the operands, computes all matrices, and stores the
// used results.
func (c *compiler) routine(g *fusion.Group) error {
	n := g.Members[0].Node
	if readsPacked(n) {
		if n.Op() == ops.OpQuantizedGroupedMatMul {
			return groupedProduct(c, g)
		}
		return c.packedProduct(g)
	}
	if isExchange(n) {
		return c.exchange(g)
	}
	if isCached(n) {
		return c.cachedAttention(g)
	}
	if isFourier(n) {
		return fourier(c, g)
	}
	r, x := routines[n.Op()], fusion.RoutineOf(g)
	if r.single != nil && x.Node.Input(0).DType() != ir.F64 {
		return routineOf(c, g, x, ir.F32, r.single)
	}
	return routineOf(c, g, x, ir.F64, r.double)
}

// routineOf is [compiler.routine] for a function that computes in a type.
func routineOf[T simd.Float](c *compiler, g *fusion.Group, x *fusion.Routine, computed ir.DType, function matrixFunction[T]) error {
	s := &routineStep[T]{function: function, node: x.Node, batch: 1, work: make([]workspace[T], workers())}
	lead := x.In[0].Dims[:len(x.In[0].Dims)-2]
	if s.batch = product(lead); s.batch == 0 {
		return nil
	}
	for i, e := range x.In {
		e.Value = scalar.Convert(e.Value, computed)
		buf, err := c.materialize(fmt.Sprint(g.Name(), " operand ", i), e)
		if err != nil {
			return err
		}
		s.in, s.sizes[0] = append(s.in, buf), append(s.sizes[0], product(e.Dims[len(lead):]))
	}
	for _, t := range x.Node.Types() {
		dims, _ := t.Shape.Ints()
		s.out = append(s.out, c.scratch(computed, product(dims)))
		s.sizes[1] = append(s.sizes[1], product(dims[len(lead):]))
		s.read = append(s.read, x.Out[len(s.read)] != nil)
	}
	s.chunk = s.chunkOf()
	c.add(s)
	c.reserveWorkspaces(g, computed, s.batch, slices.Concat(s.sizes[0], s.sizes[1]))
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
func (c *compiler) reserveWorkspaces(g *fusion.Group, d ir.DType, batch int, sizes []int) {
	const matrices = 2
	c.program.memory.reserve(native.Allocation{
		Name:  "workspace of " + g.Name(),
		Bytes: bytesOf(d, []int{slices.Max(sizes), matrices, min(batch, workers())}),
	}, nil)
}

// chunkOf returns how many matrices a chunk has: several small ones, which take less time than a chunk's begin and end,
// but few enough that workers do not wait for each other.
func (s *routineStep[T]) chunkOf() int {
	const elements, perWorker = 1024, 4
	return max(1, min(elements/max(s.sizes[0][0], 1), s.batch/(perWorker*workers())))
}

func (s *routineStep[T]) run(r *runner) { r.job.run(s, (s.batch+s.chunk-1)/s.chunk) }

func (s *routineStep[T]) do(worker, chunk int) {
	w, first := &s.work[worker], chunk*s.chunk
	w.read = s.read
	w.in, w.out = elements(w.in[:0], s.in, s.sizes[0], first), elements(w.out[:0], s.out, s.sizes[1], first)
	for range min(s.chunk, s.batch-first) {
		w.next = 0
		in, out := matrices(w.operands[:0], w.in, s.sizes[0]), matrices(w.results[:0], w.out, s.sizes[1])
		s.function(w, s.node, in, out)
	}
}

// elements appends the elements of each buffer from a matrix on.
func elements[T simd.Float](list [][]T, from []*buffer, sizes []int, matrix int) [][]T {
	for i, b := range from {
		list = append(list, view[T](b)[matrix*sizes[i]:])
	}
	return list
}

// matrices appends the next matrix of each of lists, and removes it there.
func matrices[T simd.Float](next, lists [][]T, sizes []int) [][]T {
	for i, n := range sizes {
		next = append(next, lists[i][:n])
		lists[i] = lists[i][n:]
	}
	return next
}

// maxMatrices is the most operands or results of a routine.
const maxMatrices = 4

// workspace is the scratch memory of one worker, which grows in the first run.
type workspace[T simd.Float] struct {
	in, out [][]T // the elements of each operand and each result that are left
	// operands and results are room for one matrix of each.
	operands, results [maxMatrices][]T
	read              []bool // the results that are used; others need no values
	buffers           [][]T
	next              int // index of the first buffer that the current call has not taken
	pivots            []int
	space             simd.Space[T] // of products
	packed            []T           // a block of a triangle
	panel             []T           // columns that are solved with it
	halves            conquest[T]   // of eigenvalues
	t                 tridiagonal
}

// take returns n numbers, not cleared.
func (w *workspace[T]) take(n int) []T {
	if w.next == len(w.buffers) {
		w.buffers = append(w.buffers, nil)
	}
	if cap(w.buffers[w.next]) < n {
		w.buffers[w.next] = make([]T, n)
	}
	w.next++
	return w.buffers[w.next-1][:n]
}
