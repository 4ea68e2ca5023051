package families

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// recommender is embeddings of eight features, their pairwise dots and two networks (Naumov et
// al., Deep Learning Recommendation Model).
func recommender(n *net, times int) ir.Value {
	b := n.Builder
	const features, rows, width = 8, 20_000, 32
	batch := 512 * times
	vectors := []ir.Value{n.mlp("bottom", n.floats("dense", batch, 13), ops.Relu, 128, width)}
	for i := range features {
		vectors = append(vectors, ops.Embedding(b, n.param(fmt.Sprint("table", i), rows, width), n.ids(fmt.Sprint("ids", i), rows, batch)))
	}
	x := ops.Stack(b, 1, vectors...)
	dots := n.reshape(ops.MatMul(b, x, ops.Transpose(b, x, 0, 2, 1)), batch, (features+1)*(features+1))
	y := n.mlp("top", ops.Concatenate(b, 1, vectors[0], dots), ops.Relu, 128, 64, 1)
	return ops.BCEWithLogits(b, y, ops.Sigmoid(b, n.floats("click", batch, 1)), "mean")
}

// messages is two rounds of message passing over the edges of a graph (Gilmer et al.).
func messages(n *net, times int) ir.Value {
	b := n.Builder
	const width = 32
	nodes, edges := 5000*times, 50_000*times
	x := n.floats("x", nodes, width)
	from, to := n.ids("from", nodes, edges), n.ids("to", nodes, edges)
	for i := range 2 {
		name := fmt.Sprint("round", i)
		sent := ops.Relu(b, ops.Add(b, ops.Embedding(b, n.linear(name+"/from", x, width), from), ops.Embedding(b, n.linear(name+"/to", x, width), to)))
		sum := ops.SegmentReduce(b, sent, to, ops.SegmentAttrs{Segments: ir.N(nodes)})
		x = ops.Add(b, x, ops.Relu(b, n.linear(name+"/update", sum, width)))
	}
	return n.classify(x, 10)
}

// pinn is a network that solves the Korteweg–de Vries equation u_t + 6·u·u_x + u_xxx = 0
// (Raissi, Perdikaris and Karniadakis, Physics-informed neural networks).
func pinn(n *net, times int) ir.Value {
	b := n.Builder
	points := 512 * times
	x, t, seen := n.floats("x", points, 1), n.floats("t", points, 1), n.floats("u", points, 1)
	u := func(b *ir.Builder, in []ir.Value) []ir.Value {
		inside := &net{b, n.below, n.params}
		return []ir.Value{inside.mlp("layer", ops.Concatenate(b, 1, in...), ops.Tanh, 64, 64, 64, 1)}
	}
	u(b, []ir.Value{x, t}) // declares the parameters outside derivatives
	// along returns the derivative of f along input i, after f.
	along := func(f autodiff.Function, i int) autodiff.Function {
		return func(b *ir.Builder, in []ir.Value) []ir.Value {
			direction := make([]ir.Value, len(in))
			direction[i] = ops.OnesLike(b, in[i])
			values, tangents := autodiff.JVPOf(b, f, in, direction)
			return append(values, tangents[len(tangents)-1])
		}
	}
	in := []ir.Value{x, t}
	byX := along(along(along(u, 0), 0), 0)(b, in)
	byT := along(u, 1)(b, in)
	rest := ops.Add(b, ops.Add(b, byT[1], byX[3]), ops.Mul(b, n.number(6), ops.Mul(b, byX[0], byX[1])))
	return ops.Add(b, n.mean(ops.Square(b, rest)), n.mean(ops.Square(b, ops.Sub(b, byX[0], seen))))
}

// nerf renders rays through a field of density and colour (Mildenhall et al.).
func nerf(n *net, times int) ir.Value {
	b := n.Builder
	const samples, octaves, width = 32, 10, 128
	rays := 256 * times
	points := n.reshape(n.floats("points", rays, samples, 3), rays*samples, 3)
	parts := []ir.Value{points}
	for k := range octaves {
		angle := ops.Mul(b, points, n.number(math.Pi*float64(int(1)<<k)))
		parts = append(parts, ops.Sin(b, angle), ops.Cos(b, angle))
	}
	coded := ops.Concatenate(b, 1, parts...)
	h := ops.Relu(b, n.mlp("first", coded, ops.Relu, width, width))
	h = ops.Relu(b, n.mlp("second", ops.Concatenate(b, 1, h, coded), ops.Relu, width, width))
	density := ops.Softplus(b, n.reshape(n.linear("density", h, 1), rays, samples))
	colour := ops.Sigmoid(b, n.reshape(n.linear("colour", h, 3), rays, samples, 3))
	passed := ops.Exp(b, ops.Neg(b, ops.CumSum(b, density, ops.CumSumAttrs{Axis: 1, Exclusive: true})))
	weight := ops.Mul(b, passed, ops.Sub(b, n.number(1), ops.Exp(b, ops.Neg(b, density))))
	seen := ops.ReduceSum(b, ops.Mul(b, ops.ExpandDims(b, weight, 2), colour), 1)
	return ops.MSE(b, seen, n.floats("pixels", rays, 3), "mean")
}

