package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// width is the number of elements of a vector.
const width = 4

// vectorizer vectorises the loads and stores of a kernel. A kernel sees an array either as vectors or
// as scalars, so the mover first looks at all accesses, then decides, then writes.
type vectorizer struct {
	*emitter
	scalars map[int]bool // tensors with an access that cannot be vectorised
	seen    map[int]bool
}

func newVectorizer(w *emitter) *vectorizer { return &vectorizer{w, map[int]bool{}, map[int]bool{}} }

// vectorizable reports whether the elements of a tensor can form vectors. WGSL has no vectors of types
// of less than 32 bits.
func (m *vectorizer) vectorizable(t *fusion.Tensor) bool {
	half := m.caps.Dialect == dtype.CUDA && (t.DType == ir.F16 || t.DType == ir.BF16)
	return (t.DType == ir.F32 || t.DType == ir.I32 || t.DType == ir.U32 || half) && t.Len()%width == 0
}

// observe records the loads in values.
func (m *vectorizer) observe(values ...scalar.Expr) {
	for _, x := range values {
		scalar.Walk(x, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad && n.Ref >= 0 {
				_, _, ok := m.vectorAt(n.Args[0])
				m.record(n.Ref, ok)
			}
		})
	}
}

// observeWritten records the loads in statements that are already written, as scalars.
func (m *vectorizer) observeWritten(body []loop.Stmt) {
	loop.Walk(body, func(s loop.Stmt) {
		loop.EachNode(s, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad && n.Ref >= 0 {
				m.record(n.Ref, false)
			}
		})
	})
}

// observeStores records stores, in runs of run neighbours.
func (m *vectorizer) observeStores(stores []pendingStore, run int) {
	for s := range slices.Chunk(stores, run) {
		root, _, ok := m.run(s)
		m.record(root.ID, ok)
	}
}

func (m *vectorizer) record(id int, ok bool) {
	m.seen[id] = true
	if !ok || !m.vectorizable(m.p.Tensor(id)) {
		m.scalars[id] = true
	}
}

// decide marks as vectors the tensors whose accesses all are.
func (m *vectorizer) decide() {
	for id := range m.seen {
		if !m.scalars[id] {
			m.wide[id] = width
		}
	}
}

// vectorAt splits an offset into a vector's number and an element of it.
func (m *vectorizer) vectorAt(at scalar.Expr) (vector scalar.Expr, element int, ok bool) {
	rest, ok := m.Simplify(scalar.Mod(at, loop.Int(width))).IntConst()
	if !ok {
		return nil, 0, false
	}
	return m.Simplify(scalar.FloorDiv(at, loop.Int(width))), int(rest), true
}

// run returns the tensor and the first vector of stores to consecutive whole vectors, or false
// if they are not.
func (m *vectorizer) run(stores []pendingStore) (root *fusion.Tensor, first scalar.Expr, ok bool) {
	root, at := m.p.Place(stores[0].t, stores[0].at)
	first, element, ok := m.vectorAt(at)
	if !ok || element != 0 || len(stores)%width != 0 {
		return root, nil, false
	}
	for i, s := range stores[1:] {
		_, next := m.p.Place(s.t, s.at)
		if step, ok := m.Simplify(scalar.Sub(next, at)).IntConst(); !ok || step != int64(i+1) {
			return root, nil, false
		}
	}
	return root, first, true
}

// load emits the vector loads that values need, and replaces the loads in values by their
// elements.
func (m *vectorizer) load(values []scalar.Expr) {
	names := map[string][]string{}
	for i, x := range values {
		values[i] = m.loaded(x, names)
	}
}

func (m *vectorizer) loaded(x scalar.Expr, names map[string][]string) scalar.Expr {
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpLoad || m.wide[n.Ref] == 0 {
			return nil, false
		}
		vector, element, _ := m.vectorAt(n.Args[0])
		vector = m.loaded(vector, names)
		key := scalar.Key(scalar.LoadAt(n.Ref, n.Type, vector))
		if names[key] == nil {
			names[key] = []string{m.name("x"), m.name("x"), m.name("x"), m.name("x")}
			m.add(&loop.LoadVec{Names: names[key], Array: n.Ref, At: vector})
		}
		return scalar.FreeVar(names[key][element], n.Type), true
	})
}

