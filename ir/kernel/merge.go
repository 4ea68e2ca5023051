package kernel

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Window is where an array begins in a larger one, in bytes.
type Window struct{ Array, Offset int }

// MergeArrays returns the kernel with some of its storage arrays, all of 32-bit
// elements and width 1, replaced by one array that they lie in, of the given
// size in bytes. It takes the place of the first of them. This is how a kernel
// that touches more tensors than a device binds stays one kernel: tensors that
// share an arena share a binding.
func MergeArrays(k *Kernel, windows []Window, bytes int) (*Kernel, error) {
	m := &merger{Simplifier: scalar.NewSimplifier(), k: k, base: map[int]int{}, number: make([]int, len(k.Arrays))}
	m.whole = Array{Width: 1, Len: bytes / 4, Space: Storage}
	for i, w := range windows {
		a := k.Arrays[w.Array]
		if DeviceSize(a.DType) != 4 || a.Width != 1 || a.Space != Storage || a.Access == Atomic {
			return nil, ir.Errorf(ir.ErrUnsupported, "kernel %s has too many bindings, and array %s cannot share one", k.Name, a.Name)
		}
		m.base[w.Array] = w.Offset / 4
		if i == 0 {
			m.first, m.whole.DType, m.whole.Name = w.Array, a.DType, "arena_"+a.Name
		}
		if a.DType != m.whole.DType || a.DType == ir.Bool {
			m.whole.DType = ir.U32
		}
		m.whole.Access = max(m.whole.Access, a.Access)
	}
	return m.merge(), nil
}

type merger struct {
	*scalar.Simplifier
	k      *Kernel
	base   map[int]int // by array: first element in the whole
	first  int
	whole  Array
	number []int // new place of each array
}

func (m *merger) merge() *Kernel {
	out := *m.k
	out.Arrays = nil
	for i, a := range m.k.Arrays {
		if _, ok := m.base[i]; ok {
			if i != m.first {
				continue
			}
			a = m.whole
		}
		m.number[i] = len(out.Arrays)
		out.Arrays = append(out.Arrays, a)
	}
	for i := range m.base {
		m.number[i] = m.number[m.first]
	}
	out.Body = walkExprs(m.k.Body, m.expr)
	m.stores(out.Body)
	walkArrays(out.Body, func(array *int) { *array = m.number[*array] })
	return &out
}

func (m *merger) expr(x scalar.Expr) scalar.Expr {
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpLoad {
			return nil, false
		}
		at := m.expr(n.Args[0])
		base, ok := m.base[n.Ref]
		if !ok {
			return scalar.LoadAt(m.number[n.Ref], n.Type, at), true
		}
		at = m.Simplify(scalar.Add(at, integer(base)))
		return fromWord(scalar.LoadAt(m.number[n.Ref], m.whole.DType, at), n.Type), true
	})
}

// stores moves the stores into the whole; their arrays still have their old
// numbers.
func (m *merger) stores(body []Stmt) {
	for _, s := range body {
		switch s := s.(type) {
		case *Store:
			if base, ok := m.base[s.Array]; ok {
				s.At = m.Simplify(scalar.Add(s.At, integer(base)))
				s.Value = toWord(s.Value, m.whole.DType)
			}
		case *For:
			m.stores(s.Body)
		case *If:
			m.stores(s.Then)
			m.stores(s.Else)
		}
	}
}

// fromWord reads a 32-bit word as an element of a type, toWord the other way.
func fromWord(word scalar.Expr, d ir.DType) scalar.Expr {
	switch {
	case word.Type == d:
		return word
	case d == ir.Bool:
		return scalar.Ne(word, scalar.ConstI(ir.U32, 0))
	}
	return scalar.Bitcast(word, d)
}

func toWord(x scalar.Expr, d ir.DType) scalar.Expr {
	switch {
	case x.Type == d:
		return x
	case x.Type == ir.Bool:
		return scalar.Convert(x, d)
	}
	return scalar.Bitcast(x, d)
}
