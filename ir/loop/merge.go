package loop

import (
	"slices"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Window is the start of an array in a larger one: the index of its first element, which may
// be computed from variables of the kernel.
type Window struct {
	Array int
	First scalar.Expr
}

// Span is a larger array that contains several arrays of a kernel. With Bytes 0 it is as long
// as its binding.
type Span struct {
	Windows []Window
	Bytes   int
}

// SpanError says why arrays of a kernel cannot share a binding.
type SpanError struct {
	Kernel string
	Array  string // the array that cannot, "" if the span is too large
	Bytes  int    // of the span
}

// Error names the kernel and the obstacle.
func (e *SpanError) Error() string {
	why := format.Sprintf("%d bytes are too many for one", e.Bytes)
	if e.Array != "" {
		why = "array " + e.Array + " cannot share one"
	}
	return "kernel " + e.Kernel + " has too many bindings, and " + why
}

// MergeArrays replaces storage arrays of a kernel, all of 32-bit elements and width 1, by the
// spans that contain them. A span replaces the first of its arrays. It keeps a kernel with more
// tensors than bindings in one piece: tensors in one arena share a binding. The error is a
// *SpanError.
func MergeArrays(k *Kernel, spans []Span) (*Kernel, error) {
	m := &merger{Simplifier: scalar.NewSimplifier(), k: k, base: map[int]scalar.Expr{}, span: map[int]int{}, number: make([]int, len(k.Arrays))}
	copied := copiedArrays(k)
	for i, s := range spans {
		if s.Bytes/4 > MaxElements {
			return nil, &SpanError{Kernel: k.Name, Bytes: s.Bytes}
		}
		whole := Array{Width: 1, Len: s.Bytes / 4, Space: Storage}
		for j, w := range s.Windows {
			a := k.Arrays[w.Array]
			if DeviceSize(a.DType) != 4 || a.Width != 1 || a.Space != Storage || a.Access == Atomic || copied[w.Array] {
				return nil, &SpanError{Kernel: k.Name, Array: a.Name, Bytes: s.Bytes}
			}
			m.base[w.Array], m.span[w.Array] = w.First, i
			if j == 0 {
				whole.DType, whole.Name = a.DType, "arena_"+a.Name
			}
			if a.DType != whole.DType || a.DType == dtype.Bool {
				whole.DType = dtype.U32
			}
			whole.Access = max(whole.Access, a.Access)
		}
		m.spans = append(m.spans, whole)
	}
	return m.merge(), nil
}

// copiedArrays returns the storage arrays that asynchronous copies read; they must keep the
// type of the destination.
func copiedArrays(k *Kernel) map[int]bool {
	out := map[int]bool{}
	for _, b := range k.TensorMaps {
		out[b.Array] = true
	}
	Walk(k.Body, func(s Stmt) {
		if s, ok := s.(*CopyAsync); ok {
			out[s.From] = true
		}
	})
	return out
}

// renumberTensorMaps returns tensor maps with their arrays renumbered.
func renumberTensorMaps(list []TensorMap, place []int) []TensorMap {
	out := slices.Clone(list)
	for i := range out {
		out[i].Array = place[out[i].Array]
	}
	return out
}

type merger struct {
	*scalar.Simplifier
	k      *Kernel
	base   map[int]scalar.Expr // by array: offset in its span
	span   map[int]int         // by array: its span
	spans  []Array             // by span
	number []int               // new index of each array
}

func (m *merger) merge() *Kernel {
	out := *m.k
	out.Arrays = nil
	place := make([]int, len(m.spans)) // index of each span, plus 1
	for i, a := range m.k.Arrays {
		span, ok := m.span[i]
		switch {
		case !ok:
			m.number[i] = len(out.Arrays)
			out.Arrays = append(out.Arrays, a)
		case place[span] == 0:
			out.Arrays = append(out.Arrays, m.spans[span])
			place[span] = len(out.Arrays)
			fallthrough
		default:
			m.number[i] = place[span] - 1
		}
	}
	out.Body = MapExprs(m.k.Body, m.expr)
	m.stores(out.Body)
	WalkArrays(out.Body, func(array *int) { *array = m.number[*array] })
	out.TensorMaps = renumberTensorMaps(m.k.TensorMaps, m.number)
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
		at = m.Simplify(scalar.Add(at, base))
		return fromWord(scalar.LoadAt(m.number[n.Ref], m.spans[m.span[n.Ref]].DType, at), n.Type), true
	})
}

// stores redirects the stores to the spans; arrays still have their old numbers.
func (m *merger) stores(body []Stmt) {
	Walk(body, func(s Stmt) {
		store, ok := s.(*Store)
		if !ok {
			return
		}
		if base, ok := m.base[store.Array]; ok {
			store.At = m.Simplify(scalar.Add(store.At, base))
			store.Value = toWord(store.Value, m.spans[m.span[store.Array]].DType)
		}
	})
}

// fromWord converts a 32-bit word to an element of a type, toWord the other way.
func fromWord(word scalar.Expr, d dtype.DType) scalar.Expr {
	switch {
	case word.Type == d:
		return word
	case d == dtype.Bool:
		return scalar.Ne(word, scalar.ConstI(dtype.U32, 0))
	}
	return scalar.Bitcast(word, d)
}

func toWord(x scalar.Expr, d dtype.DType) scalar.Expr {
	switch {
	case x.Type == d:
		return x
	case x.Type == dtype.Bool:
		return scalar.Convert(x, d)
	}
	return scalar.Bitcast(x, d)
}
