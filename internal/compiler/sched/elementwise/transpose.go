package elementwise

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// transposition is the loads of a map that are transposed through workgroup memory: their
// contiguous axis, across, is not the last axis of the results. A tile is M elements along
// across by N along the last axis. Its loads are coalesced along across, and its columns are
// read back along the last axis. Rows are padded by one element to avoid bank conflicts.
type transposition struct {
	emit.Schedule
	across, last int
	loads        []access
}

// minTransposed is the minimum length of both axes: half a side of the smallest tile. Shorter
// ones would leave more than half of it empty.
const minTransposed = 16

// transposition returns the loads that a schedule transposes, or false if there are none.
func (w *Space) transposition(s emit.Schedule) (t transposition, ok bool) {
	last := len(w.Group.Outer) - 1
	if last < 1 || w.Group.Outer[last] < minTransposed || !validTransposeTile(s) {
		return t, false
	}
	t = transposition{Schedule: s, across: -1, last: last}
	bytes := 0
	for _, a := range w.findAccesses() {
		steps, ok := w.steps(a)
		if !ok || steps[last] < emit.SectorElements || a.root.DType.IsComplex() {
			continue
		}
		along := slices.Index(steps, 1)
		if along < 0 || w.Group.Outer[along] < minTransposed || t.across >= 0 && along != t.across {
			continue
		}
		if bytes += loop.DeviceSize(a.root.DType) * s.N * (s.M + 1); bytes > w.e.Caps.SharedBytes {
			break
		}
		t.across = along
		t.loads = append(t.loads, a)
	}
	return t, t.across >= 0
}

// validTransposeTile reports whether the sides of a tile are powers of two from 32 to 64.
func validTransposeTile(s emit.Schedule) bool {
	ok := func(n int) bool { return n >= 32 && n <= 64 && emit.PowerOfTwo(n) == n }
	return ok(s.M) && ok(s.N)
}

// transposer writes a map whose loads are transposed through workgroup memory. Out-of-range
// positions are clamped: they are read and computed, but not stored.
type transposer struct {
	v *emit.Vectorizer
	transposition
	w         *Space
	point     ir.Index // coordinates of the workgroup: its tile, and its place along the other axes
	tiles     [2]scalar.Expr
	exists    scalar.Expr
	slots     []int
	lane      scalar.Expr
	shapes    [2]int // sizes of across and last
	tileSizes [2]int
}

// along and down are the axes of a tile.
const (
	along = iota // across
	down         // last
)

func (w *Space) transposed(s emit.Schedule) emit.Launch {
	tr, _ := w.transposition(s)
	t := &transposer{v: emit.NewVectorizer(w.e.Sibling().WithThreads(emit.GroupThreads)), transposition: tr, w: w, lane: loop.LocalID(0, emit.GroupThreads)}
	t.shapes, t.tileSizes = [2]int{w.Group.Outer[tr.across], w.Group.Outer[tr.last]}, [2]int{s.M, s.N}
	t.place()
	for _, a := range tr.loads {
		t.slots = append(t.slots, t.v.Shared("tile"+t.v.Name(""), a.root.DType, 1, s.N*(s.M+1)))
	}
	brought := t.quads(along, t.stageIn)
	taken := t.quads(down, t.readBack)
	t.v.Decide()
	for _, write := range brought {
		write()
	}
	t.v.Barrier()
	for _, write := range taken {
		write()
	}
	return t.v.Launch(w.Group.Name())
}

// place names the coordinates of the workgroup's tile.
func (t *transposer) place() {
	outer := slices.Clone(t.w.Group.Outer)
	counts := [2]int{emit.CeilDiv(t.shapes[along], t.tileSizes[along]), emit.CeilDiv(t.shapes[down], t.tileSizes[down])}
	outer[t.across], outer[t.last] = counts[along], counts[down]
	number, exists := t.v.BoundedGroup(fusion.Product(outer))
	t.exists = exists
	t.point = t.v.Unflatten(t.v.Let("workgroup", number), outer)
	for axis := range t.point {
		t.point[axis] = t.v.Let("c", t.point[axis])
	}
	t.tiles = [2]scalar.Expr{t.point[t.across], t.point[t.last]}
}

// quad is four neighbours along an axis of the tile that a thread moves.
type quad struct {
	points []ir.Index     // their coordinates, clamped
	inTile [2]scalar.Expr // coordinates of the first in the tile
	inside scalar.Expr    // at least one is in range
	each   []scalar.Expr  // which are in range, if inside
}

