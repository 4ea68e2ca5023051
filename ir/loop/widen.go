package loop

import (
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Widen legalises types that a target stores but does not compute with. Values of such a type are
// computed in f32, i32 or u32. They are rounded or wrapped to the stored type after every
// operation, as on a device with the type, so that a value does not depend on whether it went
// through memory. Arrays keep their types except private ones; the only operations left on narrow
// types are loads, stores, conversions and bitcasts. Where memory consists of words those disappear
// too: arrays of narrow types become arrays of u32, see [words].
//
// A kernel without such types is returned unchanged.
func Widen(k *Kernel, c Caps) *Kernel {
	if !narrow(k, c) {
		return k
	}
	w := &widener{caps: c, k: k, loaded: map[string]bool{}}
	out := *k
	out.Arrays = slices.Clone(k.Arrays)
	for i, a := range out.Arrays {
		if w.widens(a) {
			out.Arrays[i].DType = wideType(a.DType)
		}
	}
	out.Body = w.block(k.Body)
	if c.storeBytes() > 1 {
		return words(&out, c)
	}
	return &out
}

// narrow reports whether a kernel has storage-only types.
func narrow(k *Kernel, c Caps) bool {
	found := slices.ContainsFunc(k.Arrays, func(a Array) bool { return c.stored(a.DType) }) ||
		slices.ContainsFunc(k.Scalars, func(d dtype.DType) bool { return d.Valid() && c.stored(d) })
	stored := func(n scalar.Expr) bool { return c.stored(n.Type) }
	Walk(k.Body, func(s Stmt) { found = found || AnyNode(s, stored) })
	return found
}

// wideType returns the type in which values of a narrow type are computed.
func wideType(d dtype.DType) dtype.DType {
	switch {
	case d.IsFloat():
		return dtype.F32
	case d.IsUnsigned():
		return dtype.U32
	}
	return dtype.I32
}

type widener struct {
	caps   Caps
	k      *Kernel
	loaded map[string]bool // variables of a narrow type, defined by vector loads
}

// widens reports whether an array gets the wide type: private memory, and shared memory that
// consists of words.
func (w *widener) widens(a Array) bool {
	return w.caps.stored(a.DType) && (a.Space == Private || a.Space == Shared && w.caps.storeBytes() > 1)
}

func (w *widener) block(body []Stmt) []Stmt {
	out := make([]Stmt, len(body))
	for i, s := range body {
		out[i] = w.stmt(s)
	}
	return out
}

func (w *widener) stmt(s Stmt) Stmt {
	e := newWide(w)
	switch s := s.(type) {
	case *Store:
		return &Store{s.Array, e.expr(s.At), w.element(s.Array, e.expr(s.Value))}
	case *StoreVec:
		values := make([]scalar.Expr, len(s.Values))
		for i, v := range s.Values {
			values[i] = w.element(s.Array, e.expr(v))
		}
		return &StoreVec{s.Array, e.expr(s.At), values}
	case *LoadVec:
		if a := w.k.Arrays[s.Array]; w.caps.stored(a.DType) && !w.widens(a) {
			for _, name := range s.Names {
				w.loaded[name] = true
			}
		}
	}
	return mapStmt(s, e.expr, w.block)
}

// element returns a value in the element type of an array.
func (w *widener) element(array int, value scalar.Expr) scalar.Expr {
	a := w.k.Arrays[array]
	if !w.caps.stored(a.DType) || w.widens(a) {
		return value
	}
	return narrowed(value, a.DType)
}

// narrowed converts a wide value that d can represent to d.
func narrowed(value scalar.Expr, d dtype.DType) scalar.Expr {
	if value.Op == scalar.OpConvert && value.Args[0].Type == d {
		return value.Args[0]
	}
	return scalar.Convert(value, d)
}

// wide rewrites the expressions of one statement to wide types.
type wide struct {
	*widener
	done map[scalar.Expr]scalar.Expr
}

func newWide(w *widener) *wide { return &wide{w, map[scalar.Expr]scalar.Expr{}} }

func (w *wide) expr(n scalar.Expr) scalar.Expr {
	r, ok := w.done[n]
	if !ok {
		r = w.node(n)
		w.done[n] = r
	}
	return r
}

// node returns the replacement of n, of the wide type if n's is narrow.
func (w *wide) node(n scalar.Expr) scalar.Expr {
	isNarrow := w.caps.stored(n.Type)
	switch n.Op {
	case scalar.OpConst:
		if v, _ := n.Value(); isNarrow && n.Type.IsFloat() {
			return scalar.ConstF(dtype.F32, v.F)
		} else if isNarrow {
			return scalar.ConstI(wideType(n.Type), v.I)
		}
		return n
	case scalar.OpVar:
		return w.variable(n, isNarrow)
	case scalar.OpLoad:
		return w.load(n, isNarrow)
	}
	args := make([]scalar.Expr, len(n.Args))
	for i, a := range n.Args {
		args[i] = w.expr(a)
	}
	from := n.Args[len(n.Args)-1].Type
	switch {
	case n.Op == scalar.OpConvert && isNarrow:
		return w.rounded(args[0], n.Type)
	case n.Op == scalar.OpConvert:
		return scalar.Convert(args[0], n.Type)
	case n.Op == scalar.OpBitcast:
		return w.bitcast(n, args[0])
	case n.Op == scalar.OpCheck:
		return scalar.Check(args[0], args[1], n.Ref)
	case !w.caps.stored(from):
		return scalar.Rebuild(n, args...)
	}
	if t := wideType(from); from.IsInteger() {
		args = asIfNarrow(n.Op, from, t, args)
	}
	r := scalar.New(n.Op, args...)
	if !isNarrow || closed(n.Op, from) {
		return r
	}
	return w.rounded(r, n.Type)
}

func (w *wide) variable(n scalar.Expr, isNarrow bool) scalar.Expr {
	if !isNarrow {
		return n
	}
	if kind, _ := BuiltinOf(n.Name); kind != NoBuiltin || w.loaded[n.Name] {
		return scalar.Convert(n, wideType(n.Type))
	}
	return scalar.NewVar(n.Name, wideType(n.Type), n.Lo, n.Hi)
}

func (w *wide) load(n scalar.Expr, isNarrow bool) scalar.Expr {
	at := w.expr(n.Args[0])
	switch {
	case !isNarrow:
		return scalar.LoadAt(n.Ref, n.Type, at)
	case w.widens(w.k.Arrays[n.Ref]):
		return scalar.LoadAt(n.Ref, wideType(n.Type), at)
	}
	return scalar.Convert(scalar.LoadAt(n.Ref, n.Type, at), wideType(n.Type))
}

// rounded rounds a value of any type to the narrow type d, in the wide type.
func (w *wide) rounded(x scalar.Expr, d dtype.DType) scalar.Expr {
	t := wideType(d)
	switch {
	case d.IsFloat(): // through f32: an f64, or an integer beyond 2²⁴, is rounded twice
		return scalar.Convert(scalar.Convert(scalar.Convert(x, t), d), t)
	case x.Type.IsFloat(): // saturates
		lo, hi, _ := d.IntRange()
		return scalar.Clamp(scalar.Convert(x, t), scalar.ConstI(t, lo), scalar.ConstI(t, hi))
	}
	return wrapped(scalar.Convert(x, t), d)
}

// wrapped reduces a 32-bit integer to the width of d.
func wrapped(x scalar.Expr, d dtype.DType) scalar.Expr {
	if d.IsUnsigned() {
		return scalar.And(x, scalar.ConstI(dtype.U32, 1<<d.Bits()-1))
	}
	up := scalar.ConstI(dtype.I32, int64(32-d.Bits()))
	return scalar.Shr(scalar.Shl(x, up), up)
}

// asIfNarrow adapts the operands of integer operations that depend on the width of the type.
func asIfNarrow(op scalar.Op, d, t dtype.DType, args []scalar.Expr) []scalar.Expr {
	switch op {
	case scalar.OpShl, scalar.OpShr:
		return []scalar.Expr{args[0], scalar.And(args[1], scalar.ConstI(t, int64(d.Bits()-1)))}
	case scalar.OpPopCount:
		return []scalar.Expr{scalar.And(args[0], scalar.ConstI(t, 1<<d.Bits()-1))}
	}
	return args
}

// closed reports whether an operation in the wide type maps values of a narrow type to one.
func closed(op scalar.Op, d dtype.DType) bool {
	switch op {
	case scalar.OpSelect, scalar.OpMin, scalar.OpMax, scalar.OpClamp, scalar.OpSign:
		return true
	case scalar.OpNeg, scalar.OpAbs, scalar.OpFloor, scalar.OpCeil, scalar.OpRound, scalar.OpTrunc:
		return d.IsFloat()
	case scalar.OpAnd, scalar.OpOr, scalar.OpXor, scalar.OpShr, scalar.OpMod, scalar.OpRem:
		return d.IsInteger()
	}
	return false
}

// bitcast converts through the narrow types.
func (w *wide) bitcast(n, x scalar.Expr) scalar.Expr {
	if from := n.Args[0].Type; w.caps.stored(from) {
		x = narrowed(x, from)
	}
	r := scalar.Bitcast(x, n.Type)
	if w.caps.stored(n.Type) {
		return scalar.Convert(r, wideType(n.Type))
	}
	return r
}
