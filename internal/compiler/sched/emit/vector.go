package emit

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// VectorWidth is the number of elements of a vector.
const VectorWidth = 4

// Vectorizer vectorises the loads and stores of a kernel. A kernel sees an array either as vectors or
// as scalars, so the vectorizer first looks at all accesses, then decides, then writes.
type Vectorizer struct {
	*Emitter
	Scalars map[int]bool // tensors with an access that cannot be vectorised
	seen    map[int]bool
}

// NewVectorizer returns a vectorizer of the kernel of w.
func NewVectorizer(w *Emitter) *Vectorizer { return &Vectorizer{w, map[int]bool{}, map[int]bool{}} }

// vectorizable reports whether the elements of a tensor can form vectors. WGSL has no vectors of types
// of less than 32 bits.
func (m *Vectorizer) vectorizable(t *fusion.Tensor) bool {
	return StoresAlone(m.Caps, t.DType) && t.Len()%VectorWidth == 0
}

// Observe records the loads in values.
func (m *Vectorizer) Observe(values ...scalar.Expr) {
	for _, x := range values {
		scalar.Walk(x, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad && n.Ref >= 0 {
				_, _, ok := m.vectorAt(n.Args[0])
				m.record(n.Ref, ok)
			}
		})
	}
}

// ObserveWritten records the loads, stores and copies in the statements that are already written, here and in the blocks
// around, and those by tensor maps, as scalars.
func (m *Vectorizer) ObserveWritten() {
	for _, b := range m.TensorMaps {
		m.record(b.Array, false)
	}
	for _, body := range append(slices.Clone(m.Around()), m.Body) {
		m.observeBody(body)
	}
}

func (m *Vectorizer) observeBody(body []loop.Stmt) {
	loop.Walk(body, func(s loop.Stmt) {
		switch s := s.(type) {
		case *loop.CopyAsync:
			m.record(s.From, false)
		case *loop.Store:
			if s.Array >= 0 {
				m.record(s.Array, false)
			}
		}
		loop.EachNode(s, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad && n.Ref >= 0 {
				m.record(n.Ref, false)
			}
		})
	})
}

// ObserveStores records stores, in runs of run neighbours, and the loads in their values.
func (m *Vectorizer) ObserveStores(stores []PendingStore, run int) {
	for _, s := range stores {
		m.Observe(s.Value)
	}
	for s := range slices.Chunk(stores, run) {
		root, _, ok := m.run(s)
		m.record(root.ID, ok)
	}
}

func (m *Vectorizer) record(id int, ok bool) {
	m.seen[id] = true
	if !ok || !m.vectorizable(m.Partition.Tensor(id)) {
		m.Scalars[id] = true
	}
}

// Decide marks as vectors the tensors whose accesses all are.
func (m *Vectorizer) Decide() {
	for id := range m.seen {
		if !m.Scalars[id] {
			m.Widths[id] = VectorWidth
		}
	}
}

// vectorAt splits an offset into a vector's number and an element of it.
func (m *Vectorizer) vectorAt(at scalar.Expr) (vector scalar.Expr, element int, ok bool) {
	rest, ok := m.Simplify(scalar.Mod(at, loop.Int(VectorWidth))).IntConst()
	if !ok {
		return nil, 0, false
	}
	return m.Simplify(scalar.FloorDiv(at, loop.Int(VectorWidth))), int(rest), true
}

// run returns the tensor and the first vector of stores to consecutive whole vectors, or false
// if they are not.
func (m *Vectorizer) run(stores []PendingStore) (root *fusion.Tensor, first scalar.Expr, ok bool) {
	root, at := m.Partition.Place(stores[0].Tensor, stores[0].At)
	first, element, ok := m.vectorAt(at)
	if !ok || element != 0 || len(stores)%VectorWidth != 0 {
		return root, nil, false
	}
	for i, s := range stores[1:] {
		_, next := m.Partition.Place(s.Tensor, s.At)
		if step, ok := m.Simplify(scalar.Sub(next, at)).IntConst(); !ok || step != int64(i+1) {
			return root, nil, false
		}
	}
	return root, first, true
}

