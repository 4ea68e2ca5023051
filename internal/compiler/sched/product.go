package sched

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/ir/scalar"
)

// productPlan is how a contraction is computed by a library: by a product of
// matrices, and what follows it by a kernel of its own.
type productPlan struct {
	routine.Product
	left, right *fusion.Tensor
	// swapped says that the operands were swapped, and rest are what is added to the
	// product.
	swapped bool
	rest    []*fusion.Tensor
	// out is where the product goes: to a tensor that the group keeps, or nil for
	// memory of its own. behind is what a kernel behind it does, if alone is not set.
	out    *fusion.Tensor
	alone  bool
	behind finish
}

// planProduct finds out whether a contraction is a product that the target's
// library computes, as its operands lie.
func planProduct(e *emitter, g *fusion.Group, c *fusion.Contraction) (*productPlan, bool) {
	if e.caps.Products == loop.NoProducts || !tileable(c) {
		return nil, false
	}
	in, result := c.Node.Inputs(), c.Node.Types()[0].DType
	p := &productPlan{Product: routine.Product{
		Operand: in[0].Type().DType, Result: result,
		Batch: fusion.Product(c.Batch), M: fusion.Product(c.M), N: fusion.Product(c.N), K: fusion.Product(c.K),
		Workspace: e.caps.ProductBytes,
	}}
	p.TF32 = e.caps.TF32 && p.Operand == ir.F32
	if in[1].Type().DType != p.Operand || !p.layOut(e, c) || p.Check() != nil {
		return nil, false
	}
	p.out = ownResult(e, g, p.left, p.right)
	p.alone = p.out != nil && len(g.Members) == 1 && len(g.Copies) == 0
	plain := *p
	if p.take(e, g, c); e.caps.Refused.Has(p.Product) {
		*p = plain // what is added goes into the kernel behind it
	}
	if e.caps.Refused.Has(p.Product) {
		return nil, false
	}
	p.behind = newFinish(g, p)
	return p, true
}

// layOut finds the matrices in the operands and the result of a contraction. The
// result's rows are along the space that its last axis is of: where that is the
// first operand's, the product is computed turned, with the operands swapped.
func (p *productPlan) layOut(e *emitter, c *fusion.Contraction) (ok bool) {
	m, n := p.spaces(c)
	if p.Out, ok = p.resultLayout(e, c, m, n); !ok {
		return false
	}
	if p.Left, p.left, ok = p.operandLayout(e, c, 0); !ok {
		return false
	}
	if p.Right, p.right, ok = p.operandLayout(e, c, 1); !ok {
		return false
	}
	// Both were found with the free space down and the contracted one across,
	// which the right matrix has the other way round.
	p.Right.Turned = !p.Right.Turned
	if p.Out.Turned {
		p.Out.Turned, p.swapped = false, true
		p.M, p.N = p.N, p.M
		p.left, p.right = p.right, p.left
		p.Left, p.Right = p.Right, p.Left
		p.Left.Turned, p.Right.Turned = !p.Left.Turned, !p.Right.Turned
	}
	return true
}

// space is a space of a contraction: coordinates, and sizes.
type space struct {
	at   ir.Index
	dims []int
}

func (p *productPlan) spaces(c *fusion.Contraction) (m, n space) {
	return space{fusion.Coords("m", c.M), c.M}, space{fusion.Coords("n", c.N), c.N}
}

// operandLayout finds the matrices of an operand, which are stored as they are.
func (p *productPlan) operandLayout(e *emitter, c *fusion.Contraction, operand int) (routine.Layout, *fusion.Tensor, bool) {
	batch := space{fusion.Coords("b", c.Batch), c.Batch}
	m, n := p.spaces(c)
	free, k := []space{m, n}[operand], space{fusion.Coords("k", c.K), c.K}
	r := &reading{e: e, c: c, d: p.Operand, operand: operand, batch: batch.at}
	x := e.Simplify(c.Factor(operand, batch.at, free.at, k.at, e.reader().Operand(c.Node)))
	stored, ok := storedAt(r.d, x)
	if !ok || stored.valid != nil {
		return routine.Layout{}, nil, false
	}
	l, ok := layoutAt(stored.at, batch, free, k)
	return l, e.p.Tensor(stored.array), ok
}

