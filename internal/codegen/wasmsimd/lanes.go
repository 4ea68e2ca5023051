package wasmsimd

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// lanes is the number of 32-bit lanes of a vector.
const lanes = 4

// maxUnroll is the largest constant trip count of a vectorised loop that is unrolled.
const maxUnroll = 64

// vectorizable reports whether a loop is marked Lanes and its statements can be
// vectorised.
func (w *writer) vectorizable(s *loop.For) bool {
	step, _ := s.Step.IntConst()
	if !s.Lanes || w.vectorized || step != 1 {
		return false
	}
	v := &laneAnalysis{varying: map[string]bool{s.Var: true}, perLane: map[string]bool{}}
	return v.block(s.Body)
}

// laneAnalysis checks whether statements can run in four lanes at once.
type laneAnalysis struct {
	varying map[string]bool // names whose values differ between lanes
	perLane map[string]bool // variables of a lane

	changing []bool // by array: whether its elements may differ from those before the loop; nil if that is not asked
}

func (v *laneAnalysis) block(body []loop.Stmt) bool {
	for _, s := range body {
		ok := true
		loop.EachExpr(s, func(e scalar.Expr) { ok = ok && fitsLanes(e) })
		if !ok || !v.stmt(s) {
			return false
		}
	}
	return true
}

func (v *laneAnalysis) stmt(s loop.Stmt) bool {
	switch s := s.(type) {
	case *loop.Let:
		v.varying[s.Name] = v.varies(s.Value)
		return true
	case *loop.Var:
		v.varying[s.Name], v.perLane[s.Name] = true, true
		return true
	case *loop.Assign:
		return v.perLane[s.Name]
	case *loop.Store:
		return true
	case *loop.For:
		v.varying[s.Var] = false
		return !v.varies(s.Start) && !v.varies(s.End) && v.block(s.Body)
	case *loop.If:
		return !v.varies(s.Cond) && v.block(s.Then) && v.block(s.Else)
	}
	return false
}

func (v *laneAnalysis) varies(e scalar.Expr) bool {
	varies := false
	scalar.Walk(e, func(n scalar.Expr) {
		varies = varies || n.Op == scalar.OpVar && v.varying[n.Name] || n.Op == scalar.OpLoad && v.changing != nil && v.changing[n.Ref]
	})
	return varies
}

// fitsLanes reports whether all types of an expression fit a lane: they have at most 32
// bits.
func fitsLanes(e scalar.Expr) bool {
	fits := true
	scalar.Walk(e, func(n scalar.Expr) {
		fits = fits && (n.Type.Size() <= wordBytes)
	})
	return fits
}

// unrolledBounds returns the constant bounds of a vectorised loop that is unrolled.
func unrolledBounds(s *loop.For) (start, end int64, ok bool) {
	start, knownStart := s.Start.IntConst()
	end, knownEnd := s.End.IntConst()
	return start, end, knownStart && knownEnd && (end-start)%lanes == 0 && end-start <= maxUnroll
}

// laneLoop writes a loop of four iterations at a time, and a scalar loop for the
// remainder.
func (w statements) laneLoop(s *loop.For) {
	if start, end, ok := unrolledBounds(s); ok {
		body := w.hoistSplats(s)
		w.vectorized = true
		for at := start; at < end; at += lanes {
			w.env[s.Var] = binding{kind: boundConstant, constant: at, step: 1}
			w.block(w.foldDivisions(body, s.Var, at))
		}
		w.vectorized = false
		return
	}
	e := w.bind(s.Start, s.End)
	v := w.f.local(typeI32)
	w.expr(e[0])
	w.f.set(v)
	end := w.loopEnd(e[1])
	w.countedLoop(s, v, end, lanes-1, func() {
		w.env[s.Var] = binding{kind: boundAffine, local: v, step: 1}
		w.vectorized = true
		w.block(s.Body)
		w.vectorized = false
	})
	n, known := scalar.Simplify(scalar.Sub(s.End, s.Start)).IntConst()
	if known && n%lanes == 0 {
		return
	}
	w.countedLoop(s, v, end, 0, func() { w.block(s.Body) })
}

// foldDivisions returns the body of an unrolled vectorised loop for the four iterations from at on, with quotients and
// remainders of its variable simplified: in lanes of one block they are constant or contiguous.
func (w statements) foldDivisions(body []loop.Stmt, name string, at int64) []loop.Stmt {
	const lane = localPrefix + "lane"
	w.env[lane] = binding{kind: boundConstant, step: 1}
	first := scalar.Add(loop.Int(int(at)), scalar.NewVar(lane, dtype.I32, 0, lanes-1))
	return substitute(body, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpFloorDiv && n.Op != scalar.OpMod {
			return nil, false
		}
		return scalar.Simplify(scalar.SubstituteVars(n, map[string]scalar.Expr{name: first})), true
	})
}

// substitute returns statements with the nodes of expressions replaced for which with returns true.
func substitute(body []loop.Stmt, with func(scalar.Expr) (scalar.Expr, bool)) []loop.Stmt {
	return loop.MapExprs(body, func(e scalar.Expr) scalar.Expr { return scalar.Substitute(e, with) })
}

