package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// byVectors reports whether vector loads are worth a try: rows longer than registers, of whole
// vectors, several per thread. CUDA only: WGSL has no vectors of 16-bit elements, which would
// gain most.
func (s rowLayout) byVectors(g *fusion.Group, dialect dtype.Dialect) bool {
	n := fusion.Product(g.Inner)
	return dialect == dtype.CUDA && s.chunks == 0 && !s.rowsFirst && n%width == 0 && n >= longRow*width*s.lanes &&
		width*g.Weight() <= maxUnrolledWeight
}

// vectors vectorises the loops of a kernel, or reports false where an access is not contiguous:
// its elements would be loaded one by one, in four times as many sectors per warp.
func (e *emitter) vectors(body []loop.Stmt) (out []loop.Stmt, ok bool) {
	m := newVectorizer(&writer{emitter: e})
	m.seeBlock(body)
	m.decide()
	for _, s := range body {
		if f, is := s.(*loop.For); is && !m.allWide(f) {
			return nil, false
		}
	}
	return m.block(body), true
}

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
