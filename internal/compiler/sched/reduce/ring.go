package reduce

import (
	"maps"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// ring is the workgroup memory that rows of packed weights are copied to, asynchronously and by 16 bytes, while threads
// multiply the rows of the stage before. The first copies start before the kernel waits for others. A stage has the rows of an
// iteration, Each of the schedule, and the ring its Stages.
type ring struct {
	arrays []*ringArray
	rows   int         // of a stage
	slots  int         // stages
	ahead  int         // stages that are copied before they are needed
	stage  scalar.Expr // the current one
}

// ringArray is an array of weights in a ring.
type ringArray struct {
	array  int
	row    int // words of a row
	memory int // slot of the workgroup memory
}

// words returns the words of a stage.
func (r *ring) words(a *ringArray) int { return a.row * r.rows }

// copyWords is the size of an asynchronous copy.
const copyWords = 16 / wordBytes

// The sizes of rings, by what products take on an H200.
const (
	ringWorkgroups = 2       // of a processor
	ringReserve    = 9 << 10 // bytes of workgroup memory that are left for sums and activations
	minStages      = 3
	maxStageRows   = 4
	// minStage is the size in bytes from which on longer stages are no faster: with shorter ones there are more barriers.
	minStage = 16 << 10
)

// ringBytes returns the bytes that a ring may have on a target, 0 if it has no asynchronous copies.
func ringBytes(caps loop.Caps) int {
	if !caps.Mma {
		return 0
	}
	return max(caps.MmaBytes/ringWorkgroups-ringReserve, 0)
}

// withRing returns a schedule with a ring where that pays. In GB/s of weights, on an H200, by words in registers → by a
// ring, of 8192 × 8192, 4096 × 14336 and 128256 × 4096:
//
//	activations of 8 bits, q8_0   3,511 → 3,871   3,317 → 3,396   4,111 → 4,230
//	                       q4_k   2,269 → 2,839   2,110 → 2,488   2,754 → 3,314
//	                       q6_k   2,063 → 3,309   2,043 → 2,919   2,786 → 3,889
//	                       q4_0   3,115 → 3,195   2,771 → 2,800   3,977 → 3,914
//	of 32 bits,            q8_0   3,080 → 3,812   2,762 → 2,369   3,752 → 3,958
//	                       q4_0   2,977 → 2,774
//
// What has weights of 4 bits and exact activations is bound by instructions. Products of which a workgroup has few weights
// are slower by it: 2,542 → 2,332 for 4096 × 4096 of q8_0, and 2,775 → 2,359 for 14336 × 4096 of q4_0.
func withRing(e *emit.Emitter, g *fusion.Group, s emit.Schedule) emit.Schedule {
	p := newPackedRows(e.Sibling(), g, rowSlices[s.K-1])
	r := &ring{rows: maxStageRows}
	if !r.findArrays(p) {
		return s
	}
	if p.rounding != nil {
		for r.rows > 1 && r.bytes()/2 >= minStage {
			r.rows /= 2
		}
	} else if wordBytes*r.arrays[0].row < g.Inner[0] {
		return s
	}
	return r.sized(p, s)
}

// sized returns a schedule with as many stages as the memory of a target holds, or the schedule itself if these are too few
// or a workgroup has weights for less than seven eighths of it.
func (r *ring) sized(p *packedRows, s emit.Schedule) emit.Schedule {
	room, iterations := ringBytes(p.Caps), s.Rows/r.rows
	slots := min(room/r.bytes(), iterations)
	if s.Rows%r.rows == 0 && 8*iterations*r.bytes() >= 7*room && slots >= minStages && r.aligned() {
		s.M, s.Each, s.Stages = 0, r.rows, slots
	}
	return s
}

// otherRings returns a schedule without its ring, and with rings of other stages.
func otherRings(w *Space, s emit.Schedule) (list []emit.Schedule) {
	p := newPackedRows(w.e.Sibling(), w.Group, rowSlices[s.K-1])
	s.Each, s.Stages = 0, 0
	list = append(list, s)
	r := &ring{}
	if !r.findArrays(p) {
		return list
	}
	for r.rows = 1; r.rows <= maxStageRows; r.rows *= 2 {
		if by := r.sized(p, s); by != s {
			list = append(list, by)
		}
	}
	return list
}

// hasRing reports whether a product can have the ring of a schedule.
func hasRing(w *Space, s emit.Schedule) bool {
	_, ok := findRing(newPackedRows(w.e.Sibling(), w.Group, rowSlices[s.K-1]), s)
	return ok
}

// bytes returns the size of a stage.
func (r *ring) bytes() (n int) {
	for _, a := range r.arrays {
		n += wordBytes * r.words(a)
	}
	return n
}

// aligned reports whether stages are whole copies.
func (r *ring) aligned() bool {
	return !slices.ContainsFunc(r.arrays, func(a *ringArray) bool { return r.words(a)%copyWords != 0 })
}

// findRing returns the ring of a schedule. It reports false where the target or the weights have none of that size.
func findRing(p *packedRows, s emit.Schedule) (*ring, bool) {
	r := &ring{rows: s.Each, slots: s.Stages, ahead: s.Stages - 1}
	if s.Each < 1 || s.Each > maxStageRows || s.Stages < 2 || s.Rows%s.Each != 0 || r.ahead*r.rows > s.Rows {
		return nil, false
	}
	return r, r.findArrays(p) && r.aligned() && r.slots*r.bytes() <= ringBytes(p.Caps)
}

// findArrays finds the arrays of weights and their rows. It reports false where the target has no ring, or the words of a row
// are not one after the other.
func (r *ring) findArrays(p *packedRows) bool {
	if ringBytes(p.Caps) == 0 {
		return false
	}
	q, ok := newPackedRows(p.Sibling(), p.g, p.split), true
	q.weights.from = func(array int, at scalar.Expr, _ int) scalar.Expr {
		ok = ok && r.add(q, array, at)
		return scalar.FreeVar("w", ir.U32)
	}
	whole := q.loadSlice(func() {
		ok = ok && !slices.ContainsFunc(q.weights.bases, func(b *wordBase) bool { return !r.holds(q, b) })
	})
	return whole && ok && len(r.arrays) > 0
}

// holds reports whether bytes of the first row are in the first row of an array that has all rows: weights may begin within
// an array's row, and then end in the next.
func (r *ring) holds(p *packedRows, b *wordBase) bool {
	n := wordBytes * r.arrays[r.number(b.array)].row
	last := slices.Max(slices.Collect(maps.Keys(b.ends)))
	lo, hi, known := p.Simplifier.Range(inRow(p, scalar.Add(b.at, loop.Int(last)), 0))
	return known && lo >= int64(last) && hi < int64(n) && fusion.Product(p.g.Outer)*n <= p.Partition.Tensor(b.array).Len()
}

// number returns the number of an array of weights, -1 if it is new.
func (r *ring) number(array int) int {
	return slices.IndexFunc(r.arrays, func(a *ringArray) bool { return a.array == array })
}

// add adds the array of a word, if it is new. It reports false where rows are not contiguous, or of another size than before.
func (r *ring) add(p *packedRows, array int, at scalar.Expr) bool {
	first := inRow(p, at, 0)
	row, ok := p.Simplify(scalar.Sub(inRow(p, at, 1), first)).IntConst()
	rest, same := p.Simplify(scalar.Sub(at, scalar.Add(first, scalar.Mul(p.first, loop.Int(int(row)))))).IntConst()
	if !ok || !same || rest != 0 {
		return false
	}
	if n := r.number(array); n >= 0 {
		return r.arrays[n].row == int(row)
	}
	r.arrays = append(r.arrays, &ringArray{array: array, row: int(row)})
	return true
}

// inRow returns the position of a word where the first row of the iteration has the given number.
func inRow(p *packedRows, at scalar.Expr, row int) scalar.Expr {
	return p.Simplify(scalar.SubstituteVars(at, map[string]scalar.Expr{p.first.Name: loop.Int(row)}))
}

// load loads a word of the current stage. Words after its last one are none that count.
func (r *ring) load(p *packedRows, array int, at scalar.Expr) scalar.Expr {
	a := r.arrays[r.number(array)]
	in := scalar.Min(inRow(p, at, 0), loop.Int(r.words(a)-1))
	return p.r.let("w", scalar.LoadAt(a.memory, ir.U32, p.Simplify(scalar.Add(scalar.Mul(r.stage, loop.Int(r.words(a))), in))))
}

// copyStage starts the copies of the rows from first on to a stage, by all threads.
func (r *ring) copyStage(p *packedRows, lane scalar.Expr, lanes int, first, stage scalar.Expr) (out []loop.Stmt) {
	for _, a := range r.arrays {
		copies := r.words(a) / copyWords
		for from := 0; from < copies; from += lanes {
			in := scalar.Mul(scalar.Add(lane, loop.Int(from)), loop.Int(copyWords))
			c := &loop.CopyAsync{
				To: a.memory, ToAt: p.Simplify(scalar.Add(scalar.Mul(stage, loop.Int(r.words(a))), in)),
				From: a.array, FromAt: p.Simplify(scalar.Add(scalar.Mul(first, loop.Int(a.row)), in)), Count: copyWords,
			}
			if left := copies - from; left < lanes {
				out = append(out, &loop.If{Cond: p.Simplify(scalar.Lt(lane, loop.Int(left))), Then: []loop.Stmt{c}})
			} else {
				out = append(out, c)
			}
		}
	}
	return out
}

// begin returns the copies of the first stages, which wait for no kernel if none writes the weights.
func (r *ring) begin(p *packedRows, lane scalar.Expr, lanes int, begin scalar.Expr) (out []loop.Stmt) {
	fixed := true
	for _, a := range r.arrays {
		a.memory = p.Shared(p.Name("ring"), ir.U32, 1, r.slots*r.words(a))
		p.weights.tensors[a.array] = true
		fixed = fixed && p.Partition.IsFixed(p.Partition.Tensor(a.array))
	}
	for i := range r.ahead {
		out = append(out, r.copyStage(p, lane, lanes, scalar.Add(begin, loop.Int(i*r.rows)), loop.Int(i))...)
		out = append(out, &loop.CopyCommit{})
	}
	if fixed {
		out = append(out, &loop.Barrier{Kernels: true})
	}
	return out
}

// overRing is [packedRows.overRows] with rows that are copied to a ring. All threads have multiplied the stage before when
// copies overwrite it.
func (p *packedRows) overRing(r *ring, lane scalar.Expr, s emit.Schedule, begin scalar.Expr, f func(at scalar.Expr)) {
	copies, outer, name := r.begin(p, lane, s.Lanes, begin), p.Body, p.Name("r")
	p.Body, p.rows = nil, &rowLoop{}
	p.weights.from = func(array int, at scalar.Expr, _ int) scalar.Expr { return r.load(p, array, at) }
	var at scalar.Expr = scalar.NewVar(name, ir.I32, 0, int64(s.Rows-r.rows))
	number := p.Simplify(scalar.FloorDiv(at, loop.Int(r.rows)))
	r.stage = p.ranged("stage", scalar.Mod(number, loop.Int(r.slots)), r.slots)
	p.Body = append(p.Body, &loop.CopyWait{Pending: r.ahead - 1}, &loop.Barrier{})
	stage := []loop.Stmt{&loop.CopyCommit{}} // of no copies after the last rows, by which groups are counted
	if ahead := r.ahead * r.rows; ahead < s.Rows {
		next := p.ranged("next", scalar.Mod(scalar.Add(number, loop.Int(r.ahead)), loop.Int(r.slots)), r.slots)
		copies := r.copyStage(p, lane, s.Lanes, scalar.Add(begin, scalar.Add(at, loop.Int(ahead))), next)
		stage = append([]loop.Stmt{&loop.If{Cond: p.Simplify(scalar.Lt(at, loop.Int(s.Rows-ahead))), Then: copies}}, stage...)
	}
	p.Body = append(p.Body, stage...)
	f(at)
	outer = append(outer, p.rows.before...)
	p.rows, p.weights.from = nil, nil
	outer = slices.Insert(outer, p.start, copies...)
	p.Body = append(outer, &loop.For{Var: name, Start: loop.Int(0), End: loop.Int(s.Rows), Step: loop.Int(r.rows), NoUnroll: true, Body: p.Body})
}
