package jit

import (
	"math"
	"slices"
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
	for _, o := range slices.Concat(Operations(), LongOperations()) {
		all[o] = sync.OnceValue(func() *template { return newTemplate(scalar.Simplify(o.Expr())) })
	}
	written := func(t dtype.DType, list map[scalar.Op]func(b *builder, x argument) argument) {
		for op, write := range list {
			all[Operation{op, t, t}] = sync.OnceValue(func() *template {
				b := &builder{typ: t}
				root := write(b, argument{value: -1})
				return &template{steps: b.steps, root: root.value}
			})
		}
	}
	written(dtype.F32, functions)
	written(dtype.F64, doubleFunctions)
	return all
})

// templateOf returns the template of an operation, nil where there is none. What
// is of f16 or bf16 is computed in f32 and rounded: for sums, products, quotients
// and roots the same number as from rounding once, as f32 has more than twice the
// digits (S. A. Figueroa, When is double rounding innocuous?, 1995). What is of
// integers of 8 or 16 bits is computed in i32 and cut.
func templateOf(o Operation) *template {
	if make := templates()[o]; make != nil {
		return make()
	}
	wide := Operation{o.Op, widened(o.From), widened(o.To)}
	switch {
	case wide.From == dtype.F32 && o.To.IsInteger():
		wide.To = o.To // which rounds and cuts at once
	case o.Op == scalar.OpConvert && o.From.Size() == 4 && o.From.IsInteger() && o.To.IsFloat():
		return nil // the first rounding may matter
	}
	t := &template{root: -1}
	switch {
	case wide == o, o.From.Size() == 8 && o.To != wide.To: // long kernels round and cut to 32 bits alone
		return nil
	case isNarrow(o.To) && (o.Op == scalar.OpShl || o.Op == scalar.OpShr):
		t = narrowShift(o)
	case o.Op != scalar.OpConvert || wide.From != wide.To:
		make := templates()[wide]
		if make == nil {
			return nil
		}
		t = make()
	}
	if o.To == wide.To || keepsWidth[o.Op] && (o.To.IsFloat() || o.Op != scalar.OpNeg && o.Op != scalar.OpAbs) {
		return t
	}
	b := &builder{typ: dtype.F32, steps: slices.Clone(t.steps)}
	root := b.roundNarrow(argument{value: t.root}, o.To)
	return &template{steps: b.steps, root: root.value}
}

// keepsWidth are operations whose result is an operand but for its sign.
var keepsWidth = map[scalar.Op]bool{
	scalar.OpSelect: true, scalar.OpMin: true, scalar.OpMax: true, scalar.OpNeg: true, scalar.OpAbs: true,
}

// widened returns the type that a narrow one is computed in.
func widened(t dtype.DType) dtype.DType {
	switch {
	case t == dtype.F16 || t == dtype.BF16:
		return dtype.F32
	case isNarrow(t):
		return dtype.I32
	}
	return t
}

// isNarrow reports whether a type is of integers of 8 or 16 bits.
func isNarrow(t dtype.DType) bool { return t.IsInteger() && t.Bits() < 32 }

// narrowShift shifts by a number below the bits of the type, which shifts of i32 are not
// limited to.
func narrowShift(o Operation) *template {
	b := &builder{typ: dtype.I32}
	most := argument{bits: uint64(o.From.Bits() - 1), constant: true}
	root := b.real(o.Op, argument{value: -1}, b.real(scalar.OpAnd, argument{value: -2}, most))
	return &template{steps: b.steps, root: root.value}
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

// wordOf returns the bits of a constant.
func wordOf(x scalar.Expr) uint64 {
	v, _ := x.Value()
	switch {
	case x.Type == dtype.F64:
		return math.Float64bits(v.F)
	case x.Type.IsFloat():
		return uint64(math.Float32bits(float32(v.F)))
	}
	if x.Type.Size() == 8 {
		return uint64(v.I)
	}
	return uint64(uint32(v.I))
}
