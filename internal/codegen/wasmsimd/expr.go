package wasmsimd

import (
	"strconv"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// binding is the value of a name.
type binding struct {
	kind  bindingKind
	local uint32
	// step is the stride of an affine value from lane to lane.
	step int64
	// constant is the value of a name without a local.
	constant int64
}

type bindingKind uint8

const (
	boundScalar   bindingKind = iota + 1
	boundVector               // four lanes
	boundAffine               // an i32 whose value in lane 0 is in the local
	boundConstant             // an affine i32 whose value in lane 0 is known
)

// native reports whether an operation that package scalar would expand has an
// instruction with the same semantics, infinities, NaN and the sign of zero
// included.
func native(n scalar.Expr) bool {
	if len(n.Args) == 0 {
		return false
	}
	t := n.Args[len(n.Args)-1].Type
	switch n.Op {
	case scalar.OpMin, scalar.OpMax, scalar.OpRound, scalar.OpIsNaN, scalar.OpIsFinite:
		return t.IsFloat()
	case scalar.OpConvert:
		return true
	}
	return false
}

func expand(e scalar.Expr) scalar.Expr {
	return scalar.ExpandExcept(scalar.ExpandNarrow(e), scalar.Portable, native)
}

// expr pushes the value of e; if e is affine in the lanes, that of lane 0.
func (w *writer) expr(e scalar.Expr) {
	if e.Type.On(dtype.WASM) == dtype.Unsupported {
		w.fail("type %s", e.Type)
		return
	}
	switch e.Op {
	case scalar.OpConst:
		w.constant(e)
	case scalar.OpVar:
		w.variable(e)
	case scalar.OpLoad:
		w.load(e)
	case scalar.OpConvert:
		w.expr(e.Args[0])
		w.convert(e.Args[0].Type, e.Type)
	case scalar.OpBitcast:
		w.expr(e.Args[0])
		w.bitcast(e.Args[0].Type, e.Type)
	default:
		w.operation(e)
	}
}

func (w *writer) constant(e scalar.Expr) {
	v, _ := e.Value()
	if isNarrow(e.Type) && e.Type.IsFloat() {
		w.f.constI32(int32(e.Type.FloatBits(v.F)))
		return
	}
	switch classOf(e.Type) {
	case classF32:
		w.f.constF32(float32(v.F))
	case classF64:
		w.f.constF64(v.F)
	case classS64, classU64:
		w.f.constI64(v.I)
	default:
		w.f.constI32(int32(v.I))
	}
}

func (w *writer) variable(e scalar.Expr) {
	if b, ok := w.env[e.Name]; ok {
		if b.kind == boundConstant {
			w.f.constI32(int32(b.constant))
			return
		}
		w.f.get(b.local)
		return
	}
	kind, i := loop.BuiltinOf(e.Name)
	switch kind {
	case loop.BuiltinGroupID:
		w.f.get(w.group)
	case loop.BuiltinScalar:
		w.f.get(w.scalarRow)
		w.f.memory(loads[classOf(e.Type)], 2, uint64(w.scalarOffset(i)))
		if e.Type.IsBool() {
			w.nonZero(e.Type)
		}
	case loop.BuiltinCounter:
		w.f.get(w.counters + uint32(i))
	default: // of the one thread of a workgroup
		w.f.constI32(0)
	}
}

// scalarOffset returns the offset of scalar i in the row: each is aligned to its
// size.
func (w *writer) scalarOffset(i int) int {
	at := 0
	for j, t := range w.k.Scalars[:i+1] {
		size := 4
		if t != dtype.Invalid {
			size = loop.DeviceSize(t)
		}
		at = (at + size - 1) / size * size
		if j < i {
			at += size
		}
	}
	return at
}

// nonZero replaces the number on the stack by 1 if it is not zero, and 0 if it is.
func (w *writer) nonZero(t dtype.DType) {
	switch classOf(t) {
	case classF32:
		w.f.constF32(0)
		w.f.op(scalarForms[scalar.OpNe][classF32])
	case classF64:
		w.f.constF64(0)
		w.f.op(scalarForms[scalar.OpNe][classF64])
	case classS64, classU64:
		w.f.op(opI64Eqz, opI32Eqz)
	default:
		w.f.op(opI32Eqz, opI32Eqz)
	}
}

func (w *writer) convert(from, to dtype.DType) {
	if to.IsBool() {
		if !from.IsBool() {
			w.nonZero(from)
		}
		return
	}
	if c := conversions[classOf(from)][classOf(to)]; c != 0 {
		w.f.op(c)
	}
	w.wrap(to)
}

func (w *writer) bitcast(from, to dtype.DType) {
	if a, b := classOf(from), classOf(to); valueTypes[a] != valueTypes[b] {
		w.f.op(reinterpretations[a])
	}
	w.wrap(to)
}

// operation writes an operation on operands of one class.
func (w *writer) operation(e scalar.Expr) {
	last := e.Args[len(e.Args)-1]
	c := classOf(last.Type)
	if w.rejectsNarrow(e.Op, last.Type) {
		return
	}
	switch e.Op {
	case scalar.OpSelect:
		w.exprs(e.Args[1], e.Args[2], e.Args[0])
		w.f.op(opSelect)
		return
	case scalar.OpFloorDiv, scalar.OpMod: // of an offset
		w.expr(expand(e))
		return
	case scalar.OpFma:
		w.expr(scalar.Add(e.Args[2], scalar.Mul(e.Args[0], e.Args[1])))
		return
	case scalar.OpRsqrt:
		w.expr(scalar.Div(scalar.ConstF(e.Type, 1), scalar.Sqrt(e.Args[0])))
		return
	case scalar.OpIsNaN:
		x := w.reusable(last)
		w.exprs(x, x)
		w.f.op(scalarForms[scalar.OpNe][c])
		return
	case scalar.OpIsFinite:
		w.expr(scalar.Lt(scalar.Abs(last), scalar.Extreme(last.Type, 1)))
		return
	}
	if call := mathCalls[e.Op]; call > 0 && c == classF64 {
		w.exprs(e.Args...)
		w.f.with(opCall, uint32(call-1))
		w.math = true
		return
	}
	if !last.Type.IsFloat() && w.integerOperation(e) {
		return
	}
	form := scalarForms[e.Op][c]
	if form == 0 {
		w.fail("%s of %s", e.Op, last.Type)
		return
	}
	w.exprs(e.Args...)
	w.f.op(form)
}

func (w *writer) exprs(list ...scalar.Expr) {
	for _, e := range list {
		w.expr(e)
	}
}

// integerOperation writes operations on integers and bools that need several
// instructions, and reports whether e is one.
func (w *writer) integerOperation(e scalar.Expr) bool {
	t := e.Args[0].Type
	switch e.Op {
	case scalar.OpNeg:
		w.expr(scalar.Sub(scalar.ConstI(t, 0), e.Args[0]))
	case scalar.OpNot:
		w.expr(e.Args[0])
		switch {
		case t.IsBool():
			w.f.op(opI32Eqz)
		case t.Size() == 8:
			w.f.constI64(-1)
			w.f.op(opI64Xor)
		default:
			w.f.constI32(-1)
			w.f.op(opI32Xor)
		}
	case scalar.OpAbs:
		if t.IsUnsigned() {
			w.expr(e.Args[0])
			return true
		}
		x := w.reusable(e.Args[0])
		w.expr(scalar.Select(scalar.Lt(x, scalar.ConstI(t, 0)), scalar.Neg(x), x))
	case scalar.OpMin, scalar.OpMax:
		a, b := w.reusable(e.Args[0]), w.reusable(e.Args[1])
		compare := scalar.OpLt
		if e.Op == scalar.OpMax {
			compare = scalar.OpGt
		}
		w.expr(scalar.Select(scalar.New(compare, a, b), a, b))
	default:
		return false
	}
	return true
}

// reusable returns an expression for e that can be used several times: e is evaluated
// into a local unless it is a leaf.
func (w *writer) reusable(e scalar.Expr) scalar.Expr {
	if len(e.Args) == 0 {
		return e
	}
	return w.toLocal(e)
}

// toLocal evaluates e into a new local.
func (w *writer) toLocal(e scalar.Expr) scalar.Expr {
	v := w.f.local(valueTypes[classOf(e.Type)])
	w.expr(e)
	w.f.set(v)
	return w.localVar(v, e.Type)
}

// localVar returns a local as an expression.
func (w *writer) localVar(local uint32, t dtype.DType) scalar.Expr {
	name := localPrefix + "local" + strconv.Itoa(int(local)) // no kernel has such a name
	w.env[name] = binding{kind: boundScalar, local: local}
	return scalar.FreeVar(name, t)
}
