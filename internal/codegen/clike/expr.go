package clike

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Operator precedence, loosest first. WGSL requires more
// parentheses than C: operands of bit operations and shifts are unary expressions,
// and comparisons and different logical operators do not mix.
const (
	loose    = iota // a && b, a & b, a << b: an operand of nothing
	relation        // a < b
	sum             // a + b
	product         // a * b
	unary           // -a
	single          // f(a), a[i], a, 1
)

// text is the text of an expression and its precedence.
type text struct {
	s          string
	precedence int
}

func atom(s string) text { return text{s, single} }

// parenthesized returns t, in parentheses if its precedence is below hold.
func (t text) parenthesized(hold int) string {
	if t.precedence < hold {
		return "(" + t.s + ")"
	}
	return t.s
}

// longLine is the length from which an operand is bound to a variable.
const longLine = 90

// operator is an infix operator: its precedence and those of its operands.
type operator struct {
	sign                    string
	precedence, left, right int
}

// infix holds the operators by operation; other operations have no sign.
var infix = [...]operator{
	scalar.OpAdd: {"+", sum, sum, product},
	scalar.OpSub: {"-", sum, sum, product},
	scalar.OpMul: {"*", product, product, unary},
	scalar.OpDiv: {"/", product, product, unary},
	scalar.OpRem: {"%", product, product, unary},
	scalar.OpEq:  {"==", relation, sum, sum},
	scalar.OpNe:  {"!=", relation, sum, sum},
	scalar.OpLt:  {"<", relation, sum, sum},
	scalar.OpLe:  {"<=", relation, sum, sum},
	scalar.OpGt:  {">", relation, sum, sum},
	scalar.OpGe:  {">=", relation, sum, sum},
	scalar.OpAnd: {"&", loose, single, single},
	scalar.OpOr:  {"|", loose, single, single},
	scalar.OpXor: {"^", loose, single, single},
	scalar.OpShl: {"<<", loose, single, single},
	scalar.OpShr: {">>", loose, single, single},
}

// expr writes e.
func (w *Writer) expr(e scalar.Expr) text {
	switch e.Op {
	case scalar.OpConst:
		return w.constant(e)
	case scalar.OpVar:
		return w.variable(e)
	case scalar.OpLoad:
		return w.load(e)
	case scalar.OpConvert, scalar.OpBitcast:
		return w.conversion(e)
	case scalar.OpFma:
		// Compilers contract the sum where the device has an instruction for
		// it; a call of fma may be slow where it has none.
		return w.expr(&scalar.Node{Op: scalar.OpAdd, Type: e.Type, Args: []scalar.Expr{
			e.Args[2], {Op: scalar.OpMul, Type: e.Type, Args: e.Args[:2]},
		}})
	}
	t := e.Args[len(e.Args)-1].Type
	w.useType(e.Type)
	if t.On(w.d.Target) == dtype.Storage {
		w.Fail("%s of %s", e.Op, t) // the kernel has not been widened
	}
	if w.callsFunction(e) {
		return atom(operationOf(e).name() + "(" + w.list(e.Args) + ")")
	}
	if two, is := e.Args[0].Value(); is && e.Op == scalar.OpPow && e.Type == dtype.F32 && two.F == 2 && w.d.PowerOfTwo != "" {
		w.Need(w.d.PowerOfTwo)
		return atom(w.d.PowerOfTwo + "(" + w.list(e.Args[1:]) + ")")
	}
	form, ok := w.d.Form(e.Op, t)
	if !ok {
		return w.commonForm(e, t)
	}
	w.Need(form.Helper)
	return w.form(form, e)
}

// conversion writes a conversion or bitcast.
func (w *Writer) conversion(e scalar.Expr) text {
	from := e.Args[0].Type
	w.useType(e.Type)
	if w.callsFunction(e) {
		return atom(operationOf(e).name() + "(" + w.list(e.Args) + ")")
	}
	x := w.operand(e.Args[0], loose)
	if e.Op == scalar.OpBitcast {
		return atom(w.d.Bitcast(w, x, from, e.Type))
	}
	return atom(w.d.Convert(w, x, from, e.Type))
}

func isConst(x scalar.Expr) bool { return x.Op == scalar.OpConst }