// store stores values in runs of run neighbours, each if it exists. Runs to whole vectors are
// stored together and share one condition outside.
func (m *vectorizer) store(stores []pendingStore, run int, exists []scalar.Expr) {
	values := make([]scalar.Expr, len(stores))
	for i, s := range stores {
		values[i] = s.value
	}
	m.load(values)
	m.add(m.nameAll(values)...)
	for first := 0; first < len(stores); first += run {
		m.storeRun(stores[first:first+run], values[first:first+run], exists)
	}
}

func (m *vectorizer) storeRun(stores []pendingStore, values, exists []scalar.Expr) {
	root, at, ok := m.run(stores)
	if !ok || m.wide[root.ID] == 0 {
		for i, s := range stores {
			m.when(exists[i], func() { m.add(m.emitter.store(s.t, s.at, values[i])...) })
		}
		return
	}
	for i := 0; i < len(stores); i += width {
		s := &loop.StoreVec{Array: root.ID, At: m.Simplify(scalar.Add(at, loop.Int(i/width))), Values: values[i : i+width]}
		m.add(m.guardStatus(root, s)...)
	}
}

// all returns n true conditions.
func all(n int) []scalar.Expr { return slices.Repeat([]scalar.Expr{scalar.ConstBool(true)}, n) }

// seeBlock records the loads and stores of statements. The stores of a vector are in order in
// one list of statements.
func (m *vectorizer) seeBlock(body []loop.Stmt) {
	next := map[int]int{} // the next element of a vector to be stored
	for _, s := range body {
		loop.MapExprs(shallow(s), func(x scalar.Expr) scalar.Expr {
			m.observe(x)
			return x
		})
		switch s := s.(type) {
		case *loop.Store:
			_, element, ok := m.vectorAt(s.At)
			m.record(s.Array, ok && element == next[s.Array])
			next[s.Array] = (element + 1) % width
		case *loop.AtomicOp:
			m.record(s.Array, false)
		case *loop.For:
			m.seeBlock(s.Body)
		case *loop.If:
			m.seeBlock(s.Then)
			m.seeBlock(s.Else)
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

// allWide reports whether all accesses that vary in a loop are vectors.
func (m *vectorizer) allWide(f *loop.For) bool {
	changing, wide := []string{f.Var}, true
	loop.Walk(f.Body, func(s loop.Stmt) { changing = append(append(changing, loop.Defines(s)...), loop.Assigns(s)...) })
	look := func(array int, at scalar.Expr) {
		scalar.Walk(at, func(n scalar.Expr) {
			if n.Op == scalar.OpVar && slices.Contains(changing, n.Name) && array >= 0 {
				wide = wide && m.wide[array] == width
			}
		})
	}
	loop.MapExprs(f.Body, func(x scalar.Expr) scalar.Expr {
		scalar.Walk(x, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad {
				look(n.Ref, n.Args[0])
			}
		})
		return x
	})
	loop.Walk(f.Body, func(s loop.Stmt) {
		if s, is := s.(*loop.Store); is {
			look(s.Array, s.At)
		}
	})
	return wide
}

// block writes statements with vectors for their elements. A vector is loaded at its first
// element and stored at its last.
func (m *vectorizer) block(body []loop.Stmt) []loop.Stmt {
	outer := m.body
	m.body = nil
	names, stored := map[string][]string{}, map[int][]scalar.Expr{}
	for _, s := range body {
		switch s := s.(type) {
		case *loop.For:
			m.add(&loop.For{Var: s.Var, Start: s.Start, End: s.End, Step: s.Step, Unroll: s.Unroll, Body: m.block(s.Body)})
			continue
		case *loop.If:
			m.add(&loop.If{Cond: m.loaded(s.Cond, names), Then: m.block(s.Then), Else: m.block(s.Else)})
			continue
		}
		if _, is := s.(*loop.Barrier); is {
			clear(names) // other threads may have stored
		}
		s = loop.MapExprs([]loop.Stmt{s}, func(x scalar.Expr) scalar.Expr { return m.loaded(x, names) })[0]
		if store, is := s.(*loop.Store); is && m.wide[store.Array] == width {
			m.storeElement(store, stored)
			continue
		}
		m.add(s)
	}
	body, m.body = m.body, outer
	return body
}

// storeElement collects the values of a vector and stores it with the last one: no variable
// changes between the stores of a point.
func (m *vectorizer) storeElement(s *loop.Store, stored map[int][]scalar.Expr) {
	values := append(stored[s.Array], s.Value)
	if len(values) == width {
		vector, _, _ := m.vectorAt(s.At)
		m.add(&loop.StoreVec{Array: s.Array, At: vector, Values: values})
		values = nil
	}
	stored[s.Array] = values
}
