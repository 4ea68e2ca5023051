package families

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// maml differentiates through three steps of learning of each task (Finn, Abbeel and Levine).
func maml(n *net, times int) ir.Value {
	b := n.Builder
	const shots, width = 10, 64
	tasks := 16 * times
	sizes := []int{1, width, width, 1}
	var weights []ir.Value
	for i := range 3 {
		in, out := sizes[i], sizes[i+1]
		weights = append(weights,
			ops.BroadcastTo(b, n.param(fmt.Sprint("layer", i, "/w"), in, out), ir.Dims(tasks, in, out)),
			ops.BroadcastTo(b, n.param(fmt.Sprint("layer", i, "/b"), out), ir.Dims(tasks, 1, out)))
	}
	loss := func(b *ir.Builder, x, y ir.Value, weights []ir.Value) ir.Value {
		for i := range 3 {
			if i > 0 {
				x = ops.Tanh(b, x)
			}
			x = ops.Add(b, ops.MatMul(b, x, weights[2*i]), weights[2*i+1])
		}
		return ops.ReduceSum(b, ops.Mean(b, ops.Square(b, ops.Sub(b, x, y)), 1, 2), 0)
	}
	x, y := n.floats("x", tasks, shots, 1), n.floats("y", tasks, shots, 1)
	for range 3 {
		slopes := autodiff.GradOf(b, func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{loss(b, x, y, in)}
		}, weights)
		for i, slope := range slopes {
			weights[i] = ops.Sub(b, weights[i], ops.Mul(b, slope, n.number(0.1)))
		}
	}
	return ops.Div(b, loss(b, n.floats("query/x", tasks, shots, 1), n.floats("query/y", tasks, shots, 1), weights), n.number(float64(tasks)))
}

// hashGrid looks up features of points in tables at several resolutions by a hash of their cells (Müller et al., Instant NGP).
func hashGrid(n *net, times int) ir.Value {
	b := n.Builder
	const levels, entries, features = 8, 1 << 14, 2
	points := 4096 * times
	x := ops.Add(b, n.floats("x", points, 3), n.number(0.5))
	primes := ops.Literal(b, ir.Ints(ir.U32, []int64{1, 2654435761, 805459861}, 1, 1, 3))
	corners := make([]int64, 24)
	for i := range corners {
		corners[i] = int64(i / 3 >> (i % 3) & 1)
	}
	corner := ops.Literal(b, ir.Ints(ir.U32, corners, 1, 8, 3))
	far := ops.Eq(b, corner, ops.Const(b, ir.U32, 1))
	var parts []ir.Value
	for i := range levels {
		scaled := ops.Mul(b, x, n.number(math.Floor(16*math.Pow(1.5, float64(i)))))
		low := ops.Floor(b, scaled)
		rest := n.reshape(ops.Sub(b, scaled, low), points, 1, 3)
		cell := ops.Add(b, n.reshape(ops.Convert(b, low, ir.U32), points, 1, 3), corner)
		code := ops.Unstack(b, ops.Mul(b, cell, primes), 2)
		code[0] = ops.Xor(b, ops.Xor(b, code[0], code[1]), code[2])
		row := ops.Convert(b, ops.And(b, code[0], ops.Const(b, ir.U32, entries-1)), ir.I32)
		weight := ops.ReduceProd(b, ops.Select(b, far, rest, ops.Sub(b, n.number(1), rest)), 2)
		seen := ops.Embedding(b, n.param(fmt.Sprint("table", i), entries, features), row)
		parts = append(parts, ops.ReduceSum(b, ops.Mul(b, seen, ops.ExpandDims(b, weight, 2)), 1))
	}
	y := n.mlp("colour", ops.Concatenate(b, 1, parts...), ops.Relu, 64, 64, 4)
	return ops.MSE(b, ops.Sigmoid(b, y), n.floats("y", points, 4), "mean")
}