// Load emits the vector loads that values need, and replaces the loads in values by their
// elements.
func (m *Vectorizer) Load(values []scalar.Expr) {
	names := map[string][]string{}
	for i, x := range values {
		values[i] = m.loaded(x, names)
	}
}

// LoadIn has a loop without nested statements load vectors for elements, of tensors that no other statement accesses.
func (m *Vectorizer) LoadIn(f *loop.For) {
	body, names := f.Body, map[string][]string{}
	f.Body = nil
	m.ObserveWritten()
	for _, s := range body {
		loop.EachExpr(s, func(x scalar.Expr) { m.Observe(x) })
	}
	m.Decide()
	f.Body = m.Nested(func() {
		for _, s := range body {
			m.Add(loop.MapExprs([]loop.Stmt{s}, func(x scalar.Expr) scalar.Expr { return m.loaded(x, names) })...)
		}
	})
}

func (m *Vectorizer) loaded(x scalar.Expr, names map[string][]string) scalar.Expr {
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpLoad || m.Widths[n.Ref] == 0 {
			return nil, false
		}
		vector, element, _ := m.vectorAt(n.Args[0])
		vector = m.loaded(vector, names)
		key := scalar.Key(scalar.LoadAt(n.Ref, n.Type, vector))
		if names[key] == nil {
			names[key] = []string{m.Name("x"), m.Name("x"), m.Name("x"), m.Name("x")}
			m.Add(&loop.LoadVec{Names: names[key], Array: n.Ref, At: vector})
		}
		return scalar.FreeVar(names[key][element], n.Type), true
	})
}

// Store stores values in runs of run neighbours, each if it exists. Runs to whole vectors are
// stored together and share one condition outside.
func (m *Vectorizer) Store(stores []PendingStore, run int, exists []scalar.Expr) {
	values := make([]scalar.Expr, len(stores))
	for i, s := range stores {
		values[i] = s.Value
	}
	m.Load(values)
	m.Add(m.NameAll(values)...)
	for first := 0; first < len(stores); first += run {
		m.storeRun(stores[first:first+run], values[first:first+run], exists)
	}
}

func (m *Vectorizer) storeRun(stores []PendingStore, values, exists []scalar.Expr) {
	root, at, ok := m.run(stores)
	if !ok || m.Widths[root.ID] == 0 {
		for i, s := range stores {
			m.When(exists[i], func() { m.Add(m.Emitter.Store(s.Tensor, s.At, values[i])...) })
		}
		return
	}
	for i := 0; i < len(stores); i += VectorWidth {
		s := &loop.StoreVec{Array: root.ID, At: m.Simplify(scalar.Add(at, loop.Int(i/VectorWidth))), Values: values[i : i+VectorWidth]}
		m.Add(m.GuardStatus(root, s)...)
	}
}

// Always returns n true conditions.
func Always(n int) []scalar.Expr { return slices.Repeat([]scalar.Expr{scalar.ConstBool(true)}, n) }

// SeeBlock records the loads and stores of statements. The stores of a vector are in order in
// one list of statements.
func (m *Vectorizer) SeeBlock(body []loop.Stmt) {
	next := map[int]int{} // the next element of a vector to be stored
	for _, s := range body {
		loop.MapExprs(shallow(s), func(x scalar.Expr) scalar.Expr {
			m.Observe(x)
			return x
		})
		switch s := s.(type) {
		case *loop.Store:
			_, element, ok := m.vectorAt(s.At)
			m.record(s.Array, ok && element == next[s.Array])
			next[s.Array] = (element + 1) % VectorWidth
		case *loop.AtomicOp:
			m.record(s.Array, false)
		case *loop.For:
			m.SeeBlock(s.Body)
		case *loop.If:
			m.SeeBlock(s.Then)
			m.SeeBlock(s.Else)
		}
	}
	for id, element := range next {
		m.record(id, element == 0)
	}
}

