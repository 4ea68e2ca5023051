package cpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Kernels compute with real numbers. So code that reads parts of complex numbers reads arrays of
// these parts, and code that makes complex numbers of parts writes such arrays: the steps below
// convert between them and the complex numbers in memory.

// partStep copies the real (0) or imaginary (1) parts of complex numbers of a region to an array.
type partStep struct {
	from, to *buffer
	at       region
	part     int
	env      *environment
	now      buffer // the region in this run
}

// pairStep makes the complex numbers of a region of arrays of their parts.
type pairStep struct {
	parts [2]*buffer
	to    *buffer
	at    region
	env   *environment
	now   buffer
}

// region is contiguous elements of a buffer, from a place that loops may move.
type region struct {
	first    int
	counters []counterTerm
	elems    int
}

// regionOf returns the region of the elements at an offset, and the offset in it; false where it is not known or does
// not start with the element for which all coordinates are 0.
func regionOf(offset scalar.Expr) (region, affine, bool) {
	sum := affineOf(offset)
	at, within := region{first: sum.constant, elems: 1}, affine{}
	s := scalar.NewSimplifier()
	for _, t := range sum.terms {
		if t.of.Op != scalar.OpVar {
			return at, within, false
		}
		if kind, depth := loop.BuiltinOf(t.of.Name); kind == loop.BuiltinCounter {
			at.counters = append(at.counters, counterTerm{depth, t.coef})
			continue
		}
		lo, hi, ok := s.Range(t.of)
		if !ok || lo < 0 || t.coef < 0 || hi >= math.MaxInt32 {
			return at, within, false
		}
		at.elems += t.coef * int(hi)
		within.terms = append(within.terms, t)
	}
	return at, within, true
}

// of returns the region's elements in this run.
func (x region) of(b *buffer, env *environment) buffer {
	at, size := x.first, b.dtype.Size()
	for _, t := range x.counters {
		at += t.coef * int(env.counters[t.depth])
	}
	return buffer{dtype: b.dtype, elems: x.elems, data: b.data[at*size:][:x.elems*size]}
}

// pairChunk is the number of complex numbers of a chunk.
const pairChunk = 16384

// pairChunks returns the number of chunks of some complex numbers.
func pairChunks(elems int) int { return (elems + pairChunk - 1) / pairChunk }

func (s *partStep) run(r *runner) {
	s.now = s.at.of(s.from, s.env)
	r.job.run(s, pairChunks(s.to.elems))
}

func (s *partStep) do(_, chunk int) {
	if s.to.dtype == ir.F64 {
		copyParts(view[float64](s.to), floats[float64](&s.now), s.part, chunk, pickEvens)
	} else {
		copyParts(view[float32](s.to), floats[float32](&s.now), s.part, chunk, simd.Evens)
	}
}

func copyParts[T simd.Float](to, from []T, part, chunk int, pick func(to, from []T)) {
	first := chunk * pairChunk
	pick(to[first:min(first+pairChunk, len(to))], from[2*first+part:])
}

func pickEvens(to, from []float64) {
	from = from[:2*len(to)-1]
	for i := range to {
		to[i] = from[2*i]
	}
}

func (s *pairStep) run(r *runner) {
	s.now = s.at.of(s.to, s.env)
	r.job.run(s, pairChunks(s.now.elems))
}

func (s *pairStep) do(_, chunk int) {
	if s.parts[0].dtype == ir.F64 {
		makePairs(floats[float64](&s.now), view[float64](s.parts[0]), view[float64](s.parts[1]), chunk, joinDoubles)
	} else {
		makePairs(floats[float32](&s.now), view[float32](s.parts[0]), view[float32](s.parts[1]), chunk, simd.Join)
	}
}

func makePairs[T simd.Float](to, re, im []T, chunk int, join func(to, re, im []T)) {
	first := chunk * pairChunk
	re = re[first:min(first+pairChunk, len(re))]
	join(to[2*first:][:2*len(re)], re, im[first:][:len(re)])
}

func joinDoubles(to, re, im []float64) {
	for i, x := range re {
		to[2*i], to[2*i+1] = x, im[i]
	}
}

// floats returns the parts of the complex numbers of a buffer.
func floats[T simd.Float](b *buffer) []T {
	return view[T](&buffer{elems: 2 * b.elems, data: b.data})
}

