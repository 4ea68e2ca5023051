package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// writer writes the body of a kernel statement by statement: what schedules use
// whose loops and branches depend on data.
type writer struct {
	*emitter
	body []loop.Stmt
}

// newWriter returns the writer of a kernel whose workgroups have some threads in
// a row.
func newWriter(p *group.Program, caps loop.Caps, threads int) *writer {
	w := &writer{emitter: newEmitter(p, caps)}
	w.workgroup = [3]int{threads, 1, 1}
	return w
}

// launch makes the kernel of what was written.
func (w *writer) launch(name string) Launch { return w.finish(name, w.body) }

// add appends statements.
func (w *writer) add(s ...loop.Stmt) { w.body = append(w.body, s...) }

// let names a value, unless it is a name or a number.
func (w *writer) let(prefix string, x scalar.Expr) scalar.Expr {
	x = w.Simplify(x)
	if x.Op == scalar.OpVar || x.Op == scalar.OpConst {
		return x
	}
	name := w.name(prefix)
	w.add(&loop.Let{Name: name, Value: x})
	if lo, hi, ok := scalar.Range(x); ok {
		return scalar.NewVar(name, x.Type, lo, hi)
	}
	return scalar.FreeVar(name, x.Type)
}

// variable declares a variable.
func (w *writer) variable(prefix string, init scalar.Expr) scalar.Expr {
	name := w.name(prefix)
	w.add(&loop.Var{Name: name, Init: init})
	return scalar.FreeVar(name, init.Type)
}

// set changes a variable.
func (w *writer) set(v, x scalar.Expr) { w.add(&loop.Assign{Name: v.Name, Value: x}) }

// nested returns what f writes.
func (w *writer) nested(f func()) []loop.Stmt {
	outside := w.body
	w.body = nil
	f()
	inside := w.body
	w.body = outside
	return inside
}

// when writes what f does under a condition.
func (w *writer) when(cond scalar.Expr, f func()) {
	w.add(guard(w.Simplify(cond), w.nested(f))...)
}

// choose writes one of two branches.
func (w *writer) choose(cond scalar.Expr, then, otherwise func()) {
	w.add(&loop.If{Cond: w.Simplify(cond), Then: w.nested(then), Else: w.nested(otherwise)})
}

// loop writes what f does for i from one bound to below another, in steps; i is
// at most last.
func (w *writer) loop(prefix string, from, to scalar.Expr, step, last int, f func(i scalar.Expr)) {
	name := w.name(prefix)
	i := scalar.NewVar(name, ir.I32, 0, int64(last))
	w.add(&loop.For{Var: name, Start: from, End: to, Step: loop.Int(step), Body: w.nested(func() { f(i) })})
}

// times is a loop over [0, n).
func (w *writer) times(prefix string, n int, f func(i scalar.Expr)) {
	w.loop(prefix, loop.Int(0), loop.Int(n), 1, max(n-1, 0), f)
}

// put writes an element of workgroup memory.
func (w *writer) put(slot int, at, value scalar.Expr) {
	w.add(&loop.Store{Array: slot, At: w.Simplify(at), Value: value})
}

// barrier makes the workgroup meet.
func (w *writer) barrier() { w.add(&loop.Barrier{}) }

// save stores an element of a tensor.
func (w *writer) save(t *group.Tensor, at ir.Index, value scalar.Expr) {
	w.add(w.store(t, at, value)...)
}

// threads lays out one thread for each of n elements, and writes what f does for
// one of them.
func (w *writer) threads(n int, f func(i scalar.Expr)) {
	size := w.workgroup[0]
	groups := ceilDiv(n, size)
	flat := scalar.Add(scalar.Mul(w.linearGroup(groups), loop.Int(size)), loop.LocalID(0, size))
	name := w.name("i")
	w.add(&loop.Let{Name: name, Value: flat})
	i := scalar.NewVar(name, ir.I32, 0, int64(n-1))
	inside := scalar.Expr(scalar.ConstBool(true))
	if groups*size != n || w.overshoots() {
		inside = scalar.Lt(scalar.FreeVar(name, ir.I32), loop.Int(n))
	}
	w.when(inside, func() { f(i) })
}

func word(x int) scalar.Expr { return scalar.ConstI(ir.U32, int64(x)) }