// commonForm writes an operation that all dialects write the same way.
func (w *Writer) commonForm(e scalar.Expr, t dtype.DType) text {
	if t.IsBool() {
		switch e.Op {
		case scalar.OpAnd:
			return w.logical(e, "&")
		case scalar.OpOr:
			return w.logical(e, "|")
		case scalar.OpXor:
			return text{w.operand(e.Args[0], sum) + " != " + w.operand(e.Args[1], sum), relation}
		case scalar.OpNot:
			return w.form(Form{Prefix: "!"}, e)
		}
	}
	switch e.Op {
	case scalar.OpNeg:
		if t.IsUnsigned() { // WGSL has no such minus
			return w.expr(&scalar.Node{Op: scalar.OpSub, Type: t, Args: []scalar.Expr{scalar.ConstI(t, 0), e.Args[0]}})
		}
		return w.form(Form{Prefix: "-"}, e)
	case scalar.OpNot:
		return w.form(Form{Prefix: "~"}, e)
	}
	e = withoutMinus(e)
	if w.d.Masked != "" && e.Op == scalar.OpXor && t == dtype.U32 && e.Args[0].Op == scalar.OpAnd && isConst(e.Args[1]) && isConst(e.Args[0].Args[1]) {
		w.Need(w.d.Masked)
		return atom(w.d.Masked + "(" + w.list([]scalar.Expr{e.Args[0].Args[0], e.Args[0].Args[1], e.Args[1]}) + ")")
	}
	if mask, ok := w.lowBits(e); ok {
		return atom(w.d.LowBits(w.operand(e.Args[0], loose), mask))
	}
	if op, ok := infixOf(e.Op); ok {
		left, right := w.operand(e.Args[0], op.left), e.Args[1]
		if w.d.UnsignedShift && (e.Op == scalar.OpShl || e.Op == scalar.OpShr) {
			right = scalar.Convert(right, dtype.U32)
			if e.Args[0].Op == scalar.OpConst && t == dtype.I32 {
				left += "i" // wgpu infers no type for an abstract integer here
			}
		}
		return text{left + " " + op.sign + " " + w.operand(right, op.right), op.precedence}
	}
	w.Fail("operation %s of %s", e.Op, t)
	return atom(e.Op.String())
}

// infixOf returns the infix operator of an operation, if it has one.
func infixOf(op scalar.Op) (o operator, ok bool) {
	if int(op) < len(infix) {
		o = infix[op]
	}
	return o, o.sign != ""
}

// lowBits reports whether [Dialect.LowBits] writes e, and returns the mask.
func (w *Writer) lowBits(e scalar.Expr) (mask int64, ok bool) {
	if w.d.LowBits == nil || e.Op != scalar.OpAnd || e.Type != dtype.I32 {
		return 0, false
	}
	if mask, ok = e.Args[1].IntConst(); !ok || mask <= 0 || mask&(mask+1) != 0 {
		return 0, false
	}
	lo, _, known := w.ranges.Range(e.Args[0])
	return mask, known && lo >= 0
}

// withoutMinus returns x + -1 as x - 1 and vice versa.
func withoutMinus(e scalar.Expr) scalar.Expr {
	opposite := scalar.OpAdd
	switch {
	case e.Op != scalar.OpAdd && e.Op != scalar.OpSub, e.Args[1].Op != scalar.OpConst:
		return e
	case e.Op == scalar.OpAdd:
		opposite = scalar.OpSub
	}
	if v, _ := e.Args[1].Value(); v.F >= 0 && v.I >= 0 {
		return e
	}
	plus := scalar.Neg(e.Args[1])
	if p, _ := plus.Value(); p.I < 0 { // the smallest integer has no opposite
		return e
	}
	return &scalar.Node{Op: opposite, Type: e.Type, Args: []scalar.Expr{e.Args[0], plus}}
}

// logical writes a chain of one logical operator without parentheses.
func (w *Writer) logical(e scalar.Expr, sign string) text {
	hold := single
	if w.d.LazyLogic {
		sign, hold = sign+sign, relation
	}
	return text{w.chain(e, hold, " "+sign+" "), loose}
}

func (w *Writer) chain(e scalar.Expr, hold int, sign string) string {
	parts := make([]string, len(e.Args))
	for i, a := range e.Args {
		if a.Op == e.Op {
			parts[i] = w.chain(a, hold, sign)
		} else {
			parts[i] = w.operand(a, hold)
		}
	}
	return strings.Join(parts, sign)
}

