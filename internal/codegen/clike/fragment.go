package clike

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// Fragments describes the fragment statements of a language. Operands are at an index of
// a shared array.
type Fragments struct {
	Zero   func(name string) string
	Load   func(name string, t dtype.DType, array, at string, load *loop.FragmentLoad) []string
	MulAdd func(sum, a, b string) string
	Store  func(name, array, at string, stride int) string
}

// isFragment reports whether a statement is one of fragments.
func isFragment(s loop.Stmt) bool {
	switch s.(type) {
	case *loop.FragmentZero, *loop.FragmentLoad, *loop.FragmentMulAdd, *loop.FragmentStore:
		return true
	}
	return false
}

// fragment writes a fragment statement.
func (w statements) fragment(s loop.Stmt) {
	d := w.d.Fragments
	switch s := s.(type) {
	case *loop.FragmentZero:
		w.line(d.Zero(w.name(s.Name)))
	case *loop.FragmentLoad:
		at := w.operand(w.bind(s.At)[0], loose)
		for _, line := range d.Load(w.name(s.Name), w.k.Arrays[s.Array].DType, w.out.Names[s.Array], at, s) {
			w.line(line)
		}
	case *loop.FragmentMulAdd:
		w.line(d.MulAdd(w.name(s.Sum), w.name(s.A), w.name(s.B)))
	case *loop.FragmentStore:
		at := w.operand(w.bind(s.At)[0], loose)
		w.line(d.Store(w.name(s.Name), w.out.Names[s.Array], at, s.Stride))
	}
}