// bindPart binds a load of parts of contiguous complex numbers.
func (m *machine) bindPart(in *instr) op {
	a, part := m.bindAddress(in.at), int(in.node.Op-scalar.OpReal)
	if in.buf.dtype == ir.C128 {
		to := lanesOf[float64](m.files, in.dst)
		return func(n int) { pickEvens(to[:n], floats[float64](in.buf)[2*a.first()+part:]) }
	}
	to := lanesOf[float32](m.files, in.dst)
	return func(n int) { simd.Evens(to[:n], floats[float32](in.buf)[2*a.first()+part:]) }
}

// bindPairs binds a store of contiguous complex numbers of their parts.
func (m *machine) bindPairs(in *instr) op {
	a := m.bindAddress(in.at)
	if in.buf.dtype == ir.C128 {
		re, im := lanesOf[float64](m.files, in.args[0]), lanesOf[float64](m.files, in.args[1])
		return func(n int) { joinDoubles(floats[float64](in.buf)[2*a.first():][:2*n], re[:n], im[:n]) }
	}
	re, im := lanesOf[float32](m.files, in.args[0]), lanesOf[float32](m.files, in.args[1])
	return func(n int) { simd.Join(floats[float32](in.buf)[2*a.first():][:2*n], re[:n], im[:n]) }
}

// partType returns the type of the parts of complex numbers.
func partType(d ir.DType) ir.DType {
	if d == ir.C128 {
		return ir.F64
	}
	return ir.F32
}

// nestArrays adds arrays to the code of one nest, for it to read and write in place of tensors.
type nestArrays struct {
	c     *compiler
	elems int             // that the nest computes
	known map[partKey]int // the IDs of arrays of parts
}

func newNestArrays(c *compiler, elems int) *nestArrays {
	return &nestArrays{c: c, elems: elems, known: map[partKey]int{}}
}

// partKey is a part of a region of a tensor.
type partKey struct {
	tensor, part int
	region       string
}

// partsOf returns the expression with parts of complex numbers in memory read from arrays of these parts,
// for which it adds steps. Numbers stay that are scattered over far more memory.
func (p *nestArrays) partsOf(e scalar.Expr) scalar.Expr {
	return scalar.Substitute(e, func(x scalar.Expr) (scalar.Expr, bool) {
		if x.Op != scalar.OpReal && x.Op != scalar.OpImag || x.Args[0].Op != scalar.OpLoad {
			return x, false
		}
		load := x.Args[0]
		from := p.c.buffers[load.Ref]
		if from == nil || !from.dtype.IsComplex() || from.elems == 0 {
			return x, false
		}
		at, offset := region{elems: from.elems}, load.Args[0]
		if from.elems > 2*p.elems {
			part, within, ok := regionOf(offset)
			if !ok || part.elems > 2*p.elems {
				return x, false
			}
			at, offset = part, within.expr()
		}
		key := partKey{load.Ref, int(x.Op - scalar.OpReal), fmt.Sprint(at)}
		id, ok := p.known[key]
		if !ok {
			step := &partStep{from: from, to: p.c.scratch(partType(from.dtype), at.elems), at: at, part: key.part, env: p.c.env}
			id = p.c.bufferID(step.to)
			p.known[key] = id
			p.c.add(step)
		}
		return scalar.LoadAt(id, x.Type, offset), true
	})
}

// realParts makes the code of a nest read and write arrays of parts of complex numbers. It adds the steps
// that split the operands, and returns those that make the results, for after the nest.
func (p *nestArrays) realParts(code *fusion.Code, outer []int) []step {
	code.Rows = slices.DeleteFunc(slices.Clone(code.Rows), func(store fusion.ElementStore) bool { return p.copyPart(code, store, outer) })
	realArithmetic(code)
	if mapsInPlace(code, outer) {
		return nil
	}
	rewriteExprs(code, p.partsOf, unchanged)
	if len(code.Points) > 0 {
		return nil
	}
	return p.storeParts(code, outer)
}

