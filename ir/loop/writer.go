package loop

import (
	"strconv"

	"github.com/rlx-go/rlx/ir/scalar"
)

// Writer writes the body of a kernel statement by statement: what kernels are
// written with whose loops and branches depend on data. Arrays are named by
// their place in [Kernel.Arrays].
type Writer struct {
	*scalar.Simplifier
	// Body is where statements are added.
	Body *[]Stmt
	// Name returns a new name that begins with prefix, which is made of letters.
	Name func(prefix string) string
}

// NewWriter returns a writer with an empty body and names of its own.
func NewWriter() *Writer {
	names := 0
	return &Writer{Simplifier: scalar.NewSimplifier(), Body: new([]Stmt), Name: func(prefix string) string {
		names++
		return prefix + strconv.Itoa(names)
	}}
}

// Add appends statements.
func (w *Writer) Add(s ...Stmt) { *w.Body = append(*w.Body, s...) }

// Let names a value, unless it is a name or a number, and returns the name.
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

// Nested returns what f writes, which is not added.
func (w *Writer) Nested(f func()) []Stmt {
	outside := *w.Body
	*w.Body = nil
	f()
	inside := *w.Body
	*w.Body = outside
	return inside
}

// When writes what f does under a condition, which may be known to hold.
func (w *Writer) When(cond scalar.Expr, f func()) {
	cond = w.Simplify(cond)
	then := w.Nested(f)
	if x, ok := cond.IntConst(); ok && x != 0 {
		w.Add(then...)
		return
	}
	w.Add(&If{Cond: cond, Then: then})
}

// Choose writes one of two branches.
func (w *Writer) Choose(cond scalar.Expr, then, otherwise func()) {
	w.Add(&If{Cond: w.Simplify(cond), Then: w.Nested(then), Else: w.Nested(otherwise)})
}

// Loop writes what f does for i from one bound to below another, in steps; i is
// at most last.
func (w *Writer) Loop(prefix string, from, to scalar.Expr, step, last int, f func(i scalar.Expr)) {
	name := w.Name(prefix)
	each := &For{Var: name, Start: from, End: to, Step: Int(step)}
	each.Body = w.Nested(func() { f(scalar.NewVar(name, each.Type(), 0, int64(last))) })
	w.Add(each)
}

// Times is a loop over [0, n).
func (w *Writer) Times(prefix string, n int, f func(i scalar.Expr)) {
	w.Loop(prefix, Int(0), Int(n), 1, max(n-1, 0), f)
}

// Store writes an element of an array of width 1.
func (w *Writer) Store(array int, at, value scalar.Expr) {
	w.Add(&Store{Array: array, At: w.Simplify(at), Value: value})
}

// Barrier makes the workgroup meet.
func (w *Writer) Barrier() { w.Add(&Barrier{}) }
