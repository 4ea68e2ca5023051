package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// width is how many elements a vector has.
const width = 4

// mover writes loads and stores of a kernel that may go by vectors. An array is of
// vectors in the whole kernel or not at all, so it first has to see all accesses.
type mover struct {
	*writer
	scalars map[int]bool // tensors that some access does not go to by vectors
	seen    map[int]bool
}

func newMover(w *writer) *mover { return &mover{w, map[int]bool{}, map[int]bool{}} }

// wider reports whether elements of a tensor can be vectors at all. WGSL has none of
// less than 32 bits.
func (m *mover) wider(t *fusion.Tensor) bool {
	half := m.caps.Dialect == dtype.CUDA && (t.DType == ir.F16 || t.DType == ir.BF16)
	return (t.DType == ir.F32 || t.DType == ir.I32 || t.DType == ir.U32 || half) && t.Len()%width == 0
}

// see notes the loads in some values.
func (m *mover) see(values ...scalar.Expr) {
	for _, x := range values {
		scalar.Walk(x, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad && n.Ref >= 0 {
				_, _, ok := m.vectorAt(n.Args[0])
				m.note(n.Ref, ok)
			}
		})
	}
}

// keep notes the loads in statements that were written before: they stay what they are.
func (m *mover) keep(body []loop.Stmt) {
	loop.Walk(body, func(s loop.Stmt) {
		loop.EachNode(s, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad && n.Ref >= 0 {
				m.note(n.Ref, false)
			}
		})
	})
}

// seeStores notes stores, in runs of so many neighbours.
func (m *mover) seeStores(stores []kept, run int) {
	for s := range slices.Chunk(stores, run) {
		root, _, ok := m.run(s)
		m.note(root.ID, ok)
	}
}

func (m *mover) note(id int, ok bool) {
	m.seen[id] = true
	if !ok || !m.wider(m.p.Tensor(id)) {
		m.scalars[id] = true
	}
}

// settle makes vectors of what can be.
func (m *mover) settle() {
	for id := range m.seen {
		if !m.scalars[id] {
			m.wide[id] = width
		}
	}
}

// vectorAt returns which vector an element is in, and which of its elements it is.
func (m *mover) vectorAt(at scalar.Expr) (vector scalar.Expr, element int, ok bool) {
	rest, ok := m.Simplify(scalar.Mod(at, loop.Int(width))).IntConst()
	if !ok {
		return nil, 0, false
	}
	return m.Simplify(scalar.FloorDiv(at, loop.Int(width))), int(rest), true
}

// run reports whether stores go to whole vectors one after the other, and to the first
// of which.
func (m *mover) run(stores []kept) (root *fusion.Tensor, first scalar.Expr, ok bool) {
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

// load names the vectors that values are made of, and replaces loads by their elements.
func (m *mover) load(values []scalar.Expr) {
	names := map[string][]string{}
	for i, x := range values {
		values[i] = m.loaded(x, names)
	}
}

func (m *mover) loaded(x scalar.Expr, names map[string][]string) scalar.Expr {
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

// store stores values in runs of so many neighbours, each where it exists: those of
// whole vectors do together.
func (m *mover) store(stores []kept, run int, exists []scalar.Expr) {
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

func (m *mover) storeRun(stores []kept, values, exists []scalar.Expr) {
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

// all says of n elements that they exist.
func all(n int) []scalar.Expr { return slices.Repeat([]scalar.Expr{scalar.ConstBool(true)}, n) }