// forces learns energies and their slopes by positions, with features that are scalars and vectors (Schütt, Unke and
// Gastegger, PaiNN).
func forces(n *net, times int) ir.Value {
	b := n.Builder
	const width, waves = 32, 16
	atoms, edges := 256*times, 3072*times
	kinds, from, to := n.ids("kinds", 10, atoms), n.ids("from", atoms, edges), n.ids("to", atoms, edges)
	energy := func(b *ir.Builder, in []ir.Value) []ir.Value {
		inside := &net{b, n.below, n.params}
		at := in[0]
		d := ops.Sub(b, ops.Take(b, at, to, 0, ops.OutsideClip), ops.Take(b, at, from, 0, ops.OutsideClip))
		r := ops.Sqrt(b, ops.Add(b, ops.KeepDims(b, ops.ReduceSum, ops.Square(b, d), 1), ops.Const(b, ir.F32, 1e-2)))
		unit := ops.Div(b, d, r)
		wave := ops.Mul(b, ops.Add(b, ops.Iota(b, ir.F32, 1, ir.Dims(1, waves)...), ops.Const(b, ir.F32, 1)), ops.Const(b, ir.F32, math.Pi/4))
		basis := ops.Div(b, ops.Sin(b, ops.Mul(b, r, wave)), r)
		s := ops.Embedding(b, inside.param("kinds/w", 10, width), kinds)
		v := ops.Zeros(b, ir.F32, ir.Dims(atoms, 3, width)...)
		for i := range 2 {
			name := fmt.Sprint("layer", i)
			by := ops.Mul(b, ops.Take(b, inside.mlp(name+"/message", s, ops.Silu, width, 3*width), from, 0, ops.OutsideClip), inside.linear(name+"/basis", basis, 3*width))
			parts := ops.SplitEvenly(b, by, 1, 3)
			moved := ops.Mul(b, ops.Take(b, v, from, 0, ops.OutsideClip), ops.ExpandDims(b, parts[1], 1))
			moved = ops.Add(b, moved, ops.Mul(b, ops.ExpandDims(b, unit, 2), ops.ExpandDims(b, parts[2], 1)))
			s = ops.Add(b, s, ops.SegmentReduce(b, parts[0], to, ops.SegmentAttrs{Segments: ir.N(atoms)}))
			v = ops.Add(b, v, ops.SegmentReduce(b, moved, to, ops.SegmentAttrs{Segments: ir.N(atoms)}))
			u, w := ops.MatMul(b, v, inside.param(name+"/u", width, width)), ops.MatMul(b, v, inside.param(name+"/v", width, width))
			long := ops.Sqrt(b, ops.Add(b, ops.ReduceSum(b, ops.Square(b, w), 1), ops.Const(b, ir.F32, 1e-4)))
			a := ops.SplitEvenly(b, inside.mlp(name+"/update", ops.Concatenate(b, 1, s, long), ops.Silu, width, 3*width), 1, 3)
			s = ops.Add(b, s, ops.Add(b, a[0], ops.Mul(b, a[1], ops.ReduceSum(b, ops.Mul(b, u, w), 1))))
			v = ops.Add(b, v, ops.Mul(b, u, ops.ExpandDims(b, a[2], 1)))
		}
		each := inside.mlp("energy", s, ops.Silu, width, 1)
		return []ir.Value{ops.ReduceSum(b, each, 0, 1), each}
	}
	values, slopes := autodiff.ValueAndGradOf(b, energy, []ir.Value{n.floats("at", atoms, 3)})
	loss := ops.MSE(b, values[1], n.floats("energies", atoms, 1), "mean")
	return ops.Add(b, loss, ops.MSE(b, ops.Neg(b, slopes[0]), n.floats("forces", atoms, 3), "mean"))
}

// sinkhorn is the cost of moving one set of features to another, by iterations (Cuturi).
func sinkhorn(n *net, times int) ir.Value {
	b := n.Builder
	const points, steps, epsilon = 256, 20, 0.1
	batch := 2 * times
	features := func(name string) ir.Value { return n.mlp("net", n.floats(name, batch, points, 16), ops.Relu, 64, 32) }
	x, y := features("x"), features("y")
	square := func(x ir.Value) ir.Value { return ops.ReduceSum(b, ops.Square(b, x), 2) }
	cost := ops.Add(b, ops.ExpandDims(b, square(x), 2), ops.ExpandDims(b, square(y), 1))
	cost = ops.Sub(b, cost, ops.Mul(b, ops.MatMul(b, x, ops.Transpose(b, y, 0, 2, 1)), n.number(2)))
	zero := ops.Zeros(b, ir.F32, ir.Dims(batch, points)...)
	few := math.Log(points)
	carries, _ := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{ops.Div(b, cost, n.number(-epsilon))}, Carries: []ir.Value{zero, zero}, Length: ir.N(steps),
		Body: func(b *ir.Builder, consts, carries, _ []ir.Value) (next, ys []ir.Value) {
			less := ops.Const(b, ir.F32, -few)
			u := ops.Sub(b, less, ops.LogSumExp(b, ops.Add(b, consts[0], ops.ExpandDims(b, carries[1], 1)), 2))
			v := ops.Sub(b, less, ops.LogSumExp(b, ops.Add(b, consts[0], ops.ExpandDims(b, u, 2)), 1))
			return []ir.Value{u, v}, nil
		},
	})
	plan := ops.Add(b, ops.ExpandDims(b, carries[0], 2), ops.ExpandDims(b, carries[1], 1))
	plan = ops.Exp(b, ops.Sub(b, plan, ops.Div(b, cost, n.number(epsilon))))
	return ops.Div(b, ops.ReduceSum(b, ops.Mul(b, plan, cost), 0, 1, 2), n.number(float64(batch)))
}

