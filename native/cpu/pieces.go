package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Bounds for a map that is split into pieces: their number, and the nanoseconds of overhead that a
// further piece adds.
const (
	maxPieces = 64
	perPiece  = 300
)

// made is a compiled map or reduction: steps, or nests without kernels.
type made struct {
	steps []step
	nests []*nest
	cost  float64 // nanoseconds of one worker
}

// make compiles code over outer and inner points: as a transpose, a padded copy, a nest, or, where they take
// less time, as pieces along an axis whose positions conditions compare with constants, as in a concatenation
// or a reduction of one.
func (c *compiler) make(name string, code *fusion.Code, outer, inner []int) (*made, error) {
	axis, step := stridedAxis(code, outer)
	if step == 0 {
		return makeWhole(c, name, code, outer, inner)
	}
	whole, err := makeWhole(c, name, cloneOf(code), outer, inner)
	if err != nil || len(whole.nests) == 0 || whole.cost < chunkCost {
		return whole, err
	}
	parts := &made{}
	for r := range step {
		dims := slices.Clone(outer)
		dims[axis] = (outer[axis] - r + step - 1) / step
		part, err := c.make(name, partOf(code, axis, r, step, dims[axis]), dims, inner)
		if err != nil {
			return nil, err
		}
		if parts.add(part); parts.cost >= whole.cost {
			return whole, nil
		}
	}
	return parts, nil
}

// add adds a piece.
func (m *made) add(piece *made) {
	m.steps, m.nests = append(m.steps, piece.steps...), append(m.nests, piece.nests...)
	m.cost += piece.cost + perPiece
}

// maxStride is the maximum divisor that cuts a coordinate into pieces, one for each remainder.
const maxStride = 4

// stridedAxis returns an axis and the divisor of its coordinate in the conditions of code, such as those of
// the gradient of overlapping windows; 0 for none. With a fixed remainder they are simpler.
func stridedAxis(code *fusion.Code, outer []int) (axis, step int) {
	by := map[string]int{}
	walkValues(code, func(x scalar.Expr) {
		if x.Op != scalar.OpSelect {
			return
		}
		scalar.Walk(x.Args[0], func(x scalar.Expr) {
			if (x.Op == scalar.OpMod || x.Op == scalar.OpRem) && x.Args[0].Op == scalar.OpVar {
				if d, ok := x.Args[1].IntConst(); ok && d > 1 && d <= maxStride {
					by[x.Args[0].Name] = int(d)
				}
			}
		})
	})
	for i, v := range code.Outer {
		if d := by[v.Name]; d > 0 && outer[i] >= 2*d {
			return i, d
		}
	}
	return 0, 0
}

// makeWhole is [compiler.make] without division by strides.
func makeWhole(c *compiler, name string, code *fusion.Code, outer, inner []int) (*made, error) {
	outer, inner = coalesce(code, split(code, &code.Outer, outer), split(code, &code.Inner, inner))
	if t := newTranspose(code, outer, c.buffers); t != nil {
		return &made{steps: []step{t}, cost: t.cost}, nil
	}
	if p := newPad(code, outer, c.buffers); p != nil {
		return &made{steps: []step{p}, cost: padCost * float64(product(outer))}, nil
	}
	looped := code
	n, code, err := makeNests(c, name, code, outer, inner)
	if err != nil {
		return nil, err
	}
	if moved, dims := nearestLast(looped, outer); moved != nil && n.cost > chunkCost {
		x, moved, err := makeNests(c, name, moved, dims, inner)
		if err != nil {
			return nil, err
		}
		if x.cost < n.cost {
			n, code, outer = x, moved, dims
		}
	}
	if s := newCopy(code, outer, c.buffers); s != nil && s.cost < n.cost {
		return &made{steps: []step{s}, cost: s.cost}, nil
	}
	whole := &made{nests: []*nest{n}, cost: n.cost}
	if n.cost < chunkCost || slices.ContainsFunc(code.Stages, func(s fusion.Stage) bool { return s.Contraction != nil }) {
		return whole, nil
	}
	if len(code.Inner) == 0 {
		inner = nil // unrolled
	}
	for i := range code.Outer {
		cuts := cutsOf(code, code.Outer[i], outer[i])
		if len(cuts) == 0 || len(cuts) >= maxPieces {
			continue
		}
		cut, err := c.makePieces(name, code, outer, inner, i, cuts)
		if err != nil {
			return nil, err
		}
		if cut.cost < whole.cost {
			return cut, nil
		}
	}
	return whole, nil
}

// makeNests returns the nest of code, with a loop over inner points or without one, and its code.
func makeNests(c *compiler, name string, code *fusion.Code, outer, inner []int) (*nest, *fusion.Code, error) {
	n, err := makeNest(name, code, outer, inner, c.buffers)
	if err != nil {
		return nil, nil, err
	}
	if u := unrolled(code, inner); u != nil {
		x, err := makeNest(name, u, outer, nil, c.buffers)
		if err != nil {
			return nil, nil, err
		}
		if x.cost < n.cost {
			return x, u, nil
		}
	}
	return n, code, nil
}

