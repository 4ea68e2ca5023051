package kernel

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// writer writes the body of a kernel statement by statement: what schedules use
// whose loops and branches depend on data.
type writer struct {
	*emitter
	body []Stmt
}

// newWriter returns the writer of a kernel whose workgroups have some threads in
// a row.
func newWriter(p *Program, d Device, threads int) *writer {
	w := &writer{emitter: newEmitter(p, d)}
	w.workgroup = [3]int{threads, 1, 1}
	return w
}

// launch makes the kernel of what was written.
func (w *writer) launch(name string) Launch { return w.finish(name, w.body) }

// add appends statements.
func (w *writer) add(s ...Stmt) { w.body = append(w.body, s...) }

// let names a value, unless it is a name or a number.
func (w *writer) let(prefix string, x scalar.Expr) scalar.Expr {
	x = w.Simplify(x)
	if x.Op == scalar.OpVar || x.Op == scalar.OpConst {
		return x
	}
	name := w.name(prefix)
	w.add(&Let{name, x})
	if lo, hi, ok := scalar.Range(x); ok {
		return scalar.NewVar(name, x.Type, lo, hi)
	}
	return scalar.FreeVar(name, x.Type)
}

// variable declares a variable.
func (w *writer) variable(prefix string, init scalar.Expr) scalar.Expr {
	name := w.name(prefix)
	w.add(&Var{name, init})
	return scalar.FreeVar(name, init.Type)
}

// set changes a variable.
func (w *writer) set(v, x scalar.Expr) { w.add(&Assign{v.Name, x}) }

// nested returns what f writes.
func (w *writer) nested(f func()) []Stmt {
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
	w.add(&If{w.Simplify(cond), w.nested(then), w.nested(otherwise)})
}

// loop writes what f does for i from one bound to below another, in steps; i is
// at most last.
func (w *writer) loop(prefix string, from, to scalar.Expr, step, last int, f func(i scalar.Expr)) {
	name := w.name(prefix)
	i := scalar.NewVar(name, ir.I32, 0, int64(last))
	w.add(&For{Var: name, Start: from, End: to, Step: integer(step), Body: w.nested(func() { f(i) })})
}

// times is a loop over [0, n).
func (w *writer) times(prefix string, n int, f func(i scalar.Expr)) {
	w.loop(prefix, integer(0), integer(n), 1, max(n-1, 0), f)
}

// put writes an element of workgroup memory.
func (w *writer) put(slot int, at, value scalar.Expr) {
	w.add(&Store{slot, w.Simplify(at), value})
}

// barrier makes the workgroup meet.
func (w *writer) barrier() { w.add(&Barrier{}) }

// save stores an element of a tensor.
func (w *writer) save(t *Tensor, at ir.Index, value scalar.Expr) {
	w.add(w.store(t, at, value)...)
}

// threads lays out one thread for each of n elements, and writes what f does for
// one of them.
func (w *writer) threads(n int, f func(i scalar.Expr)) {
	size := w.workgroup[0]
	groups := ceilDiv(n, size)
	flat := scalar.Add(scalar.Mul(w.linearGroup(groups), integer(size)), LocalID(0, size))
	name := w.name("i")
	w.add(&Let{name, flat})
	i := scalar.NewVar(name, ir.I32, 0, int64(n-1))
	inside := scalar.Expr(scalar.ConstBool(true))
	if groups*size != n || w.overshoots() {
		inside = scalar.Lt(scalar.FreeVar(name, ir.I32), integer(n))
	}
	w.when(inside, func() { f(i) })
}

func word(x int) scalar.Expr { return scalar.ConstI(ir.U32, int64(x)) }

// scratch adds a tensor for what goes from one kernel of a group to the next.
func (p *Program) scratch(name string, d ir.DType, dims ...int) *Tensor {
	return p.newTensor(name, ir.Type{DType: d, Shape: ir.Dims(dims...)})
}
