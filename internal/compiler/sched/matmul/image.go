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

// image is a copy of an operand of multiply-adds in scratch memory, with one of its axes last and, along it, zeros up
// to whole pieces. The windows of a convolution overlap: in the order of the contraction, which [stageOperand] writes,
// each element of the operand is there once for each window that has it.
type image struct {
	operand int
	dims    []int // of the operand
	axis    int   // the axis of the operand that is the last of the image
	last    moved // the coordinate along it
	layout  mmaLayout
	source  contiguity // contiguousAlongK is along the last axis of the image, contiguousAlongFree along that of the operand
}

// moved is a coordinate of a space that becomes the last one. Its length is rounded up. The zero value moves nothing.
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

// imagesOf returns the images of an operand: those with an axis last whose position is a coordinate of the free or of
// the contracted space.
func imagesOf(e *emit.Emitter, c *fusion.Contraction, d ir.DType, operand int) (list []*image) {
	dims, _ := c.Node.Input(operand).Shape().Ints()
	spaces := [2][]int{c.Free(operand), c.K}
	at, _ := c.Address(operand, fusion.Coords("b", c.Batch), variables("f", spaces[0]), variables("k", spaces[1]))
	each := loop.ChunkElements(d)
	for axis, x := range at {
		for i, l := range []mmaLayout{alongFree, alongK} {
			from := slices.IndexFunc(variables([2]string{"f", "k"}[i], spaces[i]), func(v scalar.Expr) bool { return scalar.Equal(v, x) })
			if from < 0 || spaces[i][from] != dims[axis] {
				continue
			}
			last := moved{from, dims[axis], emit.CeilDiv(dims[axis], each) * each}
			g := &image{operand: operand, dims: dims, axis: axis, last: last, layout: l}
			padsColumns := operand == 1 && l == alongFree && last.padded != last.length
			if g.source = g.sourceIn(e, c); !padsColumns && fusion.Product(g.sizes()) <= loop.MaxElements {
				list = append(list, g)
			}
		}
	}
	return list
}

// variables returns coordinates that are variables also along axes of size 1.
func variables(prefix string, dims []int) ir.Index {
	at := make(ir.Index, len(dims))
	for i, n := range dims {
		at[i] = scalar.NewVar(prefix+strconv.Itoa(i), ir.I32, 0, int64(max(n-1, 1)))
	}
	return at
}

// sizes returns the sizes of the image.
func (x *image) sizes() []int { return moved{x.axis, x.last.length, x.last.padded}.sizes(x.dims) }

// sourceIn returns the contiguity of what the image copies: along its last axis, along that of the operand, or neither.
func (x *image) sourceIn(e *emit.Emitter, c *fusion.Contraction) contiguity {
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
	case along(x.axis):
		return contiguousAlongK
	case along(len(x.dims) - 1):
		return contiguousAlongFree
	}
	return scattered
}

// load returns the load function of an operand from its image t.
func (x *image) load(e *emit.Emitter, t *fusion.Tensor) ir.Load {
	return func(_ int, at ir.Index) scalar.Expr {
		at = append(slices.Delete(slices.Clone(at), x.axis, x.axis+1), at[x.axis])
		root, place := e.Partition.Place(t, at)
		return scalar.LoadAt(root.ID, t.DType, e.Simplify(place))
	}
}

