package attention

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// fragment is a table in the registers of a workgroup: rows × columns elements in each thread.
type fragment struct {
	name          string
	rows, columns int
}

// each calls visit for each element of a thread.
func (f fragment) each(visit func(i, c int)) {
	for i := range f.rows {
		for c := range f.columns {
			visit(i, c)
		}
	}
}

func (f fragment) register(i, c int) string {
	return f.name + "_" + strconv.Itoa(i*f.columns+c)
}

func (f fragment) at(i, c int) scalar.Expr { return scalar.FreeVar(f.register(i, c), ir.F32) }

// registers declares the fragments and the variables of a kernel.
type registers struct {
	e    *emit.Emitter
	l    *layout
	sums []fragment // accumulators over all blocks
}

// zeros declares a fragment of a table with rows of length elements.
func (r *registers) zeros(prefix string, length int) fragment {
	f := fragment{r.e.Name(prefix), r.l.own, r.l.columns(length)}
	f.each(func(i, c int) { r.e.Add(&loop.Var{Name: f.register(i, c), Init: scalar.ConstF(ir.F32, 0)}) })
	return f
}

// accumulators declares a fragment of accumulators over all blocks.
func (r *registers) accumulators(prefix string, length int) fragment {
	f := r.zeros(prefix, length)
	r.sums = append(r.sums, f)
	return f
}

// assign sets an element.
func (r *registers) assign(f fragment, i, c int, x scalar.Expr) {
	r.e.Add(&loop.Assign{Name: f.register(i, c), Value: x})
}

// vars declares a variable for each row of a thread.
func (r *registers) vars(prefix string, init scalar.Expr) []string {
	out := make([]string, r.l.own)
	for i := range out {
		out[i] = r.e.Name(prefix)
		r.e.Add(&loop.Var{Name: out[i], Init: init})
	}
	return out
}
