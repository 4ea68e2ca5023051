package loop

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// words returns a widened kernel whose arrays of narrow types are arrays of the
// words that they lie in, the first element in the lowest bits. A load takes its
// bits out of a word. Stores of all the elements of a word, one after the other
// in one block, or of a vector, are one store of the word: then the thread owns
// it. Any other store changes the bits of its own element alone, by adding to the
// word the difference to what they were: no other thread changes those, so that
// the sum is right in whatever order the additions of several threads are done.
func words(k *Kernel, c Caps) *Kernel {
	w := &worder{Simplifier: scalar.NewSimplifier(), caps: c, k: k, vectors: map[string]scalar.Expr{}, lets: map[string]scalar.Expr{}}
	out := *k
	out.Arrays = slices.Clone(k.Arrays)
	for i, a := range k.Arrays {
		if c.stored(a.DType) {
			out.Arrays[i] = inWords(a)
		}
	}
	out.Scalars = slices.Clone(k.Scalars)
	for i, d := range k.Scalars {
		if d.Valid() && c.stored(d) {
			out.Scalars[i] = dtype.U32
		}
	}
	w.arrays = out.Arrays
	w.findOwned(k.Body)
	out.Body = w.block(k.Body)
	return &out
}

// inWords returns the array of words that an array of a narrow type lies in.
func inWords(a Array) Array {
	perWord := 4 / a.DType.Size()
	elems := a.Len * a.Width
	a.DType, a.Width = dtype.U32, max(a.Width/perWord, 1)
	a.Len = (elems + perWord*a.Width - 1) / (perWord * a.Width)
	return a
}

type worder struct {
	*scalar.Simplifier
	caps    Caps
	k       *Kernel
	arrays  []Array
	vectors map[string]scalar.Expr // bits of the variables of vector loads
	lets    map[string]scalar.Expr // positions by the variables that name them
	fresh   int
}

func (w *worder) isNarrow(array int) bool { return w.caps.stored(w.k.Arrays[array].DType) }

// perWord is how many elements of an array a word holds.
func (w *worder) perWord(array int) int { return 4 / w.k.Arrays[array].DType.Size() }

// findOwned makes the arrays atomic that some thread stores a part of a word of.
func (w *worder) findOwned(body []Stmt) {
	for i := 0; i < len(body); i++ {
		switch s := body[i].(type) {
		case *Let:
			if s.Value.Type == dtype.I32 {
				w.lets[s.Name] = w.spelled(s.Value)
			}
		case *Store:
			if n := w.run(body[i:]); n > 0 {
				i += n - 1
			} else if w.isNarrow(s.Array) {
				w.share(s.Array)
			}
		case *StoreVec:
			if w.isNarrow(s.Array) && len(s.Values) < w.perWord(s.Array) {
				w.share(s.Array)
			}
		case *For:
			w.findOwned(s.Body)
		case *If:
			w.findOwned(s.Then)
			w.findOwned(s.Else)
		}
	}
}

// share makes an array of words one whose words several threads change.
func (w *worder) share(array int) {
	a := &w.arrays[array]
	a.Len, a.Width, a.Access = a.Len*a.Width, 1, Atomic
}

func (w *worder) isShared(array int) bool { return w.arrays[array].Access == Atomic }

// run returns how many statements, from the first on, store the elements of one
// word in order, 0 where they do not.
func (w *worder) run(body []Stmt) int {
	first, ok := body[0].(*Store)
	if !ok || !w.isNarrow(first.Array) {
		return 0
	}
	n := w.perWord(first.Array)
	if len(body) < n || !w.is(scalar.Mod(first.At, Int(n)), 0) {
		return 0
	}
	for i, s := range body[:n] {
		s, ok := s.(*Store)
		if !ok || s.Array != first.Array || !w.is(scalar.Sub(s.At, first.At), i) || loadsFrom(s.Value, s.Array) {
			return 0
		}
	}
	return n
}

// loadsFrom reports whether a value is made of elements of an array.
func loadsFrom(e scalar.Expr, array int) bool {
	found := false
	scalar.Walk(e, func(n scalar.Expr) { found = found || n.Op == scalar.OpLoad && n.Ref == array })
	return found
}

// is reports whether an index is known to be a number.
func (w *worder) is(x scalar.Expr, n int) bool {
	got, ok := w.Simplify(w.spelled(x)).IntConst()
	return ok && got == int64(n)
}

// spelled writes positions out in place of the variables that name them, to see
// what is known of them.
func (w *worder) spelled(x scalar.Expr) scalar.Expr {
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		value, ok := w.lets[n.Name]
		return value, ok && n.Op == scalar.OpVar
	})
}

func (w *worder) block(body []Stmt) []Stmt {
	var out []Stmt
	for i := 0; i < len(body); i++ {
		if n := w.run(body[i:]); n > 0 {
			out = append(out, w.storeRun(body[i:i+n])...)
			i += n - 1
			continue
		}
		out = append(out, w.stmt(body[i])...)
	}
	return out
}

func (w *worder) stmt(s Stmt) []Stmt {
	e := &wordExpr{w, map[scalar.Expr]scalar.Expr{}}
	switch s := s.(type) {
	case *Store:
		if w.isNarrow(s.Array) {
			return w.add(s.Array, e.expr(s.At), e.bits(s.Value))
		}
	case *StoreVec:
		if w.isNarrow(s.Array) {
			return w.storeVector(s, e)
		}
	case *LoadVec:
		if w.isNarrow(s.Array) {
			return w.loadVector(s, e.expr(s.At))
		}
	case *For:
		return []Stmt{s.with(e.expr(s.Start), e.expr(s.End), e.expr(s.Step), w.block(s.Body))}
	case *If:
		return []Stmt{&If{e.expr(s.Cond), w.block(s.Then), w.block(s.Else)}}
	}
	return []Stmt{mapStmt(s, e.expr)}
}

func (w *worder) name(prefix string) string {
	w.fresh++
	return prefix + "Word" + strconv.Itoa(w.fresh)
}

// loadVector loads the words of a vector and notes what bits of them its
// variables stand for.
func (w *worder) loadVector(s *LoadVec, at scalar.Expr) []Stmt {
	n, width := w.perWord(s.Array), w.arrays[s.Array].Width
	if !w.isShared(s.Array) && width > 1 {
		load := &LoadVec{Array: s.Array, At: at}
		for range width {
			load.Names = append(load.Names, w.name("part"))
		}
		for i, name := range s.Names {
			w.vectors[name] = field(scalar.FreeVar(load.Names[i/n], dtype.U32), number(i%n*(32/n)), 32/n)
		}
		return []Stmt{load}
	}
	var out []Stmt
	for i, name := range s.Names {
		place := w.Simplify(scalar.Add(scalar.Mul(at, Int(len(s.Names))), Int(i)))
		part := w.name("part")
		out = append(out, &Let{part, w.element(s.Array, place)})
		w.vectors[name] = scalar.FreeVar(part, dtype.U32)
	}
	return out
}

// element returns the bits of an element of an array.
func (w *worder) element(array int, at scalar.Expr) scalar.Expr {
	n := w.perWord(array)
	place := w.Simplify(scalar.FloorDiv(at, Int(n)))
	return field(scalar.LoadAt(array, dtype.U32, place), w.shift(array, at), 32/n)
}

// field returns some bits of a word.
func field(word, shift scalar.Expr, bits int) scalar.Expr {
	if x, ok := shift.IntConst(); ok && int(x)+bits == 32 {
		return scalar.Shr(word, shift)
	}
	return scalar.And(scalar.Shr(word, shift), number(1<<bits-1))
}