// makePieces compiles code in pieces along outer axis i, which begin at 0 and at the cuts.
func (c *compiler) makePieces(name string, code *fusion.Code, outer, inner []int, i int, cuts []int) (*made, error) {
	all := &made{}
	for k, end := range append(slices.Clone(cuts), outer[i]) {
		first := 0
		if k > 0 {
			first = cuts[k-1]
		}
		dims := slices.Clone(outer)
		dims[i] = end - first
		piece, err := c.make(name, partOf(code, i, first, 1, end-first), dims, inner)
		if err != nil {
			return nil, err
		}
		all.add(piece)
	}
	return all, nil
}

// partOf returns the part of code at n positions along axis i, step apart from first on, in which the axis
// starts at 0.
func partOf(code *fusion.Code, i, first, step, n int) *fusion.Code {
	v := code.Outer[i]
	moved := scalar.NewVar(v.Name, v.Type, 0, int64(n-1))
	at := scalar.Add(scalar.Mul(moved, scalar.ConstI(v.Type, int64(step))), scalar.ConstI(v.Type, int64(first)))
	part := cloneOf(code)
	part.Outer[i] = moved
	replaceVar(part, v.Name, at)
	return part
}

// cloneOf returns a copy of code whose expressions may be replaced.
func cloneOf(code *fusion.Code) *fusion.Code {
	out := *code
	out.Outer, out.Inner, out.Rows, out.Points, out.Stages = slices.Clone(code.Outer), slices.Clone(code.Inner), slices.Clone(code.Rows), slices.Clone(code.Points), slices.Clone(code.Stages)
	for i := range out.Stages {
		s := &out.Stages[i]
		s.Lets, s.Reductions = slices.Clone(s.Lets), slices.Clone(s.Reductions)
		for j := range s.Reductions {
			r := &s.Reductions[j]
			r.Elements, r.Results = slices.Clone(r.Elements), slices.Clone(r.Results)
		}
	}
	return &out
}

// cutsOf returns the positions along an axis at which a condition of the code changes, in order.
func cutsOf(code *fusion.Code, v scalar.Expr, size int) []int {
	var cuts []int
	add := func(at int) {
		if at > 0 && at < size {
			cuts = append(cuts, at)
		}
	}
	walkValues(code, func(x scalar.Expr) {
		if at, ok := cutAt(x, v); ok {
			add(at)
		} else if at, ok := equalAt(x, v); ok {
			add(at)
			add(at + 1)
		}
	})
	slices.Sort(cuts)
	return slices.Compact(cuts)
}

// equalAt returns the constant that an expression compares a coordinate with for equality; false for any other
// expression.
func equalAt(e, v scalar.Expr) (int, bool) {
	if e.Op != scalar.OpEq && e.Op != scalar.OpNe || e.Args[0].Op != scalar.OpVar || e.Args[0].Name != v.Name {
		return 0, false
	}
	at, ok := e.Args[1].IntConst()
	return int(at), ok
}

// cutAt returns the first place along an axis from which a comparison with a constant has
// another value; false for any other expression.
func cutAt(e, v scalar.Expr) (int, bool) {
	if e.Op < scalar.OpEq || e.Op > scalar.OpGe || e.Args[0].Type != ir.I32 {
		return 0, false
	}
	a, b, strict, ok := atMost(e)
	if !ok {
		return 0, false
	}
	difference := affineOf(scalar.Sub(b, a))
	if len(difference.terms) != 1 || difference.terms[0].of.Op != scalar.OpVar || difference.terms[0].of.Name != v.Name {
		return 0, false
	}
	switch rest := difference.constant - strict; difference.terms[0].coef { // coef·x + rest ≥ 0
	case 1:
		return -rest, true
	case -1:
		return rest + 1, true
	}
	return 0, false
}

// atMost returns a comparison as a + strict ≤ b; false for one of equality.
func atMost(e scalar.Expr) (a, b scalar.Expr, strict int, ok bool) {
	a, b = e.Args[0], e.Args[1]
	switch e.Op {
	case scalar.OpLt:
		return a, b, 1, true
	case scalar.OpLe:
		return a, b, 0, true
	case scalar.OpGt:
		return b, a, 1, true
	case scalar.OpGe:
		return b, a, 0, true
	}
	return a, b, 0, false
}

// piecesStep runs several nests at once.
type piecesStep struct {
	env    *environment
	nests  []*nestStep
	chunks []int // for each nest, the number of chunks up to its last
	cost   float64
}

// newPieces returns the step of several nests.
func newPieces(nests []*nest, env *environment) *piecesStep {
	s := &piecesStep{env: env}
	total := 0
	for _, n := range nests {
		x := newNestStep(n, env, true)
		total += x.chunks
		s.nests, s.chunks, s.cost = append(s.nests, x), append(s.chunks, total), s.cost+n.cost
	}
	return s
}

func (s *piecesStep) run(r *runner) {
	s.env.epoch++
	r.job.runCosting(s.cost, s, s.chunks[len(s.chunks)-1])
}

func (s *piecesStep) do(worker, chunk int) {
	i, _ := slices.BinarySearch(s.chunks, chunk+1)
	n := s.nests[i]
	n.do(worker, chunk-s.chunks[i]+n.chunks)
}
