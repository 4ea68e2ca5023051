package emit

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// WithThreads sets the size of one-dimensional workgroups and returns the emitter, for kernels that are
// written statement by statement.
func (e *Emitter) WithThreads(threads int) *Emitter {
	e.Workgroup = [3]int{threads, 1, 1}
	return e
}

// Launch finishes the kernel.
func (w *Emitter) Launch(name string) Launch { return w.Finish(name, w.Body) }

// on returns the loop writer that appends to the body.
func (w *Emitter) on() *loop.Writer {
	return &loop.Writer{Simplifier: w.Simplifier, Body: &w.Body, Name: w.Name}
}

func (w *Emitter) Add(s ...loop.Stmt) { w.Body = append(w.Body, s...) }

func (w *Emitter) Let(prefix string, x scalar.Expr) scalar.Expr { return w.on().Let(prefix, x) }

func (w *Emitter) Variable(prefix string, init scalar.Expr) scalar.Expr {
	return w.on().Var(prefix, init)
}

func (w *Emitter) Set(v, x scalar.Expr) { w.on().Set(v, x) }

func (w *Emitter) When(cond scalar.Expr, f func()) { w.on().When(cond, f) }

func (w *Emitter) Choose(cond scalar.Expr, then, otherwise func()) {
	w.on().Choose(cond, then, otherwise)
}

func (w *Emitter) Loop(prefix string, from, to scalar.Expr, step, last int, f func(i scalar.Expr)) {
	w.on().Loop(prefix, from, to, step, last, f)
}

func (w *Emitter) Times(prefix string, n int, f func(i scalar.Expr)) { w.on().Times(prefix, n, f) }

func (w *Emitter) Nested(f func()) []loop.Stmt { return w.on().Nested(f) }

// Put stores an element of workgroup memory.
func (w *Emitter) Put(slot int, at, value scalar.Expr) { w.on().Store(slot, at, value) }

func (w *Emitter) Barrier() { w.on().Barrier() }

// Save stores an element of a tensor.
func (w *Emitter) Save(t *fusion.Tensor, at ir.Index, value scalar.Expr) {
	w.Add(w.Store(t, at, value)...)
}

// LetAll names values.
func (w *Emitter) LetAll(prefix string, values []scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(values))
	for i, x := range values {
		out[i] = w.Let(prefix, x)
	}
	return out
}

// Vars declares variables.
func (w *Emitter) Vars(prefix string, init []scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(init))
	for i, x := range init {
		out[i] = w.Variable(prefix, x)
	}
	return out
}

func (w *Emitter) SetAll(vars, values []scalar.Expr) {
	values = append([]scalar.Expr{}, values...)
	w.Add(w.NameAll(values)...)
	for i, v := range vars {
		w.Set(v, values[i])
	}
}

func LoadAll(w *Emitter, from []*fusion.Tensor, at ir.Index) []scalar.Expr {
	out := make([]scalar.Expr, len(from))
	for k, t := range from {
		out[k] = w.Load(t, at)
	}
	return out
}

func SaveAll(w *Emitter, to []*fusion.Tensor, at ir.Index, values []scalar.Expr) {
	for k, t := range to {
		w.Save(t, at, values[k])
	}
}

// Threads launches one thread for each of n elements; f writes the work of one.
func (w *Emitter) Threads(n int, f func(i scalar.Expr)) {
	size := w.Workgroup[0]
	groups := CeilDiv(n, size)
	flat := scalar.Add(scalar.Mul(w.LinearGroup(groups), loop.Int(size)), loop.LocalID(0, size))
	name := w.Name("i")
	w.Add(&loop.Let{Name: name, Value: flat})
	i := scalar.NewVar(name, flat.Type, 0, int64(n-1))
	inside := scalar.Expr(scalar.ConstBool(true))
	if groups*size != n || w.Overshoots() {
		inside = scalar.Lt(scalar.FreeVar(name, flat.Type), loop.Int(n))
	}
	w.When(inside, func() { f(i) })
}

func Word(x int) scalar.Expr { return scalar.ConstI(ir.U32, int64(x)) }
