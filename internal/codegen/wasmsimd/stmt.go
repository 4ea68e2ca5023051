package wasmsimd

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// localPrefix begins the names of scalar.BindShared; no kernel has such names.
const localPrefix = "%"

// statements writes statements.
type statements struct{ vectorWriter }

// bind binds the common subexpressions of a statement to locals and writes its checks. It
// returns the remaining expressions.
func (w statements) bind(roots ...scalar.Expr) []scalar.Expr {
	n := len(roots)
	all := make([]scalar.Expr, n)
	for i, r := range roots {
		all[i] = expand(r)
	}
	var codes []int
	for i, r := range all {
		all[i] = scalar.TakeChecks(r, func(cond scalar.Expr, code int) {
			all, codes = append(all, scalar.Not(cond)), append(codes, code)
		})
	}
	s := scalar.BindShared(localPrefix, all...)
	for _, b := range s.Locals {
		w.define(b.Var.Name, b.Value)
	}
	for i, code := range codes {
		w.check(s.Roots[n+i], code)
	}
	return s.Roots[:n]
}

// check writes the maximum of code and the status word if failed holds in any lane.
func (w statements) check(failed scalar.Expr, code int) {
	if w.varies(failed) {
		w.vector(failed)
		w.f.op(opV128AnyTrue)
	} else {
		w.expr(failed)
	}
	status := w.k.StatusArray()
	w.f.begin(opIf)
	w.combine(scalar.OpMax, status, scalar.ConstI(dtype.I32, 0), scalar.ConstI(dtype.U32, int64(code)))
	w.f.end()
}

// define binds a name to the value of an expression.
func (w statements) define(name string, value scalar.Expr) {
	switch step, affine := w.affine(value); {
	case !w.vectorized || affine && step == 0:
		v := w.f.local(valueTypes[classOf(value.Type)])
		w.expr(value)
		w.f.set(v)
		w.env[name] = binding{kind: boundScalar, local: v}
	case affine:
		if at, known := w.known(value); known {
			w.env[name] = binding{kind: boundConstant, constant: at, step: step}
			return
		}
		v := w.f.local(typeI32)
		w.expr(value)
		w.f.set(v)
		w.env[name] = binding{kind: boundAffine, local: v, step: step}
	default:
		v := w.f.local(typeV128)
		w.vector(value)
		w.f.set(v)
		w.env[name] = binding{kind: boundVector, local: v}
	}
}

func (w statements) block(body []loop.Stmt) {
	for _, s := range body {
		w.stmt(s)
	}
}

func (w statements) stmt(s loop.Stmt) {
	switch s := s.(type) {
	case *loop.Let:
		w.define(s.Name, w.bind(s.Value)[0])
	case *loop.Var:
		w.declare(s)
	case *loop.Assign:
		w.assign(s)
	case *loop.Store:
		e := w.bind(s.At, s.Value)
		if w.vectorized {
			w.storeLanes(s.Array, e[0], e[1])
			return
		}
		w.store(s.Array, e[0], func() { w.expr(e[1]) })
	case *loop.LoadVec:
		w.loadVec(s)
	case *loop.StoreVec:
		w.storeVec(s)
	case *loop.For:
		w.loop(s)
	case *loop.If:
		w.expr(w.bind(s.Cond)[0])
		w.f.begin(opIf)
		w.block(s.Then)
		if len(s.Else) > 0 {
			w.f.op(opElse)
			w.block(s.Else)
		}
		w.f.end()
	case *loop.Barrier: // a workgroup has one thread
	case *loop.AtomicOp:
		w.atomic(s)
	case *loop.Subgroup:
		w.fail("subgroups")
	}
}

// declare defines a mutable variable, a vector in a vectorised loop.
func (w statements) declare(s *loop.Var) {
	init := w.bind(s.Init)[0]
	if w.vectorized {
		v := w.f.local(typeV128)
		w.vector(init)
		w.f.set(v)
		w.env[s.Name] = binding{kind: boundVector, local: v}
		return
	}
	v := w.f.local(valueTypes[classOf(init.Type)])
	w.expr(init)
	w.f.set(v)
	w.env[s.Name] = binding{kind: boundScalar, local: v}
}

func (w statements) assign(s *loop.Assign) {
	value := w.bind(s.Value)[0]
	b := w.env[s.Name]
	if b.kind == boundVector {
		w.vector(value)
	} else {
		w.expr(value)
	}
	w.f.set(b.local)
}

// loadVec and storeVec access the elements of a vector one by one: schedules for one
// thread use loops over lanes instead.
func (w statements) loadVec(s *loop.LoadVec) {
	at, a := w.bind(s.At)[0], w.k.Arrays[s.Array]
	for i, name := range s.Names {
		w.define(name, scalar.LoadAt(s.Array, a.DType, member(at, i, a.Width)))
	}
}

func (w statements) storeVec(s *loop.StoreVec) {
	e := w.bind(append([]scalar.Expr{s.At}, s.Values...)...)
	for i, value := range e[1:] {
		w.store(s.Array, member(e[0], i, len(s.Values)), func() { w.expr(value) })
	}
}

// member returns the index of an element of a vector.
func member(at scalar.Expr, i, width int) scalar.Expr {
	return scalar.Add(scalar.Mul(at, scalar.ConstI(at.Type, int64(width))), scalar.ConstI(at.Type, int64(i)))
}

func (w statements) atomic(s *loop.AtomicOp) {
	e := w.bind(s.At, s.Value)
	if s.Old != "" {
		w.define(s.Old, scalar.LoadAt(s.Array, s.Value.Type, e[0]))
	}
	w.combine(s.Op, s.Array, e[0], e[1])
}

// combine updates an element by an operation with a value.
func (w statements) combine(op scalar.Op, array int, at, value scalar.Expr) {
	old := scalar.LoadAt(array, value.Type, at)
	s := scalar.BindShared(localPrefix+"a", old, expand(scalar.New(op, old, value)))
	for _, b := range s.Locals {
		w.define(b.Var.Name, b.Value)
	}
	w.store(array, at, func() { w.expr(s.Roots[1]) })
}

// loop writes a loop, vectorised if possible.
func (w statements) loop(s *loop.For) {
	if w.vectorizable(s) {
		w.laneLoop(s)
		return
	}
	e := w.bind(s.Start, s.End)
	v := w.f.local(typeI32)
	w.expr(e[0])
	w.f.set(v)
	w.countedLoop(s, v, w.loopEnd(e[1]), 0, func() { w.block(s.Body) })
}

// loopEnd evaluates the end of a loop into a local, unless it is a constant.
func (w statements) loopEnd(end scalar.Expr) scalar.Expr {
	if end.Op == scalar.OpConst {
		return end
	}
	return w.toLocal(end)
}

// countedLoop writes a loop that runs while the variable in v is below end - short.
func (w statements) countedLoop(loop *loop.For, v uint32, end scalar.Expr, short int64, body func()) {
	w.env[loop.Var] = binding{kind: boundScalar, local: v}
	below := func() {
		w.f.get(v)
		w.expr(scalar.Sub(end, scalar.ConstI(dtype.I32, short)))
		w.f.op(opI32LtS)
	}
	step, _ := loop.Step.IntConst()
	if short > 0 {
		step = lanes
	}
	below()
	w.f.begin(opIf)
	w.f.begin(opLoop)
	body()
	w.f.get(v)
	w.f.constI32(int32(step))
	w.f.op(opI32Add)
	w.f.set(v)
	below()
	w.f.with(opBranchIf, 0)
	w.f.end()
	w.f.end()
}
