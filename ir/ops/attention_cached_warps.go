//go:build !js

package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

const (
	// warpKeyLanes is the number of adjacent threads that compute the score of a key together: they
	// read it in contiguous vectors.
	warpKeyLanes = 8
	// warpVector is the number of elements of a vector.
	warpVector = 4
	// maxWarpQueries is the maximum number of elements of queries in the registers of a thread.
	maxWarpQueries = 64
	// warpBlock is the number of keys of a workgroup, or a multiple for caches of more than
	// maxWarpBlocks of them: the second kernel reads the results of all.
	warpBlock, maxWarpBlocks = 128, 64
	// keysAtOnce and valuesAtOnce are the numbers of keys and of values that a thread loads together.
	keysAtOnce, valuesAtOnce = 4, 8
)

// byWarps returns the first kernel for CUDA, in which a thread reads vectors, and those that read one key
// are adjacent. It reports false where lengths are no whole vectors.
func (c *cachedAttention) byWarps(n *ir.Node, caps loop.Caps) (ir.KernelLaunch, bool) {
	const each = warpKeyLanes * warpVector
	if caps.Dialect != dtype.CUDA || caps.Lanes() != loop.Warp || c.depth%each != 0 || c.width%each != 0 || c.width > warpVector*loop.Warp ||
		loop.Warp%(c.width/warpVector) != 0 || c.rows*c.depth/warpKeyLanes > maxWarpQueries {
		return ir.KernelLaunch{}, false
	}
	own := *c
	own.threads = 128
	own.block = warpBlock * max(1, (c.room+warpBlock*maxWarpBlocks-1)/(warpBlock*maxWarpBlocks))
	if c.pages > 0 {
		own.block = c.room / c.pages
	}
	own.blocks = (c.room + own.block - 1) / own.block
	groups := own.threads * warpVector / c.width
	if own.block%(own.threads/warpKeyLanes*keysAtOnce) != 0 || 4*(c.rows*own.block+groups*c.rows*c.width) > caps.SharedBytes || max(own.blocks, c.sequences*c.groups*c.rows) > caps.Groups {
		return ir.KernelLaunch{}, false
	}
	*c = own
	return c.partialByWarps(n), true
}

// vectors adds an operand that is read in vectors.
func (w *cachedWriter) vectors(n *ir.Node, i int) int {
	at := w.operand(n, i)
	a := &w.kernel.Arrays[at]
	a.Width, a.Len = warpVector, a.Len/warpVector
	return at
}

// vector loads a vector as f32.
func (w *cachedWriter) vector(array int, at scalar.Expr) []scalar.Expr {
	names := make([]string, warpVector)
	out := make([]scalar.Expr, warpVector)
	for i := range names {
		names[i] = w.Name("x")
		out[i] = scalar.Convert(scalar.FreeVar(names[i], w.tiles.d), ir.F32)
	}
	w.Add(&loop.LoadVec{Names: names, Array: array, At: w.Simplify(at)})
	return out
}

// partialByWarps is partial with threads by warps.
func (c *cachedAttention) partialByWarps(n *ir.Node) ir.KernelLaunch {
	lane := loop.LocalID(0, c.threads)
	w, q, k, v := c.openPartial(n, (*cachedWriter).vectors)
	weight := w.shared("weight", ir.F32, c.rows*c.block)
	w.openBlock(n)
	w.When(scalar.Gt(w.keys.count, w.keys.from), func() {
		keys := w.scoresByWarps(q, k, weight, lane)
		w.Barrier()
		most := w.overWarp(weight, lane, keys, scalar.Max, math.Inf(-1))
		w.Barrier()
		w.Loop("key", lane, keys, c.threads, c.block-1, func(key scalar.Expr) {
			for r := range c.rows {
				at := scalar.Add(loop.Int(r*c.block), key)
				s := w.Let("s", scalar.LoadAt(weight, ir.F32, at))
				hidden := scalar.Eq(s, scalar.Const(ir.F32, math.Inf(-1)))
				w.Store(weight, at, scalar.Select(hidden, scalar.Const(ir.F32, 0), scalar.Exp(scalar.Sub(s, most[r]))))
			}
		})
		w.Barrier()
		sums := w.overWarp(weight, lane, keys, scalar.Add, 0)
		w.valuesByWarps(v, weight, lane)
		w.storeStats(lane, most, sums)
	})
	return w.algorithm().Launches[0]
}

