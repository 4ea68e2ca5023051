package emit

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// WithThreads sets the size of one-dimensional workgroups and returns the emitter, for kernels
// that are written statement by statement.
func (e *Emitter) WithThreads(threads int) *Emitter {
	e.Workgroup = [3]int{threads, 1, 1}
	return e
}

// Launch finishes the kernel.
func (e *Emitter) Launch(name string) Launch { return e.Finish(name, e.Body) }

// on returns the loop writer that appends to the body.
func (e *Emitter) on() *loop.Writer {
	return &loop.Writer{Simplifier: e.Simplifier, Body: &e.Body, Name: e.Name}
}

// Add appends statements.
func (e *Emitter) Add(s ...loop.Stmt) { e.Body = append(e.Body, s...) }

// Let names a value and returns its variable.
func (e *Emitter) Let(prefix string, x scalar.Expr) scalar.Expr { return e.on().Let(prefix, x) }

// Variable declares a variable and returns it.
func (e *Emitter) Variable(prefix string, init scalar.Expr) scalar.Expr {
	return e.on().Var(prefix, init)
}

// Set assigns a variable.
func (e *Emitter) Set(v, x scalar.Expr) { e.on().Set(v, x) }

// When writes the statements of f under a condition.
func (e *Emitter) When(cond scalar.Expr, f func()) { e.on().When(cond, f) }

// Choose writes then under a condition and otherwise under its negation.
func (e *Emitter) Choose(cond scalar.Expr, then, otherwise func()) {
	e.on().Choose(cond, then, otherwise)
}

// Loop writes f in a loop over i from from to to, exclusive; last bounds i.
func (e *Emitter) Loop(prefix string, from, to scalar.Expr, step, last int, f func(i scalar.Expr)) {
	e.on().Loop(prefix, from, to, step, last, f)
}

// Times writes f in a loop over i from 0 to n, exclusive.
func (e *Emitter) Times(prefix string, n int, f func(i scalar.Expr)) { e.on().Times(prefix, n, f) }

// Nested returns the statements that f writes.
func (e *Emitter) Nested(f func()) []loop.Stmt { return e.on().Nested(f) }

// Put stores an element of workgroup memory.
func (e *Emitter) Put(slot int, at, value scalar.Expr) { e.on().Store(slot, at, value) }

// Barrier writes a workgroup barrier.
func (e *Emitter) Barrier() { e.on().Barrier() }

// Save stores an element of a tensor.
func (e *Emitter) Save(t *fusion.Tensor, at ir.Index, value scalar.Expr) {
	e.Add(e.Store(t, at, value)...)
}

// LetAll names values.
func (e *Emitter) LetAll(prefix string, values []scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(values))
	for i, x := range values {
		out[i] = e.Let(prefix, x)
	}
	return out
}

// Vars declares variables.
func (e *Emitter) Vars(prefix string, init []scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(init))
	for i, x := range init {
		out[i] = e.Variable(prefix, x)
	}
	return out
}

// SetAll assigns variables at once.
func (e *Emitter) SetAll(vars, values []scalar.Expr) {
	values = append([]scalar.Expr{}, values...)
	e.Add(e.NameAll(values)...)
	for i, v := range vars {
		e.Set(v, values[i])
	}
}

// LoadAll returns the loads of an element of each tensor.
func LoadAll(e *Emitter, from []*fusion.Tensor, at ir.Index) []scalar.Expr {
	out := make([]scalar.Expr, len(from))
	for k, t := range from {
		out[k] = e.Load(t, at)
	}
	return out
}

// SaveAll stores a value in an element of each tensor.
func SaveAll(e *Emitter, to []*fusion.Tensor, at ir.Index, values []scalar.Expr) {
	for k, t := range to {
		e.Save(t, at, values[k])
	}
}

// Threads launches one thread for each of n elements; f writes the work of one.
func (e *Emitter) Threads(n int, f func(i scalar.Expr)) {
	size := e.Workgroup[0]
	groups := CeilDiv(n, size)
	flat := scalar.Add(scalar.Mul(e.LinearGroup(groups), loop.Int(size)), loop.LocalID(0, size))
	name := e.Name("i")
	e.Add(&loop.Let{Name: name, Value: flat})
	i := scalar.NewVar(name, flat.Type, 0, int64(n-1))
	inside := scalar.Expr(scalar.ConstBool(true))
	if groups*size != n || e.Overshoots() {
		inside = scalar.Lt(scalar.FreeVar(name, flat.Type), loop.Int(n))
	}
	e.When(inside, func() { f(i) })
}

// Word returns a U32 constant.
func Word(x int) scalar.Expr { return scalar.ConstI(ir.U32, int64(x)) }
