package reduce

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// A tile is the rows that a thread reduces together where they share elements, as the neighbours of a
// window do: adjacent rows at each of some positions of another outer axis. It loads
// the elements of some points at a time, each once for all rows and points.
type tile struct {
	width   int     // adjacent rows
	axis    int     // outer axis of the positions
	rows    int     // positions
	points  int     // points of the last inner axis at a time, or all of a small window
	sharing float64 // loads of the rows and points by themselves for each load of the tile
}

// Bounds of a tile: accumulators and elements stay in registers.
const (
	maxTileRows   = 8
	maxTilePoints = 8
	maxWindow     = 49
	minSharing    = 2
)

// tileOf returns the tile of a reduction whose rows are contiguous across rows, in one stage, where barriers are not
// costly. On CUDA the adjacent rows are a vector, but for windows of planes, whose neighbours read no aligned vectors (H200:
// depthwise convolutions of 5 by 5 took 542 µs by lanes). Elsewhere they are where they share more elements than one row does and
// the tiles fill the device, as in convolutions of four channels a group (H200, WebGPU: a ResNeXt took 0.85 of the time); sums
// that are split take longer by fewer threads (a ShuffleNet 1.17 times as long).
func tileOf(e *emit.Emitter, g *fusion.Group) (best tile, ok bool) {
	for _, t := range tilesOf(e, g) {
		if t.sharing = t.sharingIn(e, g); t.sharing > best.sharing {
			best = t
		}
	}
	return best, best.sharing >= minSharing
}

// tilesOf returns the tiles of which tileOf chooses, as if all loads were shared.
func tilesOf(e *emit.Emitter, g *fusion.Group) (out []tile) {
	last := len(g.Outer) - 1
	if emit.CostlyBarriers(e.Caps) || last < 1 || !g.Rows().CanSplit() || !g.Rows().AreContiguous() || !isWindowed(g) {
		return nil
	}
	points, window := largestDivisor(lastSize(g.Inner), maxTilePoints), fusion.Product(g.Inner)
	for _, width := range []int{1, emit.VectorWidth} {
		for axis, n := range g.Outer[:last] {
			t := tile{width, axis, largestDivisor(n, maxTileRows), points, math.Inf(1)}
			if width == 1 && onCUDA(e) {
				if window > maxWindow || !overlaps(e, g) {
					continue
				}
				t.points = window
			}
			if t.rows > 1 && t.points > 1 && g.Outer[last]%width == 0 && (width == 1 || onCUDA(e) || t.schedule(e, g).Split == 1) {
				out = append(out, t)
			}
		}
	}
	return out
}

// onCUDA reports whether kernels are for CUDA.
func onCUDA(e *emit.Emitter) bool { return emit.WithMma && e.Caps.Dialect == dtype.CUDA }

// overlaps reports whether adjacent rows share elements at neighbouring points, as along the last axis of a window over
// planes: their loads are no aligned vectors.
func overlaps(e *emit.Emitter, g *fusion.Group) bool {
	pair := tile{width: 2, rows: 1, points: fusion.Product(g.Inner)}
	rows := pair.rowsAt(e.Sibling(), g, fusion.Coords("row", pair.dims(g)))
	next := pair.loadsOf(rows[1], 0)
	return slices.ContainsFunc(pair.loadsOf(rows[0], 1), func(x scalar.Expr) bool {
		return slices.ContainsFunc(next, func(y scalar.Expr) bool { return scalar.Equal(x, y) })
	})
}

// isWindowed reports whether a group reduces one member over several axes, as windows do.
func isWindowed(g *fusion.Group) bool {
	reduced := 0
	for _, m := range g.Members {
		if m.Reduced {
			reduced++
		}
	}
	wide := 0
	for _, n := range g.Inner {
		if n > 1 {
			wide++
		}
	}
	return reduced == 1 && wide > 1
}

// lastSize returns the last size that is not 1.
func lastSize(dims []int) int {
	last := 1
	for _, n := range dims {
		if n > 1 {
			last = n
		}
	}
	return last
}

// largestDivisor returns the largest divisor of n up to limit.
func largestDivisor(n, limit int) int {
	for d := min(n, limit); d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}

// sharingIn counts the loads of a tile's rows, and those of different elements. It returns 0 where the rows of a vector on CUDA
// read one element that has no neighbours at the next position or point: it would be loaded alone.
func (t tile) sharingIn(e *emit.Emitter, g *fusion.Group) float64 {
	rows := t.rowsAt(e.Sibling(), g, fusion.Coords("row", t.dims(g)))
	all, distinct := 0, map[scalar.Expr]bool{} // of one simplifier, which makes one node for equal loads
	for _, r := range rows {
		for u := range t.points {
			for _, n := range t.loadsOf(r, u) {
				all++
				distinct[n] = true
			}
		}
	}
	if onCUDA(e) && t.width > 1 && loadsAlone(t, rows) {
		return 0
	}
	return float64(all) / float64(max(len(distinct), 1))
}

