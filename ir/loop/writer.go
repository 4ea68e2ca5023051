package loop

import (
	"strconv"

	"github.com/rlx-go/rlx/ir/scalar"
)

// Writer builds the body of a kernel statement by statement, for kernels whose control flow
// depends on data. Arrays are numbered as in [Kernel.Arrays].
type Writer struct {
	// Simplifier simplifies what [Writer.Let] and other methods are given.
	Simplifier *scalar.Simplifier
	// Body receives the statements.
	Body *[]Stmt
	// Name returns a new name with the given prefix of letters.
	Name func(prefix string) string

	around [][]Stmt
}

// NewWriter returns a writer with an empty body and fresh names.
func NewWriter() *Writer {
	names := 0
	return &Writer{Simplifier: scalar.NewSimplifier(), Body: new([]Stmt), Name: func(prefix string) string {
		names++
		return prefix + strconv.Itoa(names)
	}}
}

// Simplify returns an expression of the same value, by [scalar.Simplifier.Simplify].
func (w *Writer) Simplify(x scalar.Expr) scalar.Expr { return w.Simplifier.Simplify(x) }

// Add appends statements.
func (w *Writer) Add(s ...Stmt) { *w.Body = append(*w.Body, s...) }

// Let names a value, unless it is a variable or a constant, and returns the variable.
func (w *Writer) Let(prefix string, x scalar.Expr) scalar.Expr {
	x = w.Simplify(x)
	if x.Op == scalar.OpVar || x.Op == scalar.OpConst {
		return x
	}
	name := w.Name(prefix)
	w.Add(&Let{Name: name, Value: x})
	if lo, hi, ok := scalar.Range(x); ok {
		return scalar.NewVar(name, x.Type, lo, hi)
	}
	return scalar.FreeVar(name, x.Type)
}

// Var declares a variable, which [Writer.Set] changes.
func (w *Writer) Var(prefix string, init scalar.Expr) scalar.Expr {
	name := w.Name(prefix)
	w.Add(&Var{Name: name, Init: init})
	return scalar.FreeVar(name, init.Type)
}

// Set changes a variable.
func (w *Writer) Set(v, x scalar.Expr) { w.Add(&Assign{Name: v.Name, Value: x}) }

// Nested returns the statements that f writes, without adding them.
func (w *Writer) Nested(f func()) []Stmt {
	outside := *w.Body
	w.around = append(w.around, outside)
	*w.Body = nil
	f()
	inside := *w.Body
	*w.Body = outside
	w.around = w.around[:len(w.around)-1]
	return inside
}

// Around returns the statements before those that [Writer.Nested] collects now, of each block around them.
func (w *Writer) Around() [][]Stmt { return w.around }

// When writes the statements of f under a condition, or without it if it is known to hold.
func (w *Writer) When(cond scalar.Expr, f func()) {
	cond = w.Simplify(cond)
	then := w.Nested(f)
	if x, ok := cond.IntConst(); ok && x != 0 {
		w.Add(then...)
		return
	}
	w.Add(&If{Cond: cond, Then: then})
}

// Choose writes an if statement with two branches.
func (w *Writer) Choose(cond scalar.Expr, then, otherwise func()) {
	w.Add(&If{Cond: w.Simplify(cond), Then: w.Nested(then), Else: w.Nested(otherwise)})
}

// Loop writes a loop over f with i from one bound to below another; i is at most last.
func (w *Writer) Loop(prefix string, from, to scalar.Expr, step, last int, f func(i scalar.Expr)) {
	name := w.Name(prefix)
	each := &For{Var: name, Start: from, End: to, Step: Int(step)}
	each.Body = w.Nested(func() { f(scalar.NewVar(name, each.Type(), 0, int64(last))) })
	w.Add(each)
}

// Times writes a loop over [0, n).
func (w *Writer) Times(prefix string, n int, f func(i scalar.Expr)) {
	w.Loop(prefix, Int(0), Int(n), 1, max(n-1, 0), f)
}

// Store writes an element of an array of width 1.
func (w *Writer) Store(array int, at, value scalar.Expr) {
	w.Add(&Store{Array: array, At: w.Simplify(at), Value: value})
}

// Barrier writes a [Barrier].
func (w *Writer) Barrier() { w.Add(&Barrier{}) }
