package splat

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// grid is the layout of the tiles of an image, in row-major order. The last ones may
// extend beyond it.
type grid struct{ side, rows, columns int }

func (m Image) grid() grid {
	upward := func(pixels int) int { return (pixels + m.Tile - 1) / m.Tile }
	return grid{side: m.Tile, rows: upward(m.Height), columns: upward(m.Width)}
}

func (g grid) tiles() int { return g.rows * g.columns }

// inTiles renders pairs of a Gaussian and a tile in which it is visible. The pairs of a
// tile are adjacent, nearest Gaussian first, so that the transmittance is a segmented
// product scan.
func inTiles(b *ir.Builder, f Flat, order ir.Value, m Image) ir.Value {
	g := m.grid()
	p := pairsOf(b, f.at(b, order), g, m)
	f = f.at(b, ops.Take(b, order, p.gaussian, 0, ops.OutsideClip))
	alpha, before := m.end(b, p.cover(b, f, g, m.Limits), inOrder{
		through: func(alpha ir.Value) ir.Value { return p.through(b, alpha) },
		number:  func(x ir.Value) ir.Value { return p.number(b, x) },
	})
	weight := ops.Mul(b, alpha, before)

	// Weights and the remaining transmittance sum to 1, so it is enough to blend colors
	// minus the background.
	colors := f.Colors
	if m.Background.Valid() {
		colors = ops.Sub(b, colors, m.Background)
	}
	parts := ops.Mul(b, ops.ExpandDims(b, weight, 2), ops.ExpandDims(b, colors, 1))
	sums := ops.SegmentReduce(b, parts, p.tile, ops.SegmentAttrs{Segments: ir.N(g.tiles()), Reduction: "sum"})
	image := g.assemble(b, sums)
	for axis, size := range []int{m.Height, m.Width} {
		image = ops.SliceAxis(b, image, axis, ir.N(0), ir.N(size))
	}
	if m.Background.Valid() {
		image = ops.Add(b, image, m.Background)
	}
	return image
}

// assemble joins tiles [tiles, side², channels] into an image [rows·side, columns·side,
// channels].
func (g grid) assemble(b *ir.Builder, tiles ir.Value) ir.Value {
	channels, side := tiles.Dim(2), ir.N(g.side)
	x := ops.Reshape(b, tiles, ir.N(g.rows), ir.N(g.columns), side, side, channels)
	x = ops.Transpose(b, x, 0, 2, 1, 3, 4)
	return ops.Reshape(b, x, ir.N(g.rows*g.side), ir.N(g.columns*g.side), channels)
}

// pairs are the pairs of a Gaussian and a tile in which it is visible, ordered by tile and
// then by Gaussian. Unused pairs are at the end, with the tile after the last.
type pairs struct {
	gaussian, tile ir.Value // [pairs], i32
}

// pairsOf returns the pairs of Gaussians that are sorted by depth.
func pairsOf(b *ir.Builder, f Flat, g grid, m Image) pairs {
	room := m.Pairs
	seen := f.reach(b, g, m.Limits)
	count := ops.Mul(b, seen.columns, seen.rows)
	ends := ops.CumSum(b, count, ops.CumSumAttrs{})
	all := checked(b, count, room)

	// Pair p belongs to the first Gaussian whose pairs end after p.
	p := ops.Iota(b, ir.I32, 0, ir.N(room))
	gaussian := ops.SearchSorted(b, ends, p, true)
	of := func(x ir.Value) ir.Value { return ops.Take(b, x, gaussian, 0, ops.OutsideClip) }
	nth := ops.Sub(b, p, ops.Sub(b, of(ends), of(count)))
	columns := ops.Max(b, of(seen.columns), ops.OnesLike(b, p)) // 0 if there is no pair
	row := ops.Add(b, of(seen.top), ops.Div(b, nth, columns))
	tile := ops.Add(b, ops.Mul(b, row, ops.ConstLike(b, row, float64(g.columns))), ops.Add(b, of(seen.left), ops.Rem(b, nth, columns)))
	tile = ops.Select(b, ops.Lt(b, p, all), tile, ops.ConstLike(b, tile, float64(g.tiles())))
	sorted := ops.Sort(b, ops.SortAttrs{}, tile, gaussian)
	if b.Err() != nil {
		return pairs{}
	}
	return pairs{gaussian: sorted[1], tile: sorted[0]}
}

// checked returns the sum of counts, and makes a run fail if the sum exceeds room.
func checked(b *ir.Builder, counts ir.Value, room int) ir.Value {
	sum := ops.ReduceSum(b, counts, 0)
	// A float sum detects wrapping of the integer sum.
	about := ops.ReduceSum(b, ops.Convert(b, counts, ir.F32), 0)
	wraps := ops.Gt(b, about, ops.ConstLike(b, about, 1<<30))
	sum = ops.Select(b, wraps, ops.ConstLike(b, sum, math.MaxInt32), sum)
	return ops.CheckIndex(b, sum, ir.N(room+1), "number of pairs of a Gaussian and a tile")
}

