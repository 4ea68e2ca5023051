package matmul

import (
	"math"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// relayout is a copy of an operand of multiply-adds in scratch memory in another layout: one of its axes is the last,
// padded with zeros to whole pieces. It is shorter than a staged operand where windows of a convolution overlap:
// [stageOperand] writes an element once for each window that has it, a relayout writes it once.
type relayout struct {
	operand int
	dims    []int // of the operand
	axis    moved // the axis of the operand that is the last of the copy
	read    moved // the coordinate of the free or the contracted space that runs along it
	layout  mmaLayout
	source  contiguity // contiguousAlongK is along the last axis of the copy, contiguousAlongFree along that of the operand
}

// moved is a coordinate of a space that becomes the last one, with its length rounded up. The zero value moves nothing.
type moved struct {
	from           int
	length, padded int
}

// sizes returns the sizes of the space with the coordinate moved.
func (m moved) sizes(dims []int) []int {
	if m.padded == 0 {
		return dims
	}
	return append(slices.Delete(slices.Clone(dims), m.from, m.from+1), m.padded)
}

// back returns coordinates in the order of the space before the move.
func (m moved) back(at ir.Index) ir.Index {
	if m.padded == 0 {
		return at
	}
	return slices.Insert(slices.Clone(at[:len(at)-1]), m.from, at[len(at)-1])
}

// clamped returns coordinates in the order of the space, within its sizes, and the condition that they were, nil if
// they always are.
func (m moved) clamped(at ir.Index) (ir.Index, scalar.Expr) {
	if m.padded == m.length {
		return at, nil
	}
	at = slices.Clone(at)
	inside := scalar.Lt(at[m.from], loop.Int(m.length))
	at[m.from] = scalar.Min(at[m.from], loop.Int(m.length-1))
	return at, inside
}

// overlaps reports whether the contraction reads elements of an operand several times for one position of the other's
// free space, as windows do.
func overlaps(c *fusion.Contraction) bool {
	for i := range c.Node.Inputs() {
		size, known := c.Node.Input(i).Shape().Size().Const()
		if known && fusion.Product(c.Batch)*fusion.Product(c.Free(i))*fusion.Product(c.K) > size {
			return true
		}
	}
	return false
}

// relayoutsOf returns the relayouts that an operand can have: the position along their last axis is a coordinate of the
// free or of the contracted space.
func relayoutsOf(e *emit.Emitter, c *fusion.Contraction, d ir.DType, operand int) (list []*relayout) {
	dims, _ := c.Node.Input(operand).Shape().Ints()
	spaces := [2][]int{c.Free(operand), c.K}
	at, _ := c.Address(operand, fusion.Coords("b", c.Batch), variables("f", spaces[0]), variables("k", spaces[1]))
	each := loop.ChunkElements(d)
	for axis, position := range at {
		for i, l := range []mmaLayout{alongFree, alongK} {
			from := slices.IndexFunc(variables([2]string{"f", "k"}[i], spaces[i]), func(v scalar.Expr) bool { return scalar.Equal(v, position) })
			if from < 0 || spaces[i][from] != dims[axis] {
				continue
			}
			length, padded := dims[axis], emit.CeilDiv(dims[axis], each)*each
			x := &relayout{operand: operand, dims: dims, axis: moved{axis, length, padded}, read: moved{from, length, padded}, layout: l}
			padsColumns := operand == 1 && l == alongFree && padded != length
			if x.source = x.sourceIn(e, c); !padsColumns && fusion.Product(x.sizes()) <= loop.MaxElements {
				list = append(list, x)
			}
		}
	}
	return list
}

// variables returns a variable for each axis, also for those of size 1.
func variables(prefix string, dims []int) ir.Index {
	at := make(ir.Index, len(dims))
	for i, n := range dims {
		at[i] = scalar.NewVar(prefix+strconv.Itoa(i), ir.I32, 0, int64(max(n-1, 1)))
	}
	return at
}

// sizes returns the sizes of the copy.
func (x *relayout) sizes() []int { return x.axis.sizes(x.dims) }

// sourceIn returns the contiguity of the tensor to copy: along the last axis of the copy, along that of the operand, or
// neither.
func (x *relayout) sourceIn(e *emit.Emitter, c *fusion.Contraction) contiguity {
	load := e.Reader().Operand(c.Node)
	along := func(axis int) bool {
		here := make(ir.Index, len(x.dims))
		for i, n := range x.dims {
			here[i] = scalar.NewVar("x"+strconv.Itoa(i), ir.I32, 0, int64(max(n-2, 0)))
		}
		there := slices.Clone(here)
		there[axis] = scalar.Add(there[axis], loop.Int(1))
		return adjacent(e, load(x.operand, here), load(x.operand, there))
	}
	switch {
	case along(x.axis.from):
		return contiguousAlongK
	case along(len(x.dims) - 1):
		return contiguousAlongFree
	}
	return scattered
}

// load returns the load function of the operand from its copy t.
func (x *relayout) load(e *emit.Emitter, t *fusion.Tensor) ir.Load {
	return func(_ int, at ir.Index) scalar.Expr {
		axis := x.axis.from
		at = append(slices.Delete(slices.Clone(at), axis, axis+1), at[axis])
		root, place := e.Partition.Place(t, at)
		return scalar.LoadAt(root.ID, t.DType, e.Simplify(place))
	}
}

// write returns the launch that writes the copy. A thread writes whole pieces, and neighbouring threads neighbouring
// ones, or, where the operand is contiguous across the copy, pieces of neighbouring rows: the loads coalesce.
func (x *relayout) write(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction, p *mmaPlan) (emit.Launch, *fusion.Tensor) {
	name := [2]string{"left_relayout", "right_relayout"}[x.operand]
	t := e.Partition.Scratch(name, p.operand, x.sizes()...)
	run, across, rank := loop.ChunkElements(p.operand), x.source == contiguousAlongFree, len(x.dims)
	if across && x.axis.padded%(2*run) == 0 {
		run *= 2
	}
	w := emit.NewVectorizer(e.Sibling().WithThreads(emit.GroupThreads))
	load := w.Reader().Operand(c.Node)
	rows, pieces := x.sizes()[:rank-1], x.axis.padded/run
	element := func(at ir.Index) scalar.Expr {
		from, inside := x.axis.clamped(x.axis.back(at))
		v := load(x.operand, from)
		if inside != nil {
			v = scalar.Select(inside, v, scalar.ConstF(v.Type, 0))
		}
		return w.Simplify(v)
	}
	w.Threads(t.Len()/run, func(i scalar.Expr) {
		var at ir.Index // of the piece, in the copy
		if across {
			at = w.Unflatten(i, append([]int{pieces}, rows...))
			at = append(at[1:rank:rank], at[0])
		} else {
			at = w.Unflatten(i, append(slices.Clone(rows), pieces))
		}
		storePieces(w, t, run, at, element)
	})
	return w.Launch(g.Name() + "_" + name), t
}

// storePieces stores run neighbouring elements of t, at a position whose last coordinate counts runs.
func storePieces(w *emit.Vectorizer, t *fusion.Tensor, run int, at ir.Index, element func(at ir.Index) scalar.Expr) {
	last := len(at) - 1
	stores := make([]emit.PendingStore, run)
	for j := range stores {
		here := slices.Clone(at)
		here[last] = w.Simplify(scalar.Add(scalar.Mul(at[last], loop.Int(run)), loop.Int(j)))
		stores[j] = emit.PendingStore{Tensor: t, At: here, Value: element(here)}
	}
	w.ObserveStores(stores, run)
	w.Decide()
	w.Store(stores, run, emit.Always(run))
}

// readFrom returns the contraction as it reads the relayouts, or false where they need different coordinates last.
func readFrom(c *fusion.Contraction, relayouts [2]*relayout) (*fusion.Contraction, bool) {
	var free [2]moved
	var k moved
	for i, x := range relayouts {
		switch {
		case x == nil:
		case x.layout == alongFree:
			free[i] = x.read
		case k.padded > 0 && k != x.read:
			return nil, false
		default:
			k = x.read
		}
	}
	read := func(operand int) func(batch, at, k ir.Index) (ir.Index, scalar.Expr) {
		return func(batch, at, kAt ir.Index) (from ir.Index, valid scalar.Expr) {
			at, kAt = free[operand].back(at), k.back(kAt)
			var inside scalar.Expr
			if x := relayouts[operand]; x == nil || x.layout != alongK {
				kAt, inside = k.clamped(kAt)
			}
			from, valid = c.Address(operand, batch, at, kAt)
			return from, emit.Both(valid, inside)
		}
	}
	d := *c
	d.M, d.N, d.K = free[0].sizes(c.M), free[1].sizes(c.N), k.sizes(c.K)
	d.A, d.B = read(0), read(1)
	d.Out = func(batch, m, n ir.Index) ir.Index {
		m, _ = free[0].clamped(free[0].back(m))
		return c.Out(batch, m, free[1].back(n))
	}
	return &d, true
}

// orRelayouts returns the plan with relayouts of the operands that it stages, where it takes less time with them.
func (p *mmaPlan) orRelayouts(e *emit.Emitter, g *fusion.Group) *mmaPlan {
	if !slices.Contains(p.layout[:], staged) || !overlaps(p.c) {
		return p
	}
	var options [2][]*relayout
	for i := range options {
		options[i] = []*relayout{nil}
		if p.layout[i] == staged {
			options[i] = append(options[i], relayoutsOf(e, p.c, p.operand, i)...)
		}
	}
	best, shortest := p, p.minTime(e.Caps)
	for _, left := range options[0] {
		for _, right := range options[1] {
			if left == nil && right == nil {
				continue
			}
			q, ok := p.with(e, g, [2]*relayout{left, right})
			if !ok {
				continue
			}
			if time := q.minTime(e.Caps); time < shortest {
				best, shortest = q, time
			}
		}
	}
	return best
}

// with returns the plan with relayouts, or false if multiply-adds cannot read them.
func (p *mmaPlan) with(e *emit.Emitter, g *fusion.Group, relayouts [2]*relayout) (*mmaPlan, bool) {
	c, ok := readFrom(p.c, relayouts)
	if !ok || max(fusion.Product(c.M), fusion.Product(c.N), fusion.Product(c.K)) > loop.MaxElements {
		return nil, false
	}
	q := &mmaPlan{operand: p.operand, c: c, relayouts: relayouts}
	q.setLayouts(e, g)
	for i, x := range relayouts {
		ok = ok && (x == nil || q.layout[i] == x.layout)
	}
	return q, ok
}

// minTime returns the nanoseconds that the plan takes with its fastest tile.
func (p *mmaPlan) minTime(caps loop.Caps) float64 {
	return p.fastest(caps, math.Inf(1)).cost(caps)
}

// relayoutTime estimates the nanoseconds of the kernels that write relayouts.
func (p *mmaPlan) relayoutTime(caps loop.Caps) (time float64) {
	for _, x := range p.relayouts {
		if x != nil {
			moves := float64(fusion.Product(x.dims)+fusion.Product(x.sizes())) * float64(p.operand.Size())
			time += caps.Profile().Launch + stagingFactors[x.source]*moves/caps.Profile().Bandwidth()
		}
	}
	return time
}

// stored returns the condition that the results at positions of both sides are stored: they are the contraction's, not those
// of the zeros that pad a relayout.
func (m *mmaEmitter) stored(position [2]scalar.Expr) scalar.Expr {
	at := position[m.p.rowOperand]
	exists := m.out.c.Exists(m.out.batch, m.Unflatten(m.Simplify(at), m.out.c.M))
	if x := m.p.relayouts[0]; x != nil && x.layout == alongFree && x.read.padded != x.read.length {
		exists = scalar.And(exists, scalar.Lt(scalar.Mod(at, loop.Int(x.read.padded)), loop.Int(x.read.length)))
	}
	return exists
}

// load returns the load function of an operand, from its relayout where it has one.
func (m *mmaEmitter) load(operand int, scratch *fusion.Tensor) ir.Load {
	if x := m.p.relayouts[operand]; x != nil {
		return x.load(m.Emitter, scratch)
	}
	return m.Reader().Operand(m.out.c.Node)
}
