package jit

import "github.com/rlx-go/rlx/ir/scalar"

// Has reports whether kernels can be made of an operation.
func Has(o Operation) bool { return templateOf(o) != nil }

// Apply adds an operation; false where kernels cannot be made of it.
func (k *Kernel) Apply(o Operation, args ...Value) (Value, bool) {
	t := templateOf(o)
	if t == nil {
		return noValue, false
	}
	values := make([]Value, len(t.steps))
	for i, s := range t.steps {
		made := s
		made.args = make([]argument, len(s.args))
		for j, a := range s.args {
			switch {
			case a.constant:
			case a.value < 0: // an operand
				a.value = args[-a.value-1]
			default:
				a.value = values[a.value]
			}
			if bits, ok := k.consts[a.value]; ok && !a.constant {
				a = argument{bits: bits, constant: true}
			}
			made.args[j] = a
		}
		made.dst = k.value(s.typ)
		values[i] = k.step(k.fold(made))
	}
	if t.root < 0 {
		return args[-t.root-1], true
	}
	return values[t.root], true
}

// fold puts a constant operand last, and computes the number of places that
// bits are moved by, which shifts reduce.
func (k *Kernel) fold(s step) step {
	if s.kind != apply || len(s.args) != 2 {
		return s
	}
	a, b := &s.args[0], &s.args[1]
	switch s.op {
	case scalar.OpAdd, scalar.OpMul, scalar.OpAnd, scalar.OpOr, scalar.OpXor:
		if a.constant && !b.constant {
			*a, *b = *b, *a
		}
	}
	if s.op == scalar.OpAnd && a.constant && b.constant && s.typ.IsInteger() {
		k.setConst(s.dst, a.bits&b.bits)
		return step{op: scalar.OpBitcast, typ: s.typ, from: s.typ, args: []argument{{bits: a.bits & b.bits, constant: true}}, dst: s.dst}
	}
	return s
}

// setConst notes that a value is a constant number.
func (k *Kernel) setConst(v Value, bits uint64) {
	if k.consts == nil {
		k.consts = map[Value]uint64{}
	}
	k.consts[v] = bits
}

// Strides returns how many steps an operation takes, 0 where [Has] is false.
func Steps(o Operation) int {
	if t := templateOf(o); t != nil {
		return len(t.steps)
	}
	return 0
}