// storeParts makes code write arrays of parts of complex numbers, and returns the steps that make the results, for
// after it.
func (p *nestArrays) storeParts(code *fusion.Code, outer []int) (after []step) {
	c := p.c
	var rows []fusion.ElementStore
	for _, store := range code.Rows {
		to := c.buffers[store.Tensor.ID]
		at, within, ok := regionOf(store.Offset)
		if store.Value.Op != scalar.OpMakeComplex || store.Guarded || to == nil || !to.dtype.IsComplex() || !ok || !isDense(code, within, outer, at.elems) {
			rows = append(rows, store)
			continue
		}
		pair, offset := &pairStep{to: to, at: at, env: c.env}, within.expr()
		for i, value := range store.Value.Args {
			if from := c.buffers[value.Ref]; value.Op == scalar.OpLoad && from != nil && from.dtype == value.Type && from.elems == at.elems &&
				scalar.Equal(scalar.Simplify(value.Args[0]), scalar.Simplify(offset)) {
				pair.parts[i] = from
				continue
			}
			pair.parts[i] = c.scratch(value.Type, at.elems)
			tensor := &fusion.Tensor{ID: p.c.bufferID(pair.parts[i]), Name: store.Tensor.Name, DType: value.Type}
			rows = append(rows, fusion.ElementStore{Tensor: tensor, Offset: offset, Value: value})
		}
		after = append(after, pair)
	}
	code.Rows = rows
	return after
}

// mapsInPlace reports whether kernels load and store the parts of all complex numbers of a map.
func mapsInPlace(code *fusion.Code, outer []int) bool {
	if len(code.Stages)+len(code.Points) > 0 || !jit.Available() || !jit.HasPairs() {
		return false
	}
	last := ""
	for i, v := range code.Outer {
		if outer[i] > 1 {
			last = v.Name
		}
	}
	follows := func(offset scalar.Expr) bool {
		form := affineOf(offset)
		return form.coef(last) == 1 && !slices.ContainsFunc(form.terms, func(t affineTerm) bool { return t.of.Op != scalar.OpVar })
	}
	reads := partReads{follows, map[scalar.Expr]bool{}}
	return !slices.ContainsFunc(code.Rows, func(s fusion.ElementStore) bool {
		splits := s.Value.Op == scalar.OpMakeComplex && !s.Guarded && follows(s.Offset)
		return s.Tensor.DType.IsComplex() && !splits || !reads.inPlace(s.Value)
	})
}

// partReads checks how an expression reads complex numbers; it visits each node once.
type partReads struct {
	follows func(offset scalar.Expr) bool
	seen    map[scalar.Expr]bool
}

// inPlace reports whether an expression reads complex numbers by their parts only, from offsets for which follows is
// true.
func (r partReads) inPlace(e scalar.Expr) bool {
	if r.seen[e] {
		return true
	}
	r.seen[e] = true
	if (e.Op == scalar.OpReal || e.Op == scalar.OpImag) && e.Args[0].Op == scalar.OpLoad {
		return r.follows(e.Args[0].Args[0])
	}
	if e.Type.IsComplex() && e.Op != scalar.OpMakeComplex {
		return false
	}
	return !slices.ContainsFunc(e.Args, func(a scalar.Expr) bool { return !r.inPlace(a) })
}

// copyPart adds the step that stores a part of all numbers of a tensor in their order; it returns false, and adds
// nothing, for other code.
func (p *nestArrays) copyPart(code *fusion.Code, store fusion.ElementStore, outer []int) bool {
	x := store.Value
	if len(code.Stages)+len(code.Points) > 0 || store.Guarded || x.Op != scalar.OpReal && x.Op != scalar.OpImag || x.Args[0].Op != scalar.OpLoad {
		return false
	}
	from, to := p.c.buffers[x.Args[0].Ref], p.c.buffers[store.Tensor.ID]
	if from == nil || to == nil || !from.dtype.IsComplex() || to.dtype != partType(from.dtype) || from.elems != to.elems || to.elems == 0 ||
		!isDense(code, affineOf(store.Offset), outer, to.elems) || !scalar.Equal(scalar.Simplify(x.Args[0].Args[0]), scalar.Simplify(store.Offset)) {
		return false
	}
	p.c.add(&partStep{from: from, to: to, at: region{elems: to.elems}, part: int(x.Op - scalar.OpReal), env: p.c.env})
	return true
}

// isDense reports whether an offset takes each value below elems once.
func isDense(code *fusion.Code, form affine, outer []int, elems int) bool {
	if form.constant != 0 || product(outer) != elems {
		return false
	}
	type axis struct{ size, by int }
	var axes []axis
	known := 0
	for i, v := range code.Outer {
		by := form.coef(v.Name)
		if by != 0 {
			known++
		}
		if outer[i] > 1 {
			axes = append(axes, axis{outer[i], by})
		}
	}
	slices.SortFunc(axes, func(a, b axis) int { return a.by - b.by })
	next := 1
	for _, a := range axes {
		if a.by != next {
			return false
		}
		next *= a.size
	}
	return known == len(form.terms)
}