// quads calls f for each of a thread's quads along an axis of the tile, and returns the results.
func (t *transposer) quads(axis int, f func(p quad) func()) (out []func()) {
	other := 1 - axis
	lanes := t.tileSizes[axis] / emit.VectorWidth
	rows := emit.GroupThreads / lanes
	x, y := t.v.Let("x", scalar.Mod(t.lane, loop.Int(lanes))), t.v.Let("y", scalar.FloorDiv(t.lane, loop.Int(lanes)))
	for pass := range t.tileSizes[other] / rows {
		row := scalar.Add(y, loop.Int(pass*rows))
		p := t.quad(axis, x, row)
		p.inTile[axis], p.inTile[other] = scalar.Mul(x, loop.Int(emit.VectorWidth)), row
		out = append(out, f(p))
	}
	return out
}

// quad returns vector x of a row along an axis of the tile.
func (t *transposer) quad(axis int, x, row scalar.Expr) (p quad) {
	other := 1 - axis
	n, axes := t.shapes[axis], [2]int{t.across, t.last}
	at, fits := t.clamp(scalar.Add(scalar.Mul(t.tiles[other], loop.Int(t.tileSizes[other])), row), t.shapes[other])
	vector := scalar.Add(scalar.Mul(t.tiles[axis], loop.Int(t.tileSizes[axis]/emit.VectorWidth)), x)
	vector, some := t.clamp(vector, emit.CeilDiv(n, emit.VectorWidth))
	p.inside = t.v.Let("inside", scalar.And(t.exists, scalar.And(fits, some)))
	for k := range emit.VectorWidth {
		along := t.v.Simplify(scalar.Add(scalar.Mul(vector, loop.Int(emit.VectorWidth)), loop.Int(k)))
		kept, exists := along, scalar.Expr(scalar.ConstBool(true))
		if n%emit.VectorWidth != 0 {
			kept, exists = t.clamp(along, n)
		}
		point := slices.Clone(t.point)
		point[axes[axis]], point[axes[other]] = kept, at
		p.points, p.each = append(p.points, point), append(p.each, exists)
	}
	return p
}

// clamp clamps a position below n, and returns the condition that it was in range.
func (t *transposer) clamp(at scalar.Expr, n int) (kept, fits scalar.Expr) {
	at = t.v.Simplify(at)
	if _, hi, ok := scalar.Range(at); ok && hi < int64(n) {
		return t.v.Let("at", at), scalar.ConstBool(true)
	}
	return t.v.Let("at", scalar.Min(at, loop.Int(n-1))), scalar.Lt(at, loop.Int(n))
}

// at substitutes a point for the map's coordinates in x.
func (t *transposer) at(x scalar.Expr, point ir.Index) scalar.Expr {
	return t.v.Simplify(scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		for axis, c := range t.w.at {
			if n.Op == scalar.OpVar && n.Name == c.Name {
				return point[axis], true
			}
		}
		return nil, false
	}))
}

// stageIn loads a quad of each load. The returned function stores it into its row of workgroup
// memory.
func (t *transposer) stageIn(p quad) func() {
	var values []scalar.Expr
	for _, a := range t.loads {
		for _, point := range p.points {
			values = append(values, scalar.LoadAt(a.root.ID, a.root.DType, t.at(a.at, point)))
		}
	}
	t.v.Observe(values...)
	return func() {
		t.v.Load(values)
		t.v.Add(t.v.NameAll(values)...)
		for i, x := range values {
			at := scalar.Add(scalar.Mul(p.inTile[down], loop.Int(t.M+1)), scalar.Add(p.inTile[along], loop.Int(i%emit.VectorWidth)))
			t.v.Put(t.slots[i/emit.VectorWidth], at, x)
		}
	}
}

// readBack computes a quad of the results from columns of workgroup memory. The returned function
// stores it.
func (t *transposer) readBack(p quad) func() {
	cells := map[string]scalar.Expr{}
	for i, a := range t.loads {
		for k, point := range p.points {
			at := scalar.Add(scalar.Mul(scalar.Add(p.inTile[down], loop.Int(k)), loop.Int(t.M+1)), p.inTile[along])
			load := scalar.LoadAt(a.root.ID, a.root.DType, t.at(a.at, point))
			cells[scalar.Key(load)] = scalar.LoadAt(t.slots[i], a.root.DType, t.v.Simplify(at))
		}
	}
	stores := t.v.Values(t.w.Group, t.v.Reader(), p.points...)
	for i := range stores {
		stores[i].Value = scalar.Substitute(stores[i].Value, func(n scalar.Expr) (scalar.Expr, bool) {
			if n.Op != scalar.OpLoad {
				return nil, false
			}
			cell, ok := cells[scalar.Key(scalar.LoadAt(n.Ref, n.Type, t.v.Simplify(n.Args[0])))]
			return cell, ok
		})
	}
	t.v.ObserveStores(stores, emit.VectorWidth)
	return func() { t.v.When(p.inside, func() { t.v.Store(stores, emit.VectorWidth, p.each) }) }
}
