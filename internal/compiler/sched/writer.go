package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// writer sets the size of one-dimensional workgroups and returns the emitter, for kernels that are
// written statement by statement.
func (e *emitter) writer(threads int) *emitter {
	e.workgroup = [3]int{threads, 1, 1}
	return e
}

// launch finishes the kernel.
func (w *emitter) launch(name string) Launch { return w.finish(name, w.body) }

// on returns the loop writer that appends to the body.
func (w *emitter) on() *loop.Writer {
	return &loop.Writer{Simplifier: w.simplifier, Body: &w.body, Name: w.name}
}

func (w *emitter) add(s ...loop.Stmt) { w.body = append(w.body, s...) }

func (w *emitter) let(prefix string, x scalar.Expr) scalar.Expr { return w.on().Let(prefix, x) }

func (w *emitter) variable(prefix string, init scalar.Expr) scalar.Expr {
	return w.on().Var(prefix, init)
}

func (w *emitter) set(v, x scalar.Expr) { w.on().Set(v, x) }

func (w *emitter) when(cond scalar.Expr, f func()) { w.on().When(cond, f) }

func (w *emitter) choose(cond scalar.Expr, then, otherwise func()) {
	w.on().Choose(cond, then, otherwise)
}

func (w *emitter) loop(prefix string, from, to scalar.Expr, step, last int, f func(i scalar.Expr)) {
	w.on().Loop(prefix, from, to, step, last, f)
}

func (w *emitter) times(prefix string, n int, f func(i scalar.Expr)) { w.on().Times(prefix, n, f) }

func (w *emitter) nested(f func()) []loop.Stmt { return w.on().Nested(f) }

// put stores an element of workgroup memory.
func (w *emitter) put(slot int, at, value scalar.Expr) { w.on().Store(slot, at, value) }

func (w *emitter) barrier() { w.on().Barrier() }

// save stores an element of a tensor.
func (w *emitter) save(t *fusion.Tensor, at ir.Index, value scalar.Expr) {
	w.add(w.store(t, at, value)...)
}

// letAll names values.
func (w *emitter) letAll(prefix string, values []scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(values))
	for i, x := range values {
		out[i] = w.let(prefix, x)
	}
	return out
}

// vars declares variables.
func (w *emitter) vars(prefix string, init []scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(init))
	for i, x := range init {
		out[i] = w.variable(prefix, x)
	}
	return out
}

func (w *emitter) setAll(vars, values []scalar.Expr) {
	values = append([]scalar.Expr{}, values...)
	w.add(w.nameAll(values)...)
	for i, v := range vars {
		w.set(v, values[i])
	}
}

func loadAll(w *emitter, from []*fusion.Tensor, at ir.Index) []scalar.Expr {
	out := make([]scalar.Expr, len(from))
	for k, t := range from {
		out[k] = w.load(t, at)
	}
	return out
}

func saveAll(w *emitter, to []*fusion.Tensor, at ir.Index, values []scalar.Expr) {
	for k, t := range to {
		w.save(t, at, values[k])
	}
}

// threads launches one thread for each of n elements; f writes the work of one.
func (w *emitter) threads(n int, f func(i scalar.Expr)) {
	size := w.workgroup[0]
	groups := ceilDiv(n, size)
	flat := scalar.Add(scalar.Mul(w.linearGroup(groups), loop.Int(size)), loop.LocalID(0, size))
	name := w.name("i")
	w.add(&loop.Let{Name: name, Value: flat})
	i := scalar.NewVar(name, flat.Type, 0, int64(n-1))
	inside := scalar.Expr(scalar.ConstBool(true))
	if groups*size != n || w.overshoots() {
		inside = scalar.Lt(scalar.FreeVar(name, flat.Type), loop.Int(n))
	}
	w.when(inside, func() { f(i) })
}

func word(x int) scalar.Expr { return scalar.ConstI(ir.U32, int64(x)) }