// loadsAlone reports whether the rows of a vector read one element that has no neighbours at the next position or point.
func loadsAlone(t tile, rows []*rowEmitter) bool {
	next, position, point := t.loadsOf(rows[1], 0), t.loadsOf(rows[t.width], 0), t.loadsOf(rows[0], 1)
	for i, n := range t.loadsOf(rows[0], 0) {
		follows := func(loads []scalar.Expr) bool {
			if i >= len(loads) { // a load of padding alone
				return false
			}
			step, known := rows[0].Simplify(scalar.Sub(loads[i].Args[0], n.Args[0])).IntConst()
			return known && step == 1
		}
		if i < len(next) && scalar.Equal(n, next[i]) && !follows(position) && !follows(point) {
			return true
		}
	}
	return false
}

// loadsOf returns the loads of point u of a row of a tile.
func (t tile) loadsOf(r *rowEmitter, u int) (out []scalar.Expr) {
	first := scalar.NewVar("first", ir.I32, 0, int64(fusion.Product(r.g.Inner)/t.points-1))
	c := &chunk{-1, r.Unflatten(scalar.Add(scalar.Mul(first, loop.Int(t.points)), loop.Int(u)), r.g.Inner), scalar.ConstBool(true)}
	for _, m := range r.membersAt(0, true) {
		at := slices.Concat(r.row, c.inner)
		for _, x := range m.Reduction().Element(m.Node, m.At(at), m.InnerAt(at), c.reader(r).Operand(m.Node)) {
			scalar.Walk(r.Simplify(x), func(n scalar.Expr) {
				if n.Op == scalar.OpLoad {
					out = append(out, n)
				}
			})
		}
	}
	return out
}

// dims returns the sizes of the tiles' outer axes: numbers of tiles.
func (t tile) dims(g *fusion.Group) []int {
	dims := slices.Clone(g.Outer)
	dims[t.axis] /= t.rows
	dims[len(dims)-1] /= t.width
	return dims
}

// rowsAt are the emitters of the rows of the tile at base, by position and then by place among the adjacent rows.
func (t tile) rowsAt(e *emit.Emitter, g *fusion.Group, base ir.Index) (rows []*rowEmitter) {
	last := len(base) - 1
	for i := range t.rows * t.width {
		at := slices.Clone(base)
		at[t.axis] = scalar.Add(scalar.Mul(at[t.axis], loop.Int(t.rows)), loop.Int(i/t.width))
		at[last] = scalar.Add(scalar.Mul(at[last], loop.Int(t.width)), loop.Int(i%t.width))
		rows = append(rows, rowOfThread(e, g, at))
	}
	return rows
}

// schedule returns the schedule of the tile: rows are split where there are too few tiles to fill
// the device.
func (t tile) schedule(e *emit.Emitter, g *fusion.Group) emit.Schedule {
	tiles, groups := fusion.Product(t.dims(g)), fusion.Product(g.Inner)/t.points
	parts := min(e.Caps.Profile().Workgroups(wantedGroups)*emit.GroupThreads/tiles, groups/minTileGroups)
	if parts < 2 {
		parts = 1
	} else {
		parts = emit.CeilDiv(groups, emit.CeilDiv(groups, parts))
	}
	return emit.Schedule{Family: emit.Columns, Lanes: 1, Rows: emit.GroupThreads, Each: t.width, M: t.rows, N: t.points, Split: parts}
}

// minTileGroups is the least number of groups of points of a part: its sums are stored and read again.
const minTileGroups = 4

// emitTiles returns the launches of a reduction by tiles, or false where its accesses are no vectors.
func emitTiles(e *emit.Emitter, g *fusion.Group, t tile, s emit.Schedule) (out []emit.Launch, ok bool) {
	e = e.Sibling().WithThreads(emit.GroupThreads)
	dims, groups := t.dims(g), fusion.Product(g.Inner)/t.points
	tiles, each := fusion.Product(dims), emit.CeilDiv(groups, s.Split)
	var partials []*fusion.Tensor
	e.Threads(tiles*s.Split, func(i scalar.Expr) {
		part, base := scalar.FloorDiv(i, loop.Int(tiles)), e.Unflatten(scalar.Mod(i, loop.Int(tiles)), dims)
		rows := t.rowsAt(e, g, base)
		if !onCUDA(e) || t.width == 1 { // where no vectorizer follows, an element that rows or points share is loaded once
			loads := []map[scalar.Expr]scalar.Expr{{}}
			for _, r := range rows {
				r.points, r.loads = make([]map[ir.Value]scalar.Expr, 1), loads
			}
		}
		from := e.Simplify(scalar.Mul(part, loop.Int(each)))
		to := e.Simplify(scalar.Min(scalar.Add(from, loop.Int(each)), loop.Int(groups)))
		points := &loop.For{Start: from, End: to, Step: loop.Int(1)}
		body := e.Nested(func() {
			accs := reducePoints(rows, points, groups, t.points)
			if s.Split == 1 {
				finishTogether(rows, accs)
				if t.width > 1 && !onCUDA(e) {
					emit.NewVectorizer(e).LoadIn(points)
				}
				return
			}
			partials = newPartials(accs[0], g, s.Split)
			for j, r := range rows {
				e.Add(r.storePartials(partials, accs[j], part)...)
			}
		})
		if ok = true; onCUDA(e) && t.width > 1 {
			body, ok = vectors(e, body)
		}
		e.Add(body...)
	})
	if s.Split == 1 {
		return []emit.Launch{e.Launch(g.Name())}, ok
	}
	return []emit.Launch{e.Launch(g.Name() + "_parts"), CombineParts(e.Sibling(), g, s.Split, partials)}, ok
}
