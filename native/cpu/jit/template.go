package jit

import (
	"math"
	"sync"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// template is what an operation takes: its steps, in which values from 0 up are
// earlier ones and those below 0 operands, from -1 down.
type template struct {
	steps []step
	root  Value
}

// templates are made when they are needed first.
var templates = sync.OnceValue(func() map[Operation]func() *template {
	all := map[Operation]func() *template{}
	for _, o := range Operations() {
		all[o] = sync.OnceValue(func() *template { return newTemplate(scalar.Simplify(o.Expr())) })
	}
	for op, write := range functions {
		all[Operation{op, dtype.F32, dtype.F32}] = sync.OnceValue(func() *template {
			b := &builder{}
			root := write(b, argument{value: -1})
			return &template{steps: b.steps, root: root.value}
		})
	}
	return all
})

func templateOf(o Operation) *template {
	if make := templates()[o]; make != nil {
		return make()
	}
	return nil
}

func newTemplate(root scalar.Expr) *template {
	t := &template{}
	at := map[scalar.Expr]Value{}
	scalar.Walk(root, func(x scalar.Expr) {
		switch x.Op {
		case scalar.OpConst:
			return
		case scalar.OpArg:
			at[x] = Value(-x.Ref - 1)
			return
		}
		s := step{op: x.Op, typ: x.Type, from: x.Args[len(x.Args)-1].Type}
		for _, a := range x.Args {
			if a.Op == scalar.OpConst {
				s.args = append(s.args, argument{bits: wordOf(a), constant: true})
			} else {
				s.args = append(s.args, argument{value: at[a]})
			}
		}
		at[x] = Value(len(t.steps))
		t.steps = append(t.steps, s)
	})
	t.root = at[root]
	return t
}

// wordOf returns what a constant is in 32 bits.
func wordOf(x scalar.Expr) uint32 {
	v, _ := x.Value()
	if x.Type.IsFloat() {
		return math.Float32bits(float32(v.F))
	}
	return uint32(v.I)
}