// write returns the launch that writes the image. A thread writes whole pieces, and neighbouring threads neighbouring
// ones, or, where the operand is contiguous across the image, pieces of neighbouring rows: the loads coalesce.
func (x *image) write(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction, p *mmaPlan) (emit.Launch, *fusion.Tensor) {
	name := [2]string{"left_image", "right_image"}[x.operand]
	t := e.Partition.Scratch(name, p.operand, x.sizes()...)
	run, across, rank := loop.ChunkElements(p.operand), x.source == contiguousAlongFree, len(x.dims)
	if across && x.last.padded%(2*run) == 0 {
		run *= 2
	}
	w := emit.NewVectorizer(e.Sibling().WithThreads(emit.GroupThreads))
	load := w.Reader().Operand(c.Node)
	rows, pieces := x.sizes()[:rank-1], x.last.padded/run
	element := func(at ir.Index) scalar.Expr {
		in := moved{x.axis, x.last.length, x.last.padded}
		from, inside := in.clamped(in.back(at))
		v := load(x.operand, from)
		if inside != nil {
			v = scalar.Select(inside, v, scalar.ConstF(v.Type, 0))
		}
		return w.Simplify(v)
	}
	w.Threads(t.Len()/run, func(i scalar.Expr) {
		var at ir.Index // of the piece, in the image
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

// readFrom returns the contraction as it reads the images, or false where they need different coordinates last.
func readFrom(c *fusion.Contraction, images [2]*image) (*fusion.Contraction, bool) {
	var free [2]moved
	var k moved
	for i, x := range images {
		switch {
		case x == nil:
		case x.layout == alongFree:
			free[i] = x.last
		case k.padded > 0 && k != x.last:
			return nil, false
		default:
			k = x.last
		}
	}
	read := func(operand int) func(batch, at, k ir.Index) (ir.Index, scalar.Expr) {
		return func(batch, at, kAt ir.Index) (from ir.Index, valid scalar.Expr) {
			at, kAt = free[operand].back(at), k.back(kAt)
			var inside scalar.Expr
			if x := images[operand]; x == nil || x.layout != alongK {
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

// orImages returns the plan with images of operands that it stages, where it takes less time with them.
func (p *mmaPlan) orImages(e *emit.Emitter, g *fusion.Group) *mmaPlan {
	if !slices.Contains(p.layout[:], staged) || !overlaps(p.c) {
		return p
	}
	var options [2][]*image
	for i := range options {
		options[i] = []*image{nil}
		if p.layout[i] == staged {
			options[i] = append(options[i], imagesOf(e, p.c, p.operand, i)...)
		}
	}
	best, least := p, p.least(e.Caps)
	for _, left := range options[0] {
		for _, right := range options[1] {
			if left == nil && right == nil {
				continue
			}
			q, ok := p.with(e, g, [2]*image{left, right})
			if !ok {
				continue
			}
			if time := q.least(e.Caps); time < least {
				best, least = q, time
			}
		}
	}
	return best
}

// with returns the plan with images, or false if multiply-adds cannot read them.
func (p *mmaPlan) with(e *emit.Emitter, g *fusion.Group, images [2]*image) (*mmaPlan, bool) {
	c, ok := readFrom(p.c, images)
	if !ok || max(fusion.Product(c.M), fusion.Product(c.N), fusion.Product(c.K)) > loop.MaxElements {
		return nil, false
	}
	q := &mmaPlan{operand: p.operand, c: c, images: images}
	q.setLayouts(e, g)
	for i, x := range images {
		ok = ok && (x == nil || q.layout[i] == x.layout)
	}
	return q, ok
}

// least returns the nanoseconds that the plan takes with its fastest tile.
func (p *mmaPlan) least(caps loop.Caps) float64 {
	return p.fastest(caps, math.Inf(1)).cost(caps)
}

// imageTime estimates the nanoseconds of the kernels that write images.
func (p *mmaPlan) imageTime(caps loop.Caps) (time float64) {
	for _, x := range p.images {
		if x != nil {
			moves := float64(fusion.Product(x.dims)+fusion.Product(x.sizes())) * float64(p.operand.Size())
			time += caps.Profile().Launch + stagingFactors[x.source]*moves/caps.Profile().Bandwidth()
		}
	}
	return time
}

// wanted returns the condition that results at positions of both sides are some of the contraction, not of the zeros
// in an image.
func (m *mmaEmitter) wanted(position [2]scalar.Expr) scalar.Expr {
	x := m.p.images[0]
	if x == nil || x.layout == alongK || x.last.padded == x.last.length {
		return scalar.ConstBool(true)
	}
	return scalar.Lt(scalar.Mod(position[m.p.rows], loop.Int(x.last.padded)), loop.Int(x.last.length))
}

// load returns the load function of an operand, from its image where it has one.
func (m *mmaEmitter) load(operand int, scratch *fusion.Tensor) ir.Load {
	if x := m.p.images[operand]; x != nil {
		return x.load(m.Emitter, scratch)
	}
	return m.Reader().Operand(m.out.c.Node)
}