// arcFace separates a hundred thousand faces by angles with a margin (Deng et al.).
func arcFace(n *net, times int) ir.Value {
	b := n.Builder
	const classes, width, margin, scale = 100_000, 64, 0.5, 30
	batch := 32 * times
	unit := func(x ir.Value, axis int) ir.Value {
		return ops.Mul(b, x, ops.Rsqrt(b, ops.Add(b, ops.KeepDims(b, ops.ReduceSum, ops.Square(b, x), axis), n.number(1e-8))))
	}
	x := unit(n.mlp("net", n.floats("x", batch, 256), ops.Relu, 256, width), 1)
	w := unit(n.param("faces", classes, width), 1)
	cos := ops.Clamp(b, ops.MatMul(b, x, ops.Transpose(b, w, 1, 0)), n.number(-1+1e-6), n.number(1-1e-6))
	labels := n.ids("labels", classes, batch)
	hit := ops.Eq(b, n.reshape(labels, batch, 1), ops.Iota(b, ir.I32, 1, ir.Dims(1, classes)...))
	sin := ops.Sqrt(b, ops.Sub(b, n.number(1), ops.Square(b, cos)))
	wide := ops.Sub(b, ops.Mul(b, cos, n.number(math.Cos(margin))), ops.Mul(b, sin, n.number(math.Sin(margin))))
	return ops.CrossEntropyMean(b, ops.Mul(b, ops.Select(b, hit, wide, cos), n.number(scale)), labels)
}

// vicReg compares two views, with bounds on variances and covariances (Bardes, Ponce and LeCun).
func vicReg(n *net, times int) ir.Value {
	b := n.Builder
	const width = 512
	batch := 256 * times
	view := func(name string) ir.Value {
		x := n.floats(name, batch, 256)
		for i := range 2 {
			layer := fmt.Sprint("layer", i)
			x = ops.Standardize(b, n.linear(layer, x, width), 1e-5, 0)
			x = ops.Relu(b, ops.Add(b, ops.Mul(b, x, n.param(layer+"/scale", width)), n.param(layer+"/shift/b", width)))
		}
		return n.linear("out", x, width)
	}
	loss := func(x ir.Value) ir.Value {
		x = ops.Sub(b, x, ops.KeepDims(b, ops.Mean, x, 0))
		deviation := ops.Sqrt(b, ops.Add(b, ops.Var(b, x, 1, 0), n.number(1e-4)))
		covariance := ops.Div(b, ops.MatMul(b, ops.Transpose(b, x, 1, 0), x), n.number(float64(batch-1)))
		off := ops.Sub(b, ops.ReduceSum(b, ops.Square(b, covariance), 0, 1), ops.ReduceSum(b, ops.Square(b, ops.Diagonal(b, covariance, 0)), 0))
		return ops.Add(b, ops.Mul(b, n.mean(ops.Relu(b, ops.Sub(b, n.number(1), deviation))), n.number(25)), ops.Div(b, off, n.number(width)))
	}
	x, y := view("a"), view("b")
	return ops.Add(b, ops.Mul(b, ops.MSE(b, x, y, "mean"), n.number(25)), ops.Add(b, loss(x), loss(y)))
}

