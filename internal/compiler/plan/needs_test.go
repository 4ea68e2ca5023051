package plan

import (
	"math"
	"math/rand/v2"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sim/tally"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Needs are the operations that a group needs however it is scheduled.
type Needs struct {
	Ops tally.Ops // of warps
	// Matrix is the nanoseconds of products at the device's best rate for their type.
	Matrix float64
}

// needsOf returns the operations of the nodes of a group and of those that it computes on the way, each once.
func needsOf(g *fusion.Group, t Target) (needs Needs) {
	seen := map[*ir.Node]bool{}
	var visit func(n *ir.Node)
	visit = func(n *ir.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		of := needsOfNode(n, t)
		needs.Ops, needs.Matrix = needs.Ops.Plus(of.Ops, 1), needs.Matrix+of.Matrix
		for _, v := range n.Inputs() {
			if v.Node() != nil && g.Partition().TensorOf(v) == nil {
				visit(v.Node())
			}
		}
	}
	for _, part := range append(g.Parts, g) {
		for _, m := range part.Members {
			visit(m.Node)
		}
	}
	return needs
}

func needsOfNode(n *ir.Node, t Target) Needs {
	if f := n.Def().Scalar; f != nil {
		dims, _ := n.Result(0).Shape().Ints()
		var x []scalar.Expr
		for i, v := range n.Inputs() {
			x = append(x, scalar.FreeVar("x"+string(rune('a'+i)), v.DType()))
		}
		return Needs{Ops: tally.Ops{}.Plus(costOf(f(n, x)), warps(dims))}
	}
	switch l := n.Def().Lower.(type) {
	case nil, *ir.ControlLowering:
		return Needs{}
	case *ir.MapLowering:
		var all tally.Ops
		for i, r := range n.Results() {
			dims, _ := r.Shape().Ints()
			all = all.Plus(costOf(l.Element(n, i, positions("i", dims), operandsOf(n))), warps(dims))
		}
		return Needs{Ops: all}
	case *ir.ReduceLowering:
		dims, _ := n.Result(0).Shape().Ints()
		space := l.Space(n)
		parts := l.Element(n, positions("i", dims), positions("r", space), operandsOf(n))
		each := costOf(parts...).Plus(costOf(l.Combine(n, parts, parts)...), 1)
		return Needs{Ops: tally.Ops{}.Plus(each, warps(dims)*float64(fusion.Product(space)))}
	case *ir.ContractLowering:
		c := l.Spec(n)
		return productNeeds(2*size(c.Batch)*size(c.M)*size(c.N)*size(c.K)*insidePart(c), n.Input(0).DType(), t)
	case *ir.AttendLowering:
		a := l.Spec(n)
		flops := 2 * size(a.Heads) * float64(a.Queries) * float64(a.Keys) * float64(a.Depth+a.Width)
		if a.Backward {
			flops *= 2.5
		}
		if a.Causal {
			flops /= 2
		}
		needs := productNeeds(flops, n.Input(0).DType(), t)
		scores := size(a.Heads) * float64(a.Queries) * float64(a.Keys) / loop.Warp
		if a.Causal {
			scores /= 2
		}
		needs.Ops = needs.Ops.Plus(tally.Ops{Issued: 12, Special: 1}, scores) // scale, maximum, exponential, sum
		return needs
	case *ir.SortLowering:
		dims, _ := n.Input(0).Shape().Ints()
		return Needs{Ops: tally.Ops{}.Plus(tally.Ops{Issued: 2, Int: 1}, warps(dims)*math.Log2(float64(max(2, dims[l.Axis(n)]))))}
	}
	var all tally.Ops
	for _, v := range append(n.Inputs(), n.Results()...) {
		dims, _ := v.Shape().Ints()
		all = all.Plus(tally.Ops{Issued: 1}, warps(dims))
	}
	return Needs{Ops: all}
}

// productNeeds returns what products of a type need: matrix units, or multiply-adds.
func productNeeds(flops float64, d dtype.DType, t Target) Needs {
	p := t.Profile()
	rate := 0.0
	switch {
	case t.Mma && (d == dtype.BF16 || d == dtype.F16):
		rate = p.Rates().WarpGroups[0]
	case t.Mma && t.TF32 && d == dtype.F32:
		rate = p.Rates().WarpGroups[0] / 2
	default:
		return Needs{Ops: tally.Ops{Issued: flops / 2 / loop.Warp}}
	}
	return Needs{Matrix: flops / rate / float64(p.Processors)}
}

// insidePart estimates the part of the products of a contraction whose factors are inside of the operands.
func insidePart(c ir.Contraction) float64 {
	const samples = 200
	r, count := rand.New(rand.NewPCG(1, 2)), 0
	draw := func(dims []int) ir.Index {
		at := make(ir.Index, len(dims))
		for i, n := range dims {
			at[i] = scalar.ConstI(dtype.I32, int64(r.IntN(n)))
		}
		return at
	}
	holds := func(valid scalar.Expr) bool {
		if valid == nil {
			return true
		}
		x, known := scalar.Simplify(valid).IntConst()
		return !known || x != 0
	}
	for range samples {
		batch, k := draw(c.Batch), draw(c.K)
		_, a := c.A(batch, draw(c.M), k)
		_, b := c.B(batch, draw(c.N), k)
		if holds(a) && holds(b) {
			count++
		}
	}
	return float64(max(count, 1)) / samples
}

func size(dims []int) float64 {
	n := 1.0
	for _, d := range dims {
		n *= float64(d)
	}
	return n
}

// warps returns the number of warps with a lane for each element.
func warps(dims []int) float64 { return size(dims) / loop.Warp }

func positions(name string, dims []int) ir.Index {
	at := make(ir.Index, len(dims))
	for i, n := range dims {
		at[i] = scalar.NewVar(name+string(rune('a'+i)), dtype.I32, 0, int64(max(n, 1)-1))
	}
	return at
}

// operandsOf loads elements of operands as variables, without their positions.
func operandsOf(n *ir.Node) ir.Load {
	return func(i int, _ ir.Index) scalar.Expr {
		return scalar.FreeVar("x"+string(rune('a'+i)), n.Input(i).DType())
	}
}

func costOf(list ...scalar.Expr) (all tally.Ops) {
	for _, e := range list {
		scalar.Walk(e, func(n scalar.Expr) { all = all.Plus(tally.Cost(n), 1) })
	}
	return all
}

// addNeeds adds the needs of the groups of a partition to the kernels that do most of their work.
func (c *entryCompiler) addNeeds(p *fusion.Partition, to map[*loop.Kernel]Needs, counts map[*loop.Kernel]tally.Counts) error {
	for _, item := range p.Items {
		switch item := item.(type) {
		case *fusion.Group:
			launches, err := c.cache.Schedule(item, c.target.Caps)
			if err != nil {
				return err
			}
			share(needsOf(item, c.target), launches, to, counts)
		case fusion.Control:
			for _, inner := range item.Partitions() {
				if err := c.addNeeds(inner, to, counts); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// share divides the needs of a group among its kernels by what they do.
func share(needs Needs, launches []emit.Launch, to map[*loop.Kernel]Needs, counts map[*loop.Kernel]tally.Counts) {
	var products, issued float64
	for _, l := range launches {
		if l.Kernel != nil {
			products += productsOf(counts[l.Kernel])
			issued += counts[l.Kernel].Issued
		}
	}
	for _, l := range launches {
		if l.Kernel == nil {
			continue
		}
		part := counts[l.Kernel].Issued / issued
		n := Needs{Ops: tally.Ops{}.Plus(needs.Ops, part), Matrix: part * needs.Matrix}
		if products > 0 {
			n.Matrix = needs.Matrix * productsOf(counts[l.Kernel]) / products
		}
		to[l.Kernel] = n
	}
}

func productsOf(c tally.Counts) float64 { return c.Products[0] + c.Products[1] + c.Products[2] }
