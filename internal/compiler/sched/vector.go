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
	*writer
	scalars map[int]bool // tensors with an access that cannot be vectorised
	seen    map[int]bool
}

func newVectorizer(w *writer) *vectorizer { return &vectorizer{w, map[int]bool{}, map[int]bool{}} }

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

// observeWritten records the loads and copies in statements that are already written, and those by
// tensor maps, as scalars.
func (m *vectorizer) observeWritten(body []loop.Stmt) {
	for _, b := range m.boxes {
		m.record(b.Array, false)
	}
	loop.Walk(body, func(s loop.Stmt) {
		if c, ok := s.(*loop.CopyAsync); ok {
			m.record(c.From, false)
		}
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