// ppo is a step of policies and values with advantages that run back in time (Schulman et al.).
func ppo(n *net, times int) ir.Value {
	b := n.Builder
	const steps, actions = 128, 6
	games := 16 * times
	x := n.floats("x", steps+1, games, 24)
	values := n.reshape(n.mlp("value", x, ops.Tanh, 64, 64, 1), steps+1, games)
	part := func(v ir.Value, from int) ir.Value { return ops.SliceAxis(b, v, 0, ir.N(from), ir.N(steps)) }
	going := ops.Convert(b, ops.Ne(b, n.ids("ends", 20, steps, games), ops.Const(b, ir.I32, 0)), ir.F32)
	fixed := ops.StopGradient(b, values)
	next := ops.Mul(b, ops.Mul(b, part(fixed, 1), going), n.number(0.99))
	delta := ops.Sub(b, ops.Add(b, n.floats("rewards", steps, games), next), part(fixed, 0))
	_, ys := ops.Scan(b, ops.Loop{
		Carries: []ir.Value{ops.Zeros(b, ir.F32, ir.N(games))}, Xs: []ir.Value{delta, going}, Reverse: true,
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			a := ops.Add(b, xs[0], ops.Mul(b, ops.Mul(b, xs[1], carries[0]), ops.Const(b, ir.F32, 0.99*0.95)))
			return []ir.Value{a}, []ir.Value{a}
		},
	})
	gains := ys[0]
	logs := ops.LogSoftmax(b, n.mlp("policy", part(x, 0), ops.Tanh, 64, 64, actions), 2)
	chosen := ops.TakeAlongAxis(b, logs, n.ids("action", actions, steps, games, 1), 2, ops.OutsideClip)
	ratio := ops.Exp(b, ops.Sub(b, n.reshape(chosen, steps, games), n.floats("before", steps, games)))
	unit := ops.Standardize(b, gains, 1e-8, 0, 1)
	clipped := ops.Clamp(b, ratio, n.number(0.8), n.number(1.2))
	policy := n.mean(ops.Min(b, ops.Mul(b, ratio, unit), ops.Mul(b, clipped, unit)))
	value := ops.MSE(b, part(values, 0), ops.Add(b, gains, part(fixed, 0)), "mean")
	entropy := n.mean(ops.ReduceSum(b, ops.Mul(b, ops.Exp(b, logs), logs), 2))
	return ops.Add(b, ops.Sub(b, ops.Mul(b, value, n.number(0.5)), policy), ops.Mul(b, entropy, n.number(0.01)))
}

// kalman is the likelihood of series under a linear model with noise, by the Kalman filter.
func kalman(n *net, times int) ir.Value {
	b := n.Builder
	const steps, states, seen = 64, 8, 4
	batch := 16 * times
	eye := func(b *ir.Builder, k int, by float64) ir.Value {
		return ops.Diag(b, ops.Const(b, ir.F32, by, ir.N(k)), 0)
	}
	square := func(name string, k int) ir.Value {
		l := n.param(name, k, k)
		return ops.Add(b, ops.MatMul(b, l, ops.Transpose(b, l, 1, 0)), eye(b, k, 0.1))
	}
	move, watch := ops.Add(b, eye(b, states, 0.8), ops.Mul(b, n.param("move", states, states), n.number(0.2))), n.param("watch", seen, states)
	q, r := square("q", states), square("r", seen)
	x := n.linear("in", n.floats("x", steps, batch, 16), seen)
	mean := ops.Zeros(b, ir.F32, ir.Dims(batch, states, 1)...)
	cov := ops.BroadcastTo(b, eye(b, states, 1), ir.Dims(batch, states, states))
	carries, _ := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{move, watch, q, r}, Carries: []ir.Value{mean, cov, ops.Zeros(b, ir.F32, ir.N(batch))}, Xs: []ir.Value{x},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			move, watch, q, r := consts[0], consts[1], consts[2], consts[3]
			flip := func(x ir.Value) ir.Value { return ops.SwapAxes(b, x, -1, -2) }
			m := ops.MatMul(b, move, carries[0])
			p := ops.Add(b, ops.MatMul(b, ops.MatMul(b, move, carries[1]), flip(move)), q)
			off := ops.Sub(b, ops.ExpandDims(b, xs[0], 2), ops.MatMul(b, watch, m))
			hp := ops.MatMul(b, watch, p)
			l := ops.Cholesky(b, ops.Add(b, ops.MatMul(b, hp, flip(watch)), r))
			lower := ops.TriangularAttrs{LeftSide: true, Lower: true}
			z, w := ops.TriangularSolve(b, l, off, lower), ops.TriangularSolve(b, l, hp, lower)
			m = ops.Add(b, m, ops.MatMul(b, flip(w), z))
			p = ops.Sub(b, p, ops.MatMul(b, flip(w), w))
			logs := ops.ReduceSum(b, ops.Log(b, ops.Diagonal(b, l, 0)), 1)
			fit := ops.Mul(b, ops.ReduceSum(b, ops.Square(b, z), 1, 2), ops.Const(b, ir.F32, 0.5))
			return []ir.Value{m, p, ops.Add(b, carries[2], ops.Add(b, logs, fit))}, nil
		},
	})
	return ops.Div(b, n.mean(carries[2]), n.number(steps))
}