// resultLayout finds the matrices of the result in memory of its type.
func (p *productPlan) resultLayout(e *emitter, c *fusion.Contraction, m, n space) (routine.Layout, bool) {
	batch := space{fusion.Coords("b", c.Batch), c.Batch}
	dims, _ := c.Node.Types()[0].Shape.Ints()
	at, step := scalar.Expr(loop.Int(0)), 1
	out := c.Out(batch.at, m.at, n.at)
	for axis := len(dims) - 1; axis >= 0; axis-- {
		at = scalar.Add(at, scalar.Mul(out[axis], loop.Int(step)))
		step *= dims[axis]
	}
	return layoutAt(e.Simplify(at), batch, m, n)
}

// layoutAt returns the layout of matrices with the element of given coordinates at
// a position, rows along down.
func layoutAt(at scalar.Expr, batch, down, across space) (l routine.Layout, ok bool) {
	factors := map[string]int{}
	if !linearFactors(at, 1, factors) {
		return l, false
	}
	var steps [3]int
	for i, s := range []space{batch, down, across} {
		if steps[i], ok = s.step(factors); !ok {
			return l, false
		}
	}
	if len(factors) > 0 {
		return l, false // it goes from place to place with a loop
	}
	rows, columns := fusion.Product(down.dims), fusion.Product(across.dims)
	switch step, row, column := steps[0], steps[1], steps[2]; {
	case columns == 1 || column == 1 && row >= columns:
		return routine.Layout{Row: max(row, columns), Step: step}, true
	case rows == 1 || row == 1 && column >= rows:
		return routine.Layout{Turned: true, Row: max(column, rows), Step: step}, true
	}
	return l, false
}

// linearFactors adds up the factors of the variables in x, times factor, and under ""
// what is left, unless that is 0; or reports that x is no sum of variables times numbers.
func linearFactors(x scalar.Expr, factor int, of map[string]int) bool {
	if n, ok := x.IntConst(); ok {
		if of[""] += factor * int(n); of[""] == 0 {
			delete(of, "")
		}
		return true
	}
	switch x.Op {
	case scalar.OpVar:
		of[x.Name] += factor
		return true
	case scalar.OpAdd:
		return linearFactors(x.Args[0], factor, of) && linearFactors(x.Args[1], factor, of)
	case scalar.OpMul:
		for i, a := range x.Args {
			if n, ok := a.IntConst(); ok {
				return linearFactors(x.Args[1-i], factor*int(n), of)
			}
		}
	}
	return false
}

// step returns how far neighbours along a space are apart, where all that are
// neighbours in row-major order are equally far. It takes its coordinates out of
// the factors.
func (s space) step(factors map[string]int) (step int, ok bool) {
	size, first := 1, true
	for i := len(s.dims) - 1; i >= 0; i-- {
		if s.dims[i] == 1 {
			continue
		}
		factor := factors[s.at[i].Name]
		delete(factors, s.at[i].Name)
		if first {
			step, first = factor, false
		}
		if factor != step*size {
			return 0, false
		}
		size *= s.dims[i]
	}
	return step, step >= 0
}

// ownResult returns where a library may leave the result of a contraction: in the
// tensor that the group stores it to, if it does.
func ownResult(e *emitter, g *fusion.Group, operands ...*fusion.Tensor) *fusion.Tensor {
	t := g.Members[0].Store[0]
	if t == nil || t.Outer != nil || e.p.Guards(t) || slices.Contains(operands, t) {
		return nil
	}
	return t
}

// productRate is how many operations a nanosecond a multiprocessor of an H200 does
// with each type in the library's products, of which other devices do as many more or
// fewer as their units are faster, and least how many a product has to have for it to be
// faster than kernels alone there. BenchmarkProducts of native/cuda measures both.
type productRate struct{ rate, least float64 }

var (
	ratesF32  = productRate{380, 1 << 27}
	ratesTF32 = productRate{2950, 1 << 25}
	rates16   = productRate{5600, 1 << 25}
)

