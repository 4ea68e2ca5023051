package reduce

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// A tile is the rows that a thread reduces together where they share elements, as the neighbours of a
// window do: a vector of adjacent rows at each of some positions of another outer axis. It loads
// the elements of some points at a time, each once for all rows and points.
type tile struct {
	axis    int     // outer axis of the positions
	rows    int     // positions
	points  int     // points of the last inner axis at a time
	sharing float64 // loads of the rows and points by themselves for each load of the tile
}

// Bounds of a tile: accumulators and elements stay in registers.
const (
	maxTileRows   = 8
	maxTilePoints = 8
	minSharing    = 2
)

// tileOf returns the tile of a reduction whose rows are contiguous across rows, in one stage. On
// CUDA only: elsewhere it is not measured.
func tileOf(e *emit.Emitter, g *fusion.Group) (best tile, ok bool) {
	last := len(g.Outer) - 1
	if !emit.WithMma || e.Caps.Dialect != dtype.CUDA || last < 1 || g.Outer[last]%emit.VectorWidth != 0 || !g.Rows().CanSplit() || !g.Rows().AreContiguous() || !isWindowed(g) {
		return tile{}, false
	}
	points := largestDivisor(lastSize(g.Inner), maxTilePoints)
	for axis, n := range g.Outer[:last] {
		t := tile{axis: axis, rows: largestDivisor(n, maxTileRows), points: points}
		if t.rows == 1 || points == 1 {
			continue
		}
		if t.sharing = t.sharingIn(e, g); t.sharing > best.sharing {
			best = t
		}
	}
	return best, best.sharing >= minSharing
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
	for _, n := range slices.Backward(dims) {
		if n > 1 {
			return n
		}
	}
	return 1
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

// sharingIn counts the loads of a tile's rows, and those of different elements. It returns 0 where the rows of a vector
// read one element that has no neighbours at the next position or point: it would be loaded alone.
func (t tile) sharingIn(e *emit.Emitter, g *fusion.Group) float64 {
	e = e.Sibling()
	all, distinct := 0, map[string]bool{}
	for row := range t.rows * emit.VectorWidth {
		for u := range t.points {
			for _, n := range loadsOf(t, e, g, row, u) {
				all++
				distinct[scalar.Key(n)] = true
			}
		}
	}
	next, position, point := loadsOf(t, e, g, 1, 0), loadsOf(t, e, g, emit.VectorWidth, 0), loadsOf(t, e, g, 0, 1)
	for i, n := range loadsOf(t, e, g, 0, 0) {
		follows := func(loads []scalar.Expr) bool {
			if i >= len(loads) { // a load of padding alone
				return false
			}
			step, known := e.Simplify(scalar.Sub(loads[i].Args[0], n.Args[0])).IntConst()
			return known && step == 1
		}
		if i < len(next) && scalar.Equal(n, next[i]) && !follows(position) && !follows(point) {
			return 0
		}
	}
	return float64(all) / float64(max(len(distinct), 1))
}

// loadsOf returns the loads of point u of a row of a tile, counted position by position.
func loadsOf(t tile, e *emit.Emitter, g *fusion.Group, row, u int) (out []scalar.Expr) {
	base, first := fusion.Coords("row", t.dims(g)), scalar.NewVar("first", ir.I32, 0, int64(fusion.Product(g.Inner)/t.points-1))
	r := rowOfThread(e, g, t.row(base, row/emit.VectorWidth, row%emit.VectorWidth))
	c := t.point(e, g, first, u)
	for _, m := range r.membersAt(0, true) {
		at := slices.Concat(r.row, c.inner)
		for _, x := range m.Reduction().Element(m.Node, m.At(at), m.InnerAt(at), c.reader(r).Operand(m.Node)) {
			scalar.Walk(e.Simplify(x), func(n scalar.Expr) {
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
	dims[len(dims)-1] /= emit.VectorWidth
	return dims
}

// row returns the outer coordinates of a row of the tile at base, by its position and its place in
// the vector.
func (t tile) row(base ir.Index, position, place int) ir.Index {
	at := slices.Clone(base)
	last := len(at) - 1
	at[t.axis] = scalar.Add(scalar.Mul(at[t.axis], loop.Int(t.rows)), loop.Int(position))
	at[last] = scalar.Add(scalar.Mul(at[last], loop.Int(emit.VectorWidth)), loop.Int(place))
	return at
}

// point returns point u of the group of points with number k.
func (t tile) point(e *emit.Emitter, g *fusion.Group, k scalar.Expr, u int) *chunk {
	at := scalar.Add(scalar.Mul(k, loop.Int(t.points)), loop.Int(u))
	return &chunk{-1, e.Unflatten(at, g.Inner), scalar.ConstBool(true)}
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
	return emit.Schedule{Family: emit.Columns, Lanes: 1, Rows: emit.GroupThreads, Each: emit.VectorWidth, M: t.rows, N: t.points, Split: parts}
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
		var rows []*rowEmitter
		for position := range t.rows {
			for place := range emit.VectorWidth {
				rows = append(rows, rowOfThread(e, g, t.row(base, position, place)))
			}
		}
		from := e.Simplify(scalar.Mul(part, loop.Int(each)))
		to := e.Simplify(scalar.Min(scalar.Add(from, loop.Int(each)), loop.Int(groups)))
		var body []loop.Stmt
		body, ok = vectors(e, e.Nested(func() {
			accs := reducePoints(rows, &loop.For{Start: from, End: to, Step: loop.Int(1)}, groups, t.points)
			if s.Split == 1 {
				finishTogether(rows, accs)
				return
			}
			for n, a := range accs[0] {
				partials = append(partials, NewPartial(n, a.spec.DType, g, s.Split))
				for j, r := range rows {
					e.Add(e.Store(partials[n], append(ir.Index{part}, r.row...), scalar.FreeVar(accs[j][n].name, a.spec.DType))...)
				}
			}
		}))
		e.Add(body...)
	})
	if s.Split == 1 {
		return []emit.Launch{e.Launch(g.Name())}, ok
	}
	return []emit.Launch{e.Launch(g.Name() + "_parts"), CombineParts(e.Sibling(), g, s.Split, partials)}, ok
}
