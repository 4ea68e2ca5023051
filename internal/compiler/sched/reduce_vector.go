package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// byVectors reports whether it is worth trying to have threads go through rows by vectors:
// rows that are too long for registers, of whole vectors, several for each thread. WGSL
// has no vectors of 16 bits, whose single elements are what costs.
func (s rowsShape) byVectors(g *fusion.Group, dialect dtype.Dialect) bool {
	n := fusion.Product(g.Inner)
	return dialect == dtype.CUDA && s.chunks == 0 && !s.rowsFirst && n%width == 0 && n >= longRow*width*s.lanes &&
		width*g.Weight() <= maxWrittenOut
}

// vectors makes vectors of the elements that the loops of a kernel go through, or reports
// that some of them do not lie so: neighbours would then be read one by one, each warp
// reading four times as many sectors.
func (e *emitter) vectors(body []loop.Stmt) (out []loop.Stmt, ok bool) {
	m := newMover(&writer{emitter: e})
	m.seeBlock(body)
	m.settle()
	for _, s := range body {
		if f, is := s.(*loop.For); is && !m.allWide(f) {
			return nil, false
		}
	}
	return m.block(body), true
}

// seeBlock notes all loads of some statements, and stores: those of a vector stand in
// order, each in the same list of statements.
func (m *mover) seeBlock(body []loop.Stmt) {
	next := map[int]int{} // the element of a vector that is stored next
	for _, s := range body {
		loop.MapExprs(shallow(s), func(x scalar.Expr) scalar.Expr {
			m.see(x)
			return x
		})
		switch s := s.(type) {
		case *loop.Store:
			_, element, ok := m.vectorAt(s.At)
			m.note(s.Array, ok && element == next[s.Array])
			next[s.Array] = (element + 1) % width
		case *loop.AtomicOp:
			m.note(s.Array, false)
		case *loop.For:
			m.seeBlock(s.Body)
		case *loop.If:
			m.seeBlock(s.Then)
			m.seeBlock(s.Else)
		}
	}
	for id, element := range next {
		m.note(id, element == 0)
	}
}

// shallow is a statement without those inside.
func shallow(s loop.Stmt) []loop.Stmt {
	switch s := s.(type) {
	case *loop.For:
		return []loop.Stmt{&loop.For{Var: s.Var, Start: s.Start, End: s.End, Step: s.Step}}
	case *loop.If:
		return []loop.Stmt{&loop.If{Cond: s.Cond}}
	}
	return []loop.Stmt{s}
}

// allWide reports whether what changes place from turn to turn of a loop is read and
// stored by vectors.
func (m *mover) allWide(f *loop.For) bool {
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

// block writes statements with vectors in the place of their elements. A vector is read
// where its first element was, and stored where its last one was.
func (m *mover) block(body []loop.Stmt) []loop.Stmt {
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
			clear(names) // others may have stored
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

// storeElement keeps the value of an element, and with the last one stores the vector: no
// variable changes between the stores of a point.
func (m *mover) storeElement(s *loop.Store, stored map[int][]scalar.Expr) {
	values := append(stored[s.Array], s.Value)
	if len(values) == width {
		vector, _, _ := m.vectorAt(s.At)
		m.add(&loop.StoreVec{Array: s.Array, At: vector, Values: values})
		values = nil
	}
	stored[s.Array] = values
}