// rateTurned is the rate of products of tf32 whose left factor alone is turned.
const rateTurned = 1970

// Bounds of the products that the library is faster at: rows of 16 bytes, which
// tensor cores take, and results that are no thinner than its tiles.
const (
	alignedBytes = 16
	leastSide    = 64
)

// rates returns what the library does with the product's types.
func (p *productPlan) rates() productRate {
	switch {
	case p.TF32 && p.Left.Turned && !p.Right.Turned:
		return productRate{rateTurned, ratesTF32.least}
	case p.TF32:
		return ratesTF32
	case p.Operand == ir.F32:
		return ratesF32
	}
	return rates16
}

// rate is how many operations a nanosecond the library does on a processor of the device.
func (p *productPlan) rate(d hardware.Profile) float64 {
	if !p.TF32 && p.Operand == ir.F32 {
		return ratesF32.rate * d.Flops / hardware.H200().Flops
	}
	return p.rates().rate * d.MatrixScale()
}

// aligned reports whether tensor cores can compute the product.
func (p *productPlan) aligned() bool {
	factors, result := p.Operand.Size(), p.Result.Size()
	return (p.Left.Row*factors)%alignedBytes == 0 && (p.Right.Row*factors)%alignedBytes == 0 && (p.Out.Row*result)%alignedBytes == 0
}

// pays reports whether the library is to be expected to be faster than kernels at all.
func (p *productPlan) pays(c *fusion.Contraction) bool {
	byTensorCores := p.TF32 || p.Operand != ir.F32
	return 2*points(c) >= p.rates().least && min(p.M, p.N) >= leastSide && (!byTensorCores || p.aligned())
}

// cost estimates the nanoseconds of the call, and of the kernel behind it.
func (p *productPlan) cost(c *fusion.Contraction, caps loop.Caps) float64 {
	d, stored := caps.Profile(), float64(p.Result.Size())*sums(c)
	time := d.Launch + math.Max(2*points(c)/p.rate(d), stored/d.Bytes)/float64(d.Processors)
	time += p.libraryFinishes(caps)
	if !p.alone {
		time = finishWorth * (time + p.behind.apart(caps))
	}
	return time
}

// tilesTime estimates the nanoseconds of tiles without multiply-adds: at the rate that
// they have where they fill the device, or by what is known of the tile that is taken.
func tilesTime(c *fusion.Contraction, caps loop.Caps) float64 {
	time := caps.Profile().Launch + 2*points(c)/caps.Profile().Arithmetic()
	if t, parts, ok := chooseTile(c, caps); ok {
		time = math.Max(time, t.cost(c, parts, caps))
	}
	return time
}

// faster reports whether the library is expected to take less time than kernels: those
// of mma, if it is not nil, or tiles without multiply-adds.
func (p *productPlan) faster(c *fusion.Contraction, caps loop.Caps, mma *mmaPlan) bool {
	own := tilesTime(c, caps)
	if mma != nil {
		own = mma.cost(c, caps)
	}
	return p.pays(c) && p.cost(c, caps) < own+p.behind.within(caps)
}

// take leaves to the library what follows a product, where that is all that the group
// keeps, and is a bias and a matrix of the result's layout that are added, each or not. In
// f32 alone: in 16 bits the library rounds once where the graph rounds the product too. A
// maximum with 0 is not left to it, for it keeps what is no number.
func (p *productPlan) take(e *emitter, g *fusion.Group, c *fusion.Contraction) {
	if p.out != nil || p.Batch != 1 || p.Result != ir.F32 || len(g.Copies) > 0 {
		return
	}
	f := &follower{e: e, c: c, p: p, product: scalar.FreeVar("product", ir.F32)}
	k, ok := f.only(g)
	if !ok || k.t.Outer != nil || e.p.Guards(k.t) || k.t.DType != p.Result {
		return
	}
	_, at := e.p.Place(k.t, k.at)
	if lies, ok := f.layout(e.Simplify(at)); !ok || lies != p.Out {
		return
	}
	if !f.sum(k.value) || f.met != 1 || k.t.Root() == p.left.Root() || k.t.Root() == p.right.Root() || f.reads(k.t) {
		return
	}
	p.Bias, p.Adds, p.Added = f.bias != nil, f.adds != nil, f.added
	p.out, p.alone = k.t, true
	for _, t := range []*fusion.Tensor{f.bias, f.adds} {
		if t != nil {
			p.rest = append(p.rest, t)
		}
	}
}

