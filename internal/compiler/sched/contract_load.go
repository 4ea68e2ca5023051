package sched

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// vectors is how many vectors of a side each thread moves per step.
func (te *tileEmitter) vectors(s *side) int { return ceilDiv(s.tile/4*te.t.k, te.t.threads()) }

// declareAhead declares the registers that hold the next tiles: na0 and on of a, nb0 of b.
func (te *tileEmitter) declareAhead() {
	te.eachAhead(func(_ *side, _ int, names []string) {
		for _, name := range names {
			te.body = append(te.body, &loop.Var{Name: name, Init: scalar.ConstF(ir.F32, 0)})
		}
	})
}

func (te *tileEmitter) eachAhead(f func(s *side, v int, names []string)) {
	for i := range te.side {
		s := &te.side[i]
		for v := range te.vectors(s) {
			names := make([]string, 4)
			for j := range names {
				names[j] = "n" + s.prefix + strconv.Itoa(4*v+j)
			}
			f(s, v, names)
		}
	}
}

// vectorPlace returns which vector along the free positions, and which
// contracted position, vector v of a thread is.
func (te *tileEmitter) vectorPlace(s *side, v int) (vec, k scalar.Expr) {
	threads, per := te.t.threads(), s.tile/4
	id := scalar.Add(te.lane, loop.Int(v*threads))
	if s.kFast {
		return te.Simplify(scalar.FloorDiv(id, loop.Int(te.t.k))), te.Simplify(scalar.Mod(id, loop.Int(te.t.k)))
	}
	return te.Simplify(scalar.Mod(id, loop.Int(per))), te.Simplify(scalar.FloorDiv(id, loop.Int(per)))
}

// loadAhead reads a thread's share of the tiles of a step into registers.
func (te *tileEmitter) loadAhead(step scalar.Expr) {
	rd := te.reader()
	load := rd.Operand(te.c.Node)
	length := fusion.Product(te.c.K)
	first := scalar.Mul(scalar.Add(scalar.Mul(te.part, loop.Int(te.steps)), step), loop.Int(te.t.k))
	k := te.let("k", first, te.parts*te.steps*te.t.k-1)
	te.eachAhead(func(s *side, v int, names []string) {
		vec, kk := te.vectorPlace(s, v)
		pos := scalar.Add(k, kk)
		inside := scalar.ConstBool(true)
		if te.parts*te.steps*te.t.k > length {
			inside = scalar.Lt(pos, loop.Int(length))
			pos = scalar.Min(pos, loop.Int(length-1))
		}
		kAt := te.unflatten(te.Simplify(pos), te.c.K)
		values := make([]scalar.Expr, 4)
		for j := range values {
			f := scalar.Add(scalar.Add(s.first, scalar.Mul(vec, loop.Int(4))), loop.Int(j))
			x := te.c.Factor(s.operand, te.batch, te.freeAt(s, f), kAt, load)
			values[j] = scalar.Select(inside, x, scalar.ConstF(ir.F32, 0))
		}
		if s.vectors && te.loadVector(values) {
			te.assignAll(names, values)
			return
		}
		te.body = append(te.body, te.nameAll(values)...)
		te.assignAll(names, values)
	})
}

func (te *tileEmitter) assignAll(names []string, values []scalar.Expr) {
	for j, name := range names {
		te.body = append(te.body, &loop.Assign{Name: name, Value: values[j]})
	}
}

// freeAt returns the free coordinates of position f, kept inside the operand:
// what lies beyond is computed and not stored.
func (te *tileEmitter) freeAt(s *side, f scalar.Expr) ir.Index {
	n := fusion.Product(s.free)
	if n%s.tile != 0 {
		f = scalar.Min(f, loop.Int(n-1))
	}
	return te.unflatten(te.Simplify(f), s.free)
}

// put writes the registers into a buffer of workgroup memory: rows of one contracted
// position.
func (te *tileEmitter) put(buffer scalar.Expr) {
	te.eachAhead(func(s *side, v int, names []string) {
		vec, kk := te.vectorPlace(s, v)
		values := make([]scalar.Expr, 4)
		for j, name := range names {
			values[j] = scalar.FreeVar(name, ir.F32)
		}
		at := scalar.Add(scalar.Mul(buffer, loop.Int(te.t.k*s.tile/4)), scalar.Add(scalar.Mul(kk, loop.Int(s.tile/4)), s.turned(vec, kk)))
		store := &loop.StoreVec{Array: te.slot, At: te.Simplify(scalar.Add(at, loop.Int(s.base))), Values: values}
		te.body = append(te.body, te.ownVector(s, v, []loop.Stmt{store})...)
	})
}

// ownVector keeps statements about vector v of a thread to threads that have one.
func (te *tileEmitter) ownVector(s *side, v int, then []loop.Stmt) []loop.Stmt {
	total := te.t.k * s.tile / 4
	if (v+1)*te.t.threads() <= total {
		return then
	}
	return guard(scalar.Lt(scalar.Add(te.lane, loop.Int(v*te.t.threads())), loop.Int(total)), then)
}

// turned is the place of a vector in its row of workgroup memory. Where neighbouring
// threads write to neighbouring rows, rows are turned against each other, so that
// they do not write to one bank.
func (s *side) turned(vec, row scalar.Expr) scalar.Expr {
	if !s.kFast {
		return vec
	}
	return scalar.Mod(scalar.Add(vec, row), loop.Int(s.tile/4))
}