// vectorOf returns the vector where a key or a value of a block begins, of the last position at most.
func (w *cachedWriter) vectorOf(key scalar.Expr, size int) scalar.Expr {
	return w.Let("at", scalar.Mul(w.position(key), loop.Int(size/warpVector)))
}

// scoresByWarps stores the scores of a block's keys in workgroup memory and returns how many there are:
// -Inf for those that no query sees.
func (w *cachedWriter) scoresByWarps(q, k, weight int, lane scalar.Expr) scalar.Expr {
	part, slot := w.Let("part", scalar.Mod(lane, loop.Int(warpKeyLanes))), w.Let("slot", scalar.FloorDiv(lane, loop.Int(warpKeyLanes)))
	vectors, slots := w.depth/warpKeyLanes/warpVector, w.threads/warpKeyLanes
	query := make([][]scalar.Expr, w.rows)
	for r := range query {
		for j := range vectors {
			at := scalar.Add(scalar.Mul(scalar.Add(scalar.Mul(w.head, loop.Int(w.rows)), loop.Int(r)), loop.Int(w.depth/warpVector)), scalar.Add(part, loop.Int(j*warpKeyLanes)))
			for _, x := range w.vector(q, at) {
				query[r] = append(query[r], w.Let("q", scalar.Mul(x, scalar.Const(ir.F32, w.Scale))))
			}
		}
	}
	step := slots * keysAtOnce
	rounds := w.Let("rounds", scalar.FloorDiv(scalar.Add(w.keys.count, loop.Int(step-1)), loop.Int(step)))
	w.Loop("i", loop.Int(0), rounds, 1, w.block/step-1, func(i scalar.Expr) {
		var own []scalar.Expr
		var loaded [][]scalar.Expr // of each key
		for u := range keysAtOnce {
			own = append(own, w.Let("key", scalar.Add(scalar.Mul(i, loop.Int(step)), scalar.Add(slot, loop.Int(u*slots)))))
			at := w.vectorOf(own[u], w.depth)
			var x []scalar.Expr
			for j := range vectors {
				x = append(x, w.vector(k, scalar.Add(at, scalar.Add(part, loop.Int(j*warpKeyLanes))))...)
			}
			loaded = append(loaded, x)
		}
		for u, x := range loaded {
			sums := make([]scalar.Expr, w.rows)
			for r := range sums {
				sums[r] = scalar.Const(ir.F32, 0)
				for e := range x {
					sums[r] = scalar.Fma(x[e], query[r][e], sums[r])
				}
				sums[r] = w.shuffled(w.Let("sum", sums[r]), warpKeyLanes/2, scalar.Add)
			}
			w.When(scalar.Eq(part, loop.Int(0)), func() {
				real := scalar.And(scalar.Ge(own[u], w.keys.from), scalar.Lt(own[u], w.keys.count))
				for r, s := range sums {
					s = scalar.Select(real, w.seenScore(s, own[u], loop.Int(r%w.queries)), scalar.Const(ir.F32, math.Inf(-1)))
					w.Store(weight, scalar.Add(loop.Int(r*w.block), own[u]), s)
				}
			})
		}
	})
	return w.Let("keys", scalar.Mul(rounds, loop.Int(step)))
}

// shuffled combines a value over groups of 2·across adjacent threads.
func (w *cachedWriter) shuffled(x scalar.Expr, across int, combine func(x, y scalar.Expr) scalar.Expr) scalar.Expr {
	for ; across > 0; across /= 2 {
		name := w.Name("other")
		w.Add(&loop.Shuffle{Name: name, Value: x, Xor: across})
		x = w.Let("both", combine(x, scalar.FreeVar(name, ir.F32)))
	}
	return x
}