// form writes e in the form f.
func (w *Writer) form(f Form, e scalar.Expr) text {
	switch {
	case f.Call != "":
		return atom(f.Call + "(" + w.list(e.Args) + ")")
	case f.Prefix != "":
		return text{f.Prefix + w.operand(e.Args[0], single), unary}
	case f.Infix != "":
		return text{w.operand(e.Args[0], single) + " " + f.Infix + " " + w.operand(e.Args[1], single), loose}
	}
	s := f.Text
	for i, a := range e.Args {
		s = strings.ReplaceAll(s, "$"+strconv.Itoa(i), w.operand(a, loose))
	}
	return atom(s)
}

// operand writes e as an operand that needs the precedence hold.
func (w *Writer) operand(e scalar.Expr, hold int) string {
	t := w.expr(e)
	if len(t.s) > longLine {
		return w.let(e.Type, t.s)
	}
	return t.parenthesized(hold)
}

func (w *Writer) list(args []scalar.Expr) string {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = w.operand(a, loose)
	}
	return strings.Join(parts, ", ")
}

func (w *Writer) constant(e scalar.Expr) text {
	w.useType(e.Type)
	if v, _ := e.Value(); e.Type.IsBool() {
		return atom(strconv.FormatBool(v.I != 0))
	}
	s := w.d.Literal(w, e)
	if s[0] == '-' {
		return text{s, unary}
	}
	return atom(s)
}

func (w *Writer) variable(e scalar.Expr) text {
	if t, ok := w.alias[e.Name]; ok {
		return t
	}
	if kind, _ := loop.BuiltinOf(e.Name); kind != loop.NoBuiltin {
		w.useBuiltin(e.Name)
	}
	return atom(w.name(e.Name))
}

func (w *Writer) name(name string) string {
	if to, ok := w.renamed[name]; ok {
		return to
	}
	return name
}

func (w *Writer) useBuiltin(name string) {
	if slices.Contains(w.out.Builtins, name) {
		return
	}
	w.out.Builtins = append(w.out.Builtins, name)
}

// let binds a value to a new variable and returns its name.
func (w *Writer) let(t dtype.DType, value string) string {
	name := w.fresh("t", &w.lets)
	w.useType(t)
	w.line(w.d.Let(t, name, value))
	return name
}

func (w *Writer) load(e scalar.Expr) text {
	a := w.k.Arrays[e.Ref]
	element := w.element(e.Ref, e.Args[0])
	switch {
	case a.Access == loop.Atomic:
		return atom(w.d.AtomicLoad(a.DType, element))
	case a.DType.IsBool():
		return w.fromWord(element)
	}
	return atom(element)
}

func (w *Writer) element(array int, at scalar.Expr) string {
	return w.out.Names[array] + "[" + w.operand(at, loose) + "]"
}

// fromWord returns the bool that a word in memory represents.
func (w *Writer) fromWord(word string) text {
	return text{word + " != " + w.d.Literal(w, scalar.ConstI(dtype.U32, 0)), relation}
}

// storedValue returns a value in its memory type: a bool as a word.
func storedValue(e scalar.Expr) scalar.Expr {
	if e.Type.IsBool() {
		return scalar.Convert(e, dtype.U32)
	}
	return e
}

// sharesStorage reports whether threads may exchange values through storage arrays: whether
// the kernel reads an array that it writes. Access alone does not say so, because an array
// bound as writable may only be read, if it shares a buffer with a written one.
func sharesStorage(k *loop.Kernel) bool {
	written, found := map[int]bool{}, false
	loop.WalkStores(k.Body, func(array int) { written[array] = true })
	read := func(array int) bool {
		a := k.Arrays[array]
		return written[array] && a.Space == loop.Storage && a.Access == loop.ReadWrite
	}
	reads := func(n scalar.Expr) bool { return n.Op == scalar.OpLoad && read(n.Ref) }
	loop.Walk(k.Body, func(s loop.Stmt) {
		l, ok := s.(*loop.LoadVec)
		found = found || ok && read(l.Array) || loop.AnyNode(s, reads)
	})
	return found
}

// bindLocals defines the variables of bound subexpressions.
func (w *Writer) bindLocals(list []scalar.Local) {
	for _, b := range list {
		w.alias[b.Var.Name] = atom(w.let(b.Value.Type, w.expr(b.Value).s))
	}
}
