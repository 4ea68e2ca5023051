package clike

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

func (w *Writer) load(e scalar.Expr) text {
	a := w.k.Arrays[e.Ref]
	element := w.element(e.Ref, e.Args[0])
	switch {
	case a.Access == loop.Atomic:
		return atom(w.d.AtomicLoad(a.DType, element))
	case a.DType.IsBool():
		return w.fromWord(element)
	}
	return atom(element)
}

func (w *Writer) element(array int, at scalar.Expr) string {
	return w.out.Names[array] + "[" + w.operand(at, loose) + "]"
}

// fromWord returns the bool that a word holds.
func (w *Writer) fromWord(word string) text {
	return text{word + " != " + w.d.Literal(w, scalar.ConstI(dtype.U32, 0)), relation}
}

// storedValue returns a value as an array of its type holds it: a bool as a word.
func storedValue(e scalar.Expr) scalar.Expr {
	if e.Type.IsBool() {
		return scalar.Convert(e, dtype.U32)
	}
	return e
}

// sharesStorage reports whether threads may exchange values through storage arrays: whether a
// kernel reads one that it writes. What is bound for writing may only be read, where it lies
// in one buffer with what is written.
func sharesStorage(k *loop.Kernel) bool {
	written, found := map[int]bool{}, false
	loop.WalkStores(k.Body, func(array int) { written[array] = true })
	read := func(array int) bool {
		a := k.Arrays[array]
		return written[array] && a.Space == loop.Storage && a.Access == loop.ReadWrite
	}
	reads := func(n scalar.Expr) bool { return n.Op == scalar.OpLoad && read(n.Ref) }
	loop.Walk(k.Body, func(s loop.Stmt) {
		l, ok := s.(*loop.LoadVec)
		found = found || ok && read(l.Array) || loop.AnyNode(s, reads)
	})
	return found
}