// rectangles of tiles: the first column and row, and their numbers, 0 for none; i32.
type rectangles struct{ left, top, columns, rows ir.Value }

// reach returns the tiles in which Gaussians may be visible. α ≥ visible holds in the
// ellipse dᵀ·Σ⁻¹·d ≤ r = 2·log(opacity/visible), whose half-width along x is √(r·Σxx).
// r is at most the square of the radius.
func (f Flat) reach(b *ir.Builder, g grid, l Limits) rectangles {
	like := func(x float64) ir.Value { return ops.ConstLike(b, f.Opacities, x) }
	seen := ops.Ge(b, f.Opacities, like(l.minAlpha()))
	r := ops.Mul(b, like(2), ops.Log(b, ops.Mul(b, f.Opacities, like(1/l.minAlpha()))))
	if l.Radius > 0 {
		r = ops.Min(b, r, like(l.Radius*l.Radius))
	}
	along := func(axis, tiles int) (first, count ir.Value) {
		// Rounding must not exclude a pixel whose centre is on the boundary.
		const margin = 0.01
		half := ops.Add(b, ops.Sqrt(b, ops.Mul(b, r, f.covariance(b, axis, axis))), like(margin))
		center := ops.Sub(b, column(b, f.Means, axis), like(0.5))
		place := func(x ir.Value) ir.Value { return ops.Floor(b, ops.Div(b, x, like(float64(g.side)))) }
		low, high := place(ops.Sub(b, center, half)), place(ops.Add(b, center, half))
		// False where one is NaN.
		inside := ops.And(b, ops.Lt(b, low, like(float64(tiles))), ops.Ge(b, high, like(0)))
		seen = ops.And(b, seen, inside)
		low, high = ops.Max(b, low, like(0)), ops.Min(b, high, like(float64(tiles-1)))
		whole := func(x ir.Value, outside float64) ir.Value {
			return ops.Convert(b, ops.Select(b, inside, x, like(outside)), ir.I32)
		}
		first = whole(low, 0)
		return first, ops.Sub(b, whole(high, -1), ops.Sub(b, first, ops.OnesLike(b, first)))
	}
	var out rectangles
	out.left, out.columns = along(0, g.columns)
	out.top, out.rows = along(1, g.rows)
	out.columns = ops.Select(b, seen, out.columns, ops.ZerosLike(b, out.columns))
	return out
}

// cover returns α, [pairs, side²], of the pairs' Gaussians at the pixels of their tiles.
func (p pairs) cover(b *ir.Builder, f Flat, g grid, l Limits) ir.Value {
	d := f.Means.DType()
	x, y := centers(b, g.side, g.side, d)
	corner := func(tiles ir.Value) ir.Value {
		return ops.ExpandDims(b, ops.Convert(b, ops.Mul(b, tiles, ops.ConstLike(b, tiles, float64(g.side))), d), 1)
	}
	columns := ops.ConstLike(b, p.tile, float64(g.columns))
	x = ops.Add(b, corner(ops.Rem(b, p.tile, columns)), x)
	y = ops.Add(b, corner(ops.Div(b, p.tile, columns)), y)
	return f.cover(b, x, y, 1, l)
}

// through returns the transmittance: the exclusive product of 1 − α over the pairs of each
// tile, by h[i] = (1 − α[i−1])·h[i−1], which is 1 for the first.
func (p pairs) through(b *ir.Builder, alpha ir.Value) ir.Value {
	zero, one := ops.ZerosLike(b, alpha), ops.OnesLike(b, alpha)
	rest := shifted(b, ops.Sub(b, one, alpha), ops.Ones(b, alpha.DType(), ir.N(1), alpha.Dim(1)))
	begins := p.begins(b, alpha)
	return ops.LinearRecurrence(b, ops.Select(b, begins, zero, rest), ops.Select(b, begins, one, zero), ops.CumSumAttrs{})
}

// number returns the exclusive sum of x over the pairs of each tile.
func (p pairs) number(b *ir.Builder, x ir.Value) ir.Value {
	zero, one := ops.ZerosLike(b, x), ops.OnesLike(b, x)
	last := shifted(b, x, ops.Zeros(b, x.DType(), ir.N(1), x.Dim(1)))
	begins := p.begins(b, x)
	return ops.LinearRecurrence(b, ops.Select(b, begins, zero, one), ops.Select(b, begins, zero, last), ops.CumSumAttrs{})
}

// shifted returns x moved by one position, with first before it.
func shifted(b *ir.Builder, x, first ir.Value) ir.Value {
	return ops.SliceAxis(b, ops.Concatenate(b, 0, first, x), 0, ir.N(0), x.Dim(0))
}

// begins reports which pairs are the first of a tile, in the shape of a value of pairs and pixels.
func (p pairs) begins(b *ir.Builder, like ir.Value) ir.Value {
	before := shifted(b, p.tile, ops.Const(b, ir.I32, -1, ir.N(1)))
	return ops.BroadcastTo(b, ops.ExpandDims(b, ops.Ne(b, p.tile, before), 1), like.Shape())
}