// process is the negative log-likelihood of a Gaussian process (Rasmussen and Williams,
// equation 2.30) with a squared exponential kernel.
func process(n *net, times int) ir.Value {
	b := n.Builder
	points := 512 * times
	x, y := n.floats("x", points, 8), n.floats("y", points, 1)
	z := ops.Div(b, x, ops.Exp(b, n.param("length/b", 8)))
	square := ops.KeepDims(b, ops.ReduceSum, ops.Square(b, z), 1)
	distance := ops.Add(b, square, ops.Transpose(b, square, 1, 0))
	distance = ops.Sub(b, distance, ops.Mul(b, n.number(2), ops.MatMul(b, z, ops.Transpose(b, z, 1, 0))))
	kernel := ops.Exp(b, ops.Mul(b, ops.Max(b, distance, n.number(0)), n.number(-0.5)))
	one := ops.Eq(b, ops.Iota(b, ir.I32, 0, ir.Dims(points, points)...), ops.Iota(b, ir.I32, 1, ir.Dims(points, points)...))
	noise := ops.Add(b, ops.Exp(b, n.param("noise/b", 1)), n.number(1e-3))
	kernel = ops.Add(b, kernel, ops.Mul(b, ops.Convert(b, one, ir.F32), noise))
	l := ops.Cholesky(b, kernel)
	half := ops.TriangularSolve(b, l, y, ops.TriangularAttrs{LeftSide: true, Lower: true})
	logs := ops.ReduceSum(b, ops.Log(b, ops.Diagonal(b, l, 0)), 0)
	fit := ops.ReduceSum(b, ops.Square(b, half), 0, 1)
	return ops.Add(b, ops.Mul(b, fit, n.number(0.5)), logs)
}

// splats composes Gaussians in the order of their depth into an image (Kerbl et al., 3D
// Gaussian Splatting).
func splats(n *net, times int) ir.Value {
	b := n.Builder
	const side = 64
	count := 128 * times
	order := ops.ArgSort(b, ops.StopGradient(b, n.floats("depth", count)), ops.SortAttrs{})
	take := func(name string, dims ...int) ir.Value {
		return ops.Take(b, n.param(name, append([]int{count}, dims...)...), order, 0, ops.OutsideClip)
	}
	at, size, colour, opacity := take("at", 2), take("size"), take("colour", 3), take("opacity")
	axis := ops.Mul(b, ops.Iota(b, ir.F32, 0, ir.N(side)), n.number(1.0/side))
	distance := func(i int, dims ...int) ir.Value {
		centre := n.reshape(ops.SliceAxis(b, at, 1, ir.N(i), ir.N(1)), 1, 1, count)
		return ops.Square(b, ops.Sub(b, n.reshape(axis, dims...), centre))
	}
	far := ops.Add(b, distance(0, side, 1, 1), distance(1, 1, side, 1))
	alpha := ops.Mul(b, ops.Sigmoid(b, opacity), ops.Exp(b, ops.Neg(b, ops.Mul(b, far, ops.Exp(b, size)))))
	passed := ops.Exp(b, ops.CumSum(b, ops.Log(b, ops.Sub(b, n.number(1.001), alpha)), ops.CumSumAttrs{Axis: 2, Exclusive: true}))
	image := ops.MatMul(b, n.reshape(ops.Mul(b, alpha, passed), side*side, count), colour)
	return ops.MSE(b, image, n.floats("image", side*side, 3), "mean")
}

// qLearning is a step of deep Q-learning (Mnih et al.) of a small network.
func qLearning(n *net, times int) ir.Value {
	b := n.Builder
	batch := 256 * times
	const actions = 4
	q := func(name string, x ir.Value) ir.Value { return n.mlp(name, x, ops.Relu, 64, 64, actions) }
	chosen := ops.TakeAlongAxis(b, q("q", n.floats("before", batch, 8)), n.ids("action", actions, batch, 1), 1, ops.OutsideClip)
	next := n.floats("after", batch, 8)
	for i, out := range []int{64, 64, actions} {
		if i > 0 {
			next = ops.Relu(b, next)
		}
		next = ops.Linear(b, next, n.floats(fmt.Sprintf("target%d/w", i), size(next, 1), out), n.floats(fmt.Sprintf("target%d/b", i), out))
	}
	best := ops.KeepDims(b, ops.ReduceMax, next, 1)
	target := ops.Add(b, n.floats("reward", batch, 1), ops.Mul(b, best, n.number(0.99)))
	return ops.Huber(b, chosen, target, 1, "mean")
}

// tiny has a thousand parameters of 32 numbers.
func tiny(n *net, times int) ir.Value {
	b := n.Builder
	x := n.floats("x", 16*times, 32)
	for i := range 500 {
		x = ops.Add(b, ops.Mul(b, x, n.param(fmt.Sprint("scale", i), 32)), n.param(fmt.Sprint("shift", i), 32))
		if i%10 == 9 {
			x = ops.Tanh(b, x)
		}
	}
	return n.mean(ops.Square(b, x))
}

// chain is fifty elementwise operations over a million numbers.
func chain(n *net, times int) ir.Value {
	b := n.Builder
	x := ops.Mul(b, n.floats("x", times<<20), n.param("w", times<<20))
	y := x
	for i := range 10 {
		y = ops.Add(b, ops.Mul(b, ops.Tanh(b, y), n.number(0.9)), x)
		y = ops.Mul(b, y, ops.Sigmoid(b, ops.Sub(b, y, n.number(0.1*float64(i)))))
	}
	return n.mean(y)
}

// sorted takes the gaps between sorted scores and the largest of each row.
func sorted(n *net, times int) ir.Value {
	b := n.Builder
	x := ops.Mul(b, n.floats("x", 32*times, 4096), n.param("w", 4096))
	in := ops.Sort(b, ops.SortAttrs{Axis: 1}, x)[0]
	gaps := ops.Sub(b, ops.SliceAxis(b, in, 1, ir.N(1), ir.N(4095)), ops.SliceAxis(b, in, 1, ir.N(0), ir.N(4095)))
	top, _ := ops.TopK(b, x, ops.TopKAttrs{K: 32, Axis: 1})
	return ops.Add(b, n.mean(ops.Square(b, gaps)), n.mean(ops.Square(b, top)))
}