// follower finds out what follows a product.
type follower struct {
	e       *emitter
	c       *fusion.Contraction
	p       *productPlan
	product scalar.Expr
	// met counts how often the product was met.
	met        int
	bias, adds *fusion.Tensor
	added      routine.Layout
}

// only returns what a group keeps, for the product at coordinates of the contraction,
// if it is one value.
func (f *follower) only(g *fusion.Group) (k kept, ok bool) {
	m := g.Members[0]
	b := fusion.Coords("b", f.c.Batch)
	rows, columns := f.p.spaces(f.c)
	product := f.c.Out(b, rows.at, columns.at)
	at := make(ir.Index, len(g.Outer))
	for axis, coordinate := range m.Coord {
		if coordinate >= 0 {
			at[coordinate] = product[axis]
		}
	}
	for _, x := range at {
		if x == nil {
			return k, false
		}
	}
	rd := f.e.reader()
	rd.Given = map[ir.Value]scalar.Expr{m.Node.Result(0): f.product}
	all := f.e.values(g, rd, at)
	if len(all) != 1 {
		return k, false
	}
	return all[0], true
}

// layout returns how a matrix of M×N lies with its element at a position.
func (f *follower) layout(at scalar.Expr) (routine.Layout, bool) {
	down, across := f.sides()
	return layoutAt(at, space{}, down, across)
}

// sides are the spaces of the rows and columns of the result, as the library has it.
func (f *follower) sides() (down, across space) {
	down, across = f.p.spaces(f.c)
	if f.p.swapped {
		return across, down
	}
	return down, across
}

// sum takes a sum apart.
func (f *follower) sum(x scalar.Expr) bool {
	switch {
	case scalar.Equal(x, f.product):
		f.met++
		return true
	case x.Op == scalar.OpAdd:
		return f.sum(x.Args[0]) && f.sum(x.Args[1])
	case x.Op != scalar.OpLoad || x.Type != ir.F32 || x.Ref < 0:
		return false
	}
	t := f.e.p.Tensor(x.Ref)
	at := f.e.Simplify(x.Args[0])
	if f.bias == nil && f.perColumn(at) {
		f.bias = t
		return true
	}
	if l, ok := f.layout(at); ok && f.adds == nil && !l.Turned {
		f.adds, f.added = t, l
		return true
	}
	return false
}

// perColumn reports whether a position is the number of the column.
func (f *follower) perColumn(at scalar.Expr) bool {
	factors := map[string]int{}
	if !linearFactors(at, 1, factors) {
		return false
	}
	down, across := f.sides()
	step, ok := across.step(factors)
	if !ok || step != 1 {
		return false
	}
	step, ok = down.step(factors)
	return ok && step == 0 && len(factors) == 0
}

// reads reports whether what is added lies where a tensor does.
func (f *follower) reads(t *fusion.Tensor) bool {
	return f.bias != nil && f.bias.Root() == t.Root() || f.adds != nil && f.adds.Root() == t.Root()
}

// libraryFinishes estimates the nanoseconds that what follows a product takes the
// library: what it reads besides.
func (p *productPlan) libraryFinishes(caps loop.Caps) float64 {
	if !p.Adds {
		return 0
	}
	return float64(p.Result.Size()) * float64(p.Batch*p.M*p.N) / caps.Profile().Bytes / float64(caps.Profile().Processors)
}

// finish is what follows a product: for each of so many results so many operations, and
// bytes that are read and written besides the product itself.
type finish struct {
	results, weight float64
	product         float64 // bytes of one result of the product
	wholes, bytes   float64 // values of as many elements that are read, and all bytes for a result
}