// overWarp combines each row of weights, in every warp.
func (w *cachedWriter) overWarp(weight int, lane, keys scalar.Expr, combine func(x, y scalar.Expr) scalar.Expr, zero float64) []scalar.Expr {
	out := make([]scalar.Expr, w.rows)
	for r := range out {
		sum := w.Var("sum", scalar.Const(ir.F32, zero))
		w.Loop("key", scalar.Mod(lane, loop.Int(loop.Warp)), keys, loop.Warp, w.block-1, func(key scalar.Expr) {
			w.Set(sum, combine(sum, scalar.LoadAt(weight, ir.F32, scalar.Add(loop.Int(r*w.block), key))))
		})
		out[r] = w.shuffled(w.Let("own", sum), loop.Warp/2, combine)
	}
	return out
}

// valuesByWarps stores the weighted sums of a block's values. A thread has a vector of features for a part
// of the keys; the parts are added in workgroup memory.
func (w *cachedWriter) valuesByWarps(v, weight int, lane scalar.Expr) {
	count := w.keys.count
	vectors := w.width / warpVector
	groups := w.threads / vectors
	parts := w.shared("part", ir.F32, groups*w.rows*w.width)
	group, feature := w.Let("group", scalar.FloorDiv(lane, loop.Int(vectors))), w.Let("feature", scalar.Mod(lane, loop.Int(vectors)))
	sums := make([][]scalar.Expr, w.rows)
	for r := range sums {
		for range warpVector {
			sums[r] = append(sums[r], w.Var("sum", scalar.Const(ir.F32, 0)))
		}
	}
	w.Loop("key", scalar.Add(w.keys.from, group), count, valuesAtOnce*groups, w.block-1, func(key scalar.Expr) {
		var own, at []scalar.Expr
		var loaded [][]scalar.Expr
		for u := range valuesAtOnce {
			own = append(own, scalar.Add(key, loop.Int(u*groups)))
			at = append(at, w.Let("near", scalar.Min(own[u], scalar.Sub(count, loop.Int(1)))))
			loaded = append(loaded, w.vector(v, scalar.Add(w.vectorOf(at[u], w.width), feature)))
		}
		for u, x := range loaded {
			for r := range sums {
				share := scalar.LoadAt(weight, ir.F32, scalar.Add(loop.Int(r*w.block), scalar.Clamp(at[u], loop.Int(0), loop.Int(w.block-1))))
				share = w.Let("share", scalar.Select(scalar.Lt(own[u], count), share, scalar.Const(ir.F32, 0)))
				for e, sum := range sums[r] {
					w.Set(sum, scalar.Fma(x[e], share, sum))
				}
			}
		}
	})
	for r := range sums {
		for e, sum := range sums[r] {
			at := scalar.Add(scalar.Mul(scalar.Add(scalar.Mul(group, loop.Int(w.rows)), loop.Int(r)), loop.Int(w.width)), scalar.Mul(feature, loop.Int(warpVector)))
			w.Store(parts, scalar.Add(at, loop.Int(e)), sum)
		}
	}
	w.Barrier()
	w.Loop("i", lane, loop.Int(w.rows*w.width), w.threads, w.rows*w.width-1, func(i scalar.Expr) {
		sum := w.combined(groups, func(g int) scalar.Expr {
			return scalar.LoadAt(parts, ir.F32, scalar.Add(i, loop.Int(g*w.rows*w.width)))
		}, scalar.Add)
		w.storePartial(scalar.FloorDiv(i, loop.Int(w.width)), scalar.Mod(i, loop.Int(w.width)), sum)
	})
}

// storeStats stores the sum of the weights of each query and the maximum of its scores, behind its sums.
func (w *cachedWriter) storeStats(lane scalar.Expr, most, sums []scalar.Expr) {
	w.When(scalar.Eq(lane, loop.Int(0)), func() {
		for r := range w.rows {
			w.storePartial(loop.Int(r), loop.Int(w.width+1), most[r])
			w.storePartial(loop.Int(r), loop.Int(w.width), sums[r])
		}
	})
}