// shallow returns a statement without its nested statements.
func shallow(s loop.Stmt) []loop.Stmt {
	switch s := s.(type) {
	case *loop.For:
		return []loop.Stmt{&loop.For{Var: s.Var, Start: s.Start, End: s.End, Step: s.Step}}
	case *loop.If:
		return []loop.Stmt{&loop.If{Cond: s.Cond}}
	}
	return []loop.Stmt{s}
}

// AllWide reports whether all accesses of statements that vary in a loop, or with a variable outside of loops, are vectors
// or loads that a vector's results share, as of one scale for four channels.
func (m *Vectorizer) AllWide(body []loop.Stmt, name string) bool {
	varying, stores := map[string]bool{name: true}, 0
	loads := map[scalar.Expr]int{} // that are no vectors: how often each is
	varies := func(x scalar.Expr) bool {
		return scalar.Any(x, func(n scalar.Expr) bool { return n.Op == scalar.OpVar && varying[n.Name] })
	}
	narrow := func(array int, at scalar.Expr) bool {
		return array >= 0 && m.Widths[array] != VectorWidth && varies(at)
	}
	loop.Walk(body, func(s loop.Stmt) {
		if f, is := s.(*loop.For); is {
			varying[f.Var] = true
			loop.Walk(f.Body, func(s loop.Stmt) {
				for _, assigned := range loop.Assigns(s) {
					varying[assigned] = true
				}
			})
		}
		loop.MapExprs(shallow(s), func(x scalar.Expr) scalar.Expr {
			scalar.Walk(x, func(n scalar.Expr) {
				if n.Op == scalar.OpLoad && narrow(n.Ref, n.Args[0]) {
					loads[m.Simplifier.Shared(n)]++
				}
			})
			for _, defined := range append(loop.Defines(s), loop.Assigns(s)...) {
				varying[defined] = varying[defined] || varies(x)
			}
			return x
		})
		if s, is := s.(*loop.Store); is && narrow(s.Array, s.At) {
			stores++
		}
	})
	all := 0
	for _, n := range loads {
		all += n
	}
	return stores == 0 && all >= VectorWidth*len(loads)
}

// Block writes statements with vectors for their elements. A vector is loaded at its first
// element and stored at its last.
func (m *Vectorizer) Block(body []loop.Stmt) []loop.Stmt {
	outer := m.Body
	m.Body = nil
	names, stored := map[string][]string{}, map[int][]scalar.Expr{}
	for _, s := range body {
		switch s := s.(type) {
		case *loop.For:
			m.Add(&loop.For{Var: s.Var, Start: s.Start, End: s.End, Step: s.Step, Unroll: s.Unroll, Body: m.Block(s.Body)})
			continue
		case *loop.If:
			m.Add(&loop.If{Cond: m.loaded(s.Cond, names), Then: m.Block(s.Then), Else: m.Block(s.Else)})
			continue
		}
		if _, is := s.(*loop.Barrier); is {
			clear(names) // other threads may have stored
		}
		s = loop.MapExprs([]loop.Stmt{s}, func(x scalar.Expr) scalar.Expr { return m.loaded(x, names) })[0]
		if store, is := s.(*loop.Store); is && m.Widths[store.Array] == VectorWidth {
			m.storeElement(store, stored)
			continue
		}
		m.Add(s)
	}
	body, m.Body = m.Body, outer
	return body
}

// storeElement collects the values of a vector and stores it with the last one: no variable
// changes between the stores of a point.
func (m *Vectorizer) storeElement(s *loop.Store, stored map[int][]scalar.Expr) {
	values := append(stored[s.Array], s.Value)
	if len(values) == VectorWidth {
		vector, _, _ := m.vectorAt(s.At)
		m.Add(&loop.StoreVec{Array: s.Array, At: vector, Values: values})
		values = nil
	}
	stored[s.Array] = values
}
