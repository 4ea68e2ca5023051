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

// Put stores an element of workgroup memory.
func (e *Emitter) Put(slot int, at, value scalar.Expr) { e.Writer.Store(slot, at, value) }

// Save stores an element of a tensor.
func (e *Emitter) Save(t *fusion.Tensor, at ir.Index, value scalar.Expr) {
	e.Add(e.Store(t, at, value)...)
}

// Bounded names an integer in [0, n), whose bounds its expression may not show.
func (e *Emitter) Bounded(prefix string, x scalar.Expr, n int) scalar.Expr {
	if n <= 1 {
		return loop.Int(0)
	}
	name := e.Name(prefix)
	e.Add(&loop.Let{Name: name, Value: e.Simplify(x)})
	return scalar.NewVar(name, x.Type, 0, int64(n-1))
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
		out[i] = e.Var(prefix, x)
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
