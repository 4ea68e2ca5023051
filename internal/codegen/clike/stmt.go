package clike

import (
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// localPrefix begins the names of scalar.BindShared; no kernel has such names.
const localPrefix = "%"

// statements writes the statements of a kernel.
type statements struct{ *Writer }

// bind writes the definitions of the common subexpressions of a statement, and its
// checks. It returns the remaining expressions.
func (w statements) bind(roots ...scalar.Expr) []scalar.Expr {
	n := len(roots)
	var codes []int
	all := make([]scalar.Expr, n)
	for i, r := range roots {
		all[i] = w.expand(r)
	}
	for i, r := range all {
		all[i] = scalar.TakeChecks(r, func(cond scalar.Expr, code int) {
			all, codes = append(all, scalar.Not(cond)), append(codes, code)
		})
	}
	s := w.ranges.BindShared(localPrefix, all...)
	w.bindLocals(s.Locals)
	for i, code := range codes {
		w.check(s.Roots[n+i], code)
	}
	return s.Roots[:n]
}

// check writes the maximum of code and the status word if failed holds.
func (w statements) check(failed scalar.Expr, code int) {
	status := w.out.Names[w.k.StatusArray()]
	w.line("if (" + w.expr(failed).s + ") {")
	w.depth++
	w.line(w.combine(scalar.OpMax, status+"[0]", w.d.Literal(w.Writer, scalar.ConstI(dtype.U32, int64(code)))) + ";")
	w.depth--
	w.line("}")
}

func (w statements) block(body []loop.Stmt) {
	for i := 0; i < len(body); i++ {
		if w.quad(body[i:]) {
			i += quadWidth - 1
			continue
		}
		w.stmt(body[i])
	}
}

func (w statements) nested(head string, body []loop.Stmt) {
	w.line(head + " {")
	w.depth++
	w.block(body)
	w.depth--
}

func (w statements) stmt(s loop.Stmt) {
	if _, isLoad := s.(*loop.LoadVec); !isLoad {
		for _, name := range loop.Defines(s) {
			delete(w.alias, name) // it may be a vector member of a closed block
		}
	}
	switch s := s.(type) {
	case *loop.Let:
		w.define(w.d.Let, s.Name, s.Value)
	case *loop.Var:
		w.define(w.d.Var, s.Name, s.Init)
	case *loop.Assign:
		w.assign(s)
	case *loop.Store:
		e := w.bind(s.At, storedValue(s.Value))
		value := w.expr(e[1]).s
		w.line(w.element(s.Array, e[0]) + " = " + value + ";")
	case *loop.LoadVec:
		w.loadVec(s)
	case *loop.StoreVec:
		w.storeVec(s)
	case *loop.For:
		w.loop(s)
	case *loop.If:
		w.nested("if ("+w.expr(w.bind(s.Cond)[0]).s+")", s.Then)
		if len(s.Else) > 0 {
			w.nested("} else", s.Else)
		}
		w.line("}")
	case *loop.Barrier:
		if s.Kernels {
			w.kernelBarrier()
		} else {
			w.barrier()
		}
	case *loop.AtomicOp:
		w.atomic(s)
	case *loop.Subgroup:
		w.subgroup(s)
	case *loop.Shuffle:
		w.shuffle(s)
	default:
		switch {
		case withAsync && w.d.Fragments != nil && isFragment(s):
			w.fragment(s)
		case withAsync && w.d.Async != nil:
			w.async(s)
		default:
			w.Fail("%s", w.k.Label(s))
		}
	}
}

// subgroup writes a subgroup reduction. Sums of signed integers are computed unsigned
// where overflow is undefined.
func (w statements) subgroup(s *loop.Subgroup) {
	t, value := s.Value.Type, s.Value
	asBits := w.d.UndefinedOverflow && t.IsSigned() && s.Op == scalar.OpAdd
	if asBits {
		value = scalar.Convert(value, t.Unsigned())
	}
	call := w.d.Subgroup(w.Writer, s.Op, value.Type) + "(" + w.expr(w.bind(value)[0]).s + ")"
	if asBits {
		call = w.d.Convert(w.Writer, call, value.Type, t)
	}
	w.line(w.d.Let(t, w.name(s.Name), call))
}

func (w statements) shuffle(s *loop.Shuffle) {
	if w.d.Shuffle == nil {
		w.Fail("%s", w.k.Label(s))
		return
	}
	value := w.d.Shuffle(w.expr(w.bind(s.Value)[0]).s, s.Xor)
	w.line(w.d.Let(s.Value.Type, w.name(s.Name), value))
}

// define writes the definition of a variable.
func (w statements) define(form func(t dtype.DType, name, value string) string, name string, value scalar.Expr) {
	w.useType(value.Type)
	text := w.expr(w.bind(value)[0]).s
	w.line(form(value.Type, w.name(name), text))
}

// assign writes v = v + x as v += x.
func (w statements) assign(s *loop.Assign) {
	e, name := w.bind(s.Value)[0], w.name(s.Name)
	isSelf := func(x scalar.Expr) bool { return x.Op == scalar.OpVar && x.Name == s.Name }
	if e.Op == scalar.OpFma && isSelf(e.Args[2]) {
		e = scalar.Add(e.Args[2], scalar.Mul(e.Args[0], e.Args[1]))
	}
	switch e.Op {
	case scalar.OpAdd, scalar.OpSub, scalar.OpMul:
		if isSelf(e.Args[0]) {
			value := w.expr(e.Args[1]).s
			w.line(name + " " + infix[e.Op].sign + "= " + value + ";")
			return
		}
	}
	value := w.expr(e).s
	w.line(name + " = " + value + ";")
}

var members = [4]string{".x", ".y", ".z", ".w"}

// loadVec binds the vector; its elements are aliases of its members.
func (w statements) loadVec(s *loop.LoadVec) {
	a := w.k.Arrays[s.Array]
	vector := w.fresh("v", &w.vectors)
	value := w.element(s.Array, w.bind(s.At)[0])
	w.line(w.d.LetVector(a, vector, value))
	w.width[vector] = a.Width
	for i, name := range s.Names {
		member := vector + members[i]
		w.alias[name] = atom(member)
		if a.DType.IsBool() {
			w.alias[name] = w.fromWord(member)
		}
	}
}

func (w statements) storeVec(s *loop.StoreVec) {
	roots := []scalar.Expr{s.At}
	for _, v := range s.Values {
		roots = append(roots, storedValue(v))
	}
	e := w.bind(roots...)
	var elems []string
	for _, v := range e[1:] {
		elems = append(elems, w.operand(v, loose))
	}
	vector, ok := w.wholeVector(elems)
	if !ok {
		vector = w.d.Vector(roots[1].Type, elems)
	}
	w.line(w.element(s.Array, e[0]) + " = " + vector + ";")
}

// wholeVector returns the vector whose members elems are, in order.
func (w statements) wholeVector(elems []string) (vector string, ok bool) {
	vector, _, _ = strings.Cut(elems[0], ".")
	for i, e := range elems {
		if e != vector+members[i] {
			return "", false
		}
	}
	return vector, w.width[vector] == len(elems)
}

// loop evaluates its bounds once: an end other than a constant or an immutable name
// is bound before the loop.
func (w statements) loop(s *loop.For) {
	if s.NoUnroll && w.d.OpaqueLoops {
		s = w.opaqueStart(s)
	}
	e := w.bind(s.Start, s.End)
	start, end := w.expr(e[0]).s, w.expr(e[1])
	isName := e[1].Op == scalar.OpVar && w.mutable[e[1].Name] == dtype.Invalid
	if !isName && e[1].Op != scalar.OpConst {
		end = atom(w.let(s.End.Type, end.s))
	}
	v := w.name(s.Var)
	advance := v + "++"
	if step, _ := s.Step.IntConst(); step != 1 {
		advance = v + " += " + strconv.FormatInt(step, 10)
	}
	w.nested("for ("+w.d.Var(s.Type(), v, start)+" "+v+" < "+end.parenthesized(sum)+"; "+advance+")", s.Body)
	w.line("}")
}

// opaqueStart returns a loop whose start the driver cannot prove to be the original one,
// so that it does not unroll it: local IDs are never negative.
func (w statements) opaqueStart(s *loop.For) *loop.For {
	f := *s
	f.Start = scalar.Add(s.Start, scalar.Min(loop.LocalID(0, w.k.Workgroup[0]), loop.Int(0)))
	return &f
}

func (w statements) atomic(s *loop.AtomicOp) {
	if s.Value.Type.IsFloat() {
		w.addFloat(s)
		return
	}
	e := w.bind(s.At, s.Value)
	value := w.operand(e[1], loose)
	call := w.combine(s.Op, w.element(s.Array, e[0]), value)
	if s.Old == "" {
		w.line(call + ";")
		return
	}
	w.line(w.d.Let(s.Value.Type, w.name(s.Old), call))
}

// addFloat binds a value that is neither a name nor a literal, because a
// compare-and-exchange loop may use it several times.
func (w statements) addFloat(s *loop.AtomicOp) {
	if w.d.AddFloat == nil {
		w.Fail("%s of %s", w.k.Label(s), s.Value.Type)
		return
	}
	e := w.bind(s.At, s.Value)
	value := w.expr(e[1]).s
	if e[1].Op != scalar.OpVar && e[1].Op != scalar.OpConst {
		value = w.let(s.Value.Type, value)
	}
	for _, line := range w.d.AddFloat(w.element(s.Array, e[0]), value, w.name(s.Old)) {
		w.line(line)
	}
}

// combine returns the call of an atomic operation.
func (w statements) combine(op scalar.Op, element, value string) string {
	if w.d.Atomic != nil {
		return w.d.Atomic(op, element, value)
	}
	return map[scalar.Op]string{
		scalar.OpAdd: "atomicAdd", scalar.OpMax: "atomicMax", scalar.OpMin: "atomicMin", scalar.OpOr: "atomicOr",
	}[op] + "(&" + element + ", " + value + ")"
}
