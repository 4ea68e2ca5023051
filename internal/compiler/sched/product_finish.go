package sched

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

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