// newFinish returns what a group does behind a product that is computed as planned.
func newFinish(g *fusion.Group, p *productPlan) finish {
	f := finish{results: float64(p.Batch * p.M * p.N), weight: float64(g.EpilogueWeight()), product: float64(p.Result.Size())}
	for _, t := range g.Reads() {
		if t != p.left && t != p.right && float64(t.Len()) >= f.results {
			f.wholes++
			f.bytes += float64(loop.DeviceSize(t.DType))
		}
	}
	for _, t := range g.Writes() {
		if t != p.out {
			f.bytes += float64(loop.DeviceSize(t.DType))
		}
	}
	return f
}

// Costs of what follows a product, in nanoseconds a multiprocessor and result. Within a
// kernel of multiply-adds few threads do it, while no products are computed. On an H200
// 12 to 20 µs for a bias and a maximum in products of 4096, 110 for the gelu and 300 for
// its gradient in those of 16384 × 3072. Apart it is a map, whose operations take what
// the device's rate says, 1.5 instructions each, or its bytes do. The second way is
// worth it only where the first is expected to take longer by a factor.
const (
	finishWithin = 0.12
	finishWeight = 0.011
	finishWhole  = 0.18
	apartWeight  = 0.0067
	finishWorth  = 1.2
)

// finishStart is how many nanoseconds more than another launch a kernel takes that waits
// for a library's product.
const finishStart = 1000

// within is what it takes in the kernel that computes the product, nothing where
// nothing follows.
func (f finish) within(caps loop.Caps) float64 {
	if f.weight == 0 {
		return 0
	}
	return f.results * (finishWithin + finishWeight*f.weight + finishWhole*f.wholes) / float64(caps.Profile().Processors)
}

// apart is what a kernel behind the product takes.
func (f finish) apart(caps loop.Caps) float64 {
	d := caps.Profile()
	return d.Launch + finishStart + f.results*math.Max((f.product+f.bytes)/d.Bytes, apartWeight*f.weight)/float64(d.Processors)
}

// finishTogether is how many neighbouring results a thread of such a kernel makes: reads
// of several narrow values are on their way at once. finishWritten is how many operations
// are written out for them at most.
const (
	finishTogether = 4
	finishWritten  = 320
)

// scheduleProduct computes a contraction by a library, and what follows it by a kernel.
func scheduleProduct(e *emitter, g *fusion.Group, p *productPlan) []Launch {
	out := p.out
	if out == nil {
		dims, _ := g.Members[0].Node.Types()[0].Shape.Ints()
		out = e.p.Scratch("product", p.Result, dims...)
	}
	space := e.p.Scratch("workspace", ir.U32, ceilDiv(p.Workspace, 4))
	call := Launch{Routine: p.Product, Args: append([]*fusion.Tensor{p.left, p.right, space, out}, p.rest...)}
	if p.alone {
		return []Launch{call}
	}
	return []Launch{call, finishProduct(e, g, p, out)}
}

// finishProduct makes of a product what the group keeps other than the product.
func finishProduct(e *emitter, g *fusion.Group, p *productPlan, out *fusion.Tensor) Launch {
	n := g.Members[0].Node
	together := finishTogether
	if fusion.Product(g.Outer)%together != 0 || together*g.EpilogueWeight() > finishWritten {
		together = 1
	}
	w := newMover(e.another().writer(mapThreads))
	w.threads(fusion.Product(g.Outer)/together, func(i scalar.Expr) {
		byTensor := make([][]kept, len(g.Writes()))
		for k := range together {
			at := w.unflatten(scalar.Add(scalar.Mul(i, loop.Int(together)), loop.Int(k)), g.Outer)
			rd := w.reader()
			rd.Given = map[ir.Value]scalar.Expr{n.Result(0): w.emitter.load(out, g.Members[0].At(at))}
			for i, s := range w.values(g, rd, at) {
				s.value = w.Simplify(s.value)
				byTensor[i] = append(byTensor[i], s)
			}
		}
		stores := slices.DeleteFunc(slices.Concat(byTensor...), func(s kept) bool { return s.t == p.out })
		for _, s := range stores {
			w.see(s.value)
		}
		w.seeStores(stores, together)
		w.settle()
		w.store(stores, together, all(together))
	})
	return w.launch(g.Name())
}