// hoistSplats returns the body of an unrolled vectorised loop with its loop-invariant
// loads hoisted, and what converts loaded values, such as the scales of packed blocks: an engine cannot prove that the
// stores of the loop do not change them.
func (w statements) hoistSplats(s *loop.For) []loop.Stmt {
	v := &laneAnalysis{varying: map[string]bool{s.Var: true}, perLane: map[string]bool{}}
	v.block(s.Body)
	v.changing = make([]bool, len(w.locations))
	for i, p := range w.locations {
		v.changing[i] = p.registers != nil
	}
	straight := true
	loop.Walk(s.Body, func(s loop.Stmt) {
		switch s := s.(type) {
		case *loop.Store:
			v.changing[s.Array] = true
		case *loop.If, *loop.For:
			straight = false // conditions and bounds are scalars
		}
		for _, name := range loop.Defines(s) {
			v.varying[name] = true // not known before the loop
		}
	})
	if !straight {
		return s.Body
	}
	known := map[string]scalar.Expr{}
	return substitute(s.Body, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpLoad && n.Op != scalar.OpConvert || !n.Type.IsFloat() || v.varies(n) {
			return nil, false
		}
		key := scalar.Key(n)
		if known[key] == nil {
			local := w.f.local(typeV128)
			w.splat(w.bind(n)[0])
			w.f.set(local)
			known[key] = w.localVar(local, n.Type)
			w.env[known[key].Name] = binding{kind: boundVector, local: local}
		}
		return known[key], true
	})
}

// affine returns the stride of e from lane to lane, and whether it is constant. The
// stride is 0 if e is uniform.
func (w *writer) affine(e scalar.Expr) (step int64, ok bool) {
	if !w.vectorized || !w.varies(e) {
		return 0, true
	}
	if e.Type != dtype.I32 {
		return 0, false
	}
	switch e.Op {
	case scalar.OpVar:
		b := w.env[e.Name]
		return b.step, b.kind != boundVector
	case scalar.OpAdd, scalar.OpSub:
		a, okA := w.affine(e.Args[0])
		b, okB := w.affine(e.Args[1])
		if e.Op == scalar.OpSub {
			b = -b
		}
		return a + b, okA && okB
	case scalar.OpMul:
		for i, x := range e.Args {
			if c, isConst := x.IntConst(); isConst {
				step, ok = w.affine(e.Args[1-i])
				return step * c, ok
			}
		}
	}
	return 0, false
}

// varies reports whether e differs between lanes.
func (w *writer) varies(e scalar.Expr) bool {
	if !w.vectorized {
		return false
	}
	varies := false
	scalar.Walk(e, func(n scalar.Expr) {
		if n.Op == scalar.OpVar {
			b := w.env[n.Name]
			varies = varies || b.kind == boundVector || b.step != 0
		}
	})
	return varies
}

// registerArrays returns the non-storage arrays that can be kept in vector registers:
// those accessed only at constant indices, or by lanes in unrolled vectorised loops.
func (w *writer) registerArrays() map[int]bool {
	r := &registerAnalysis{w: w, candidates: map[int]bool{}}
	for i, a := range w.k.Arrays {
		if a.Space != loop.Storage && a.Width == 1 && a.Len%lanes == 0 && (a.DType.IsBool() || a.DType.Size() == 4) {
			r.candidates[i] = true
		}
	}
	if len(r.candidates) > 0 {
		r.block(w.k.Body)
	}
	return r.candidates
}

// registerAnalysis removes from candidates the arrays that registers cannot hold.
type registerAnalysis struct {
	w          *writer
	candidates map[int]bool
	lane       string // the variable of the enclosing vectorised loop, or ""
}

func (r *registerAnalysis) block(body []loop.Stmt) {
	for _, s := range body {
		loop.EachNode(s, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad {
				r.access(n.Ref, n.Args[0])
			}
		})
		switch s := s.(type) {
		case *loop.Store:
			r.access(s.Array, s.At)
		case *loop.For:
			lane := r.lane
			if _, _, known := unrolledBounds(s); known && r.w.vectorizable(s) {
				r.lane = s.Var
			}
			r.block(s.Body)
			r.lane = lane
		case *loop.If:
			r.block(s.Then)
			r.block(s.Else)
		}
	}
}

func (r *registerAnalysis) access(array int, at scalar.Expr) {
	if !r.candidates[array] {
		return
	}
	rest, c := splitConstant(at)
	known := rest.Op == scalar.OpConst && r.lane == ""
	inLanes := r.lane != "" && rest.Op == scalar.OpVar && rest.Name == r.lane && c%lanes == 0
	if !known && !inLanes {
		delete(r.candidates, array)
	}
}

// registerIndex returns the constant index of an access to an array in registers, that of
// lane 0 in a vectorised loop.
func (w *writer) registerIndex(at scalar.Expr) int64 {
	x, _ := w.known(at)
	return x
}

// known returns the value of an integer in lane 0, if it is a constant.
func (w *writer) known(e scalar.Expr) (x int64, ok bool) {
	if x, ok := e.IntConst(); ok {
		return x, true
	}
	switch e.Op {
	case scalar.OpVar:
		b := w.env[e.Name]
		return b.constant, b.kind == boundConstant
	case scalar.OpAdd:
		x, okX := w.known(e.Args[0])
		y, okY := w.known(e.Args[1])
		return x + y, okX && okY
	}
	return 0, false
}
