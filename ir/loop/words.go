package loop

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// words replaces arrays of narrow types in a widened kernel by arrays of words, with the first
// element in the lowest bits. A load extracts bits of a word. Stores of all elements of a word,
// in sequence in one block or as a vector, become one store of the word, which the thread then
// owns. Any other store adds to the word the difference between the new and old bits of its
// element, atomically: no other thread changes these bits, so the result is right in any order
// of the threads.
func words(k *Kernel, c Caps) *Kernel {
	w := &wordLowering{Simplifier: scalar.NewSimplifier(), caps: c, k: k, vectors: map[string]scalar.Expr{}, lets: map[string]scalar.Expr{}}
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
	w.markShared(k.Body)
	out.Body = w.block(k.Body)
	return &out
}

// inWords returns the array of words that holds an array of a narrow type.
func inWords(a Array) Array {
	perWord := 4 / a.DType.Size()
	elems := a.Len * a.Width
	a.DType, a.Width = dtype.U32, max(a.Width/perWord, 1)
	a.Len = (elems + perWord*a.Width - 1) / (perWord * a.Width)
	return a
}

type wordLowering struct {
	*scalar.Simplifier
	caps    Caps
	k       *Kernel
	arrays  []Array
	vectors map[string]scalar.Expr // bits of the variables of vector loads
	lets    map[string]scalar.Expr // positions by variable
	fresh   int
}

func (w *wordLowering) isNarrow(array int) bool { return w.caps.stored(w.k.Arrays[array].DType) }

// perWord returns the number of elements of an array in a word.
func (w *wordLowering) perWord(array int) int { return 4 / w.k.Arrays[array].DType.Size() }

// markShared makes the arrays atomic in which a thread stores part of a word.
func (w *wordLowering) markShared(body []Stmt) {
	for i := 0; i < len(body); i++ {
		switch s := body[i].(type) {
		case *Let:
			if s.Value.Type == dtype.I32 {
				w.lets[s.Name] = w.expandLets(s.Value)
			}
		case *Store:
			if n := w.storeRunLen(body[i:]); n > 0 {
				i += n - 1
			} else if w.isNarrow(s.Array) {
				w.share(s.Array)
			}
		case *StoreVec:
			if w.isNarrow(s.Array) && len(s.Values) < w.perWord(s.Array) {
				w.share(s.Array)
			}
		case *For:
			w.markShared(s.Body)
		case *If:
			w.markShared(s.Then)
			w.markShared(s.Else)
		}
	}
}

// share makes the words of an array atomic, because several threads change one.
func (w *wordLowering) share(array int) {
	a := &w.arrays[array]
	a.Len, a.Width, a.Access = a.Len*a.Width, 1, Atomic
}

func (w *wordLowering) isShared(array int) bool { return w.arrays[array].Access == Atomic }

// storeRunLen returns the number of leading statements that store the elements of one word in order,
// or 0.
func (w *wordLowering) storeRunLen(body []Stmt) int {
	first, ok := body[0].(*Store)
	if !ok || !w.isNarrow(first.Array) {
		return 0
	}
	n := w.perWord(first.Array)
	if len(body) < n || !w.equals(scalar.Mod(first.At, Int(n)), 0) {
		return 0
	}
	for i, s := range body[:n] {
		s, ok := s.(*Store)
		if !ok || s.Array != first.Array || !w.equals(scalar.Sub(s.At, first.At), i) || loadsFrom(s.Value, s.Array) {
			return 0
		}
	}
	return n
}

// loadsFrom reports whether a value depends on elements of an array.
func loadsFrom(e scalar.Expr, array int) bool {
	return scalar.Any(e, func(n scalar.Expr) bool { return n.Op == scalar.OpLoad && n.Ref == array })
}

// equals reports whether an index is known to equal n.
func (w *wordLowering) equals(x scalar.Expr, n int) bool {
	got, ok := w.Simplify(w.expandLets(x)).IntConst()
	return ok && got == int64(n)
}

// expandLets replaces variables by the positions they name, for the simplifier.
func (w *wordLowering) expandLets(x scalar.Expr) scalar.Expr {
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		value, ok := w.lets[n.Name]
		return value, ok && n.Op == scalar.OpVar
	})
}

func (w *wordLowering) block(body []Stmt) []Stmt {
	var out []Stmt
	for i := 0; i < len(body); i++ {
		if n := w.storeRunLen(body[i:]); n > 0 {
			out = append(out, w.storeRun(body[i:i+n])...)
			i += n - 1
			continue
		}
		out = append(out, w.stmt(body[i])...)
	}
	return out
}

func (w *wordLowering) stmt(s Stmt) []Stmt {
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
	}
	return []Stmt{mapStmt(s, e.expr, w.block)}
}

func (w *wordLowering) name(prefix string) string {
	w.fresh++
	return prefix + "Word" + strconv.Itoa(w.fresh)
}

// loadVector loads the words of a vector and records the bits of each of its variables.
func (w *wordLowering) loadVector(s *LoadVec, at scalar.Expr) []Stmt {
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
func (w *wordLowering) element(array int, at scalar.Expr) scalar.Expr {
	n := w.perWord(array)
	place := w.Simplify(scalar.FloorDiv(at, Int(n)))
	return field(scalar.LoadAt(array, dtype.U32, place), w.shift(array, at), 32/n)
}

// field extracts bits of a word.
func field(word, shift scalar.Expr, bits int) scalar.Expr {
	if x, ok := shift.IntConst(); ok && int(x)+bits == 32 {
		return scalar.Shr(word, shift)
	}
	return scalar.And(scalar.Shr(word, shift), number(1<<bits-1))
}

// wordExpr rewrites the expressions of one statement to words.
type wordExpr struct {
	*wordLowering
	done map[scalar.Expr]scalar.Expr
}

func (w *wordExpr) expr(n scalar.Expr) scalar.Expr {
	if r, ok := w.done[n]; ok {
		return r
	}
	var r scalar.Expr
	switch from := narrowOperand(n); {
	case n.Op == scalar.OpConvert && w.caps.stored(from):
		r = unpacked(w.bits(n.Args[0]), from)
	case n.Op == scalar.OpConvert && n.Args[0].Op == scalar.OpBitcast && w.caps.stored(narrowOperand(n.Args[0])):
		// Subnormal f16 numbers may be flushed where f16 is computed with.
		r = scalar.Convert(scalar.Unpack(w.bits(n.Args[0].Args[0]), from), n.Type)
	case n.Op == scalar.OpBitcast && w.caps.stored(from):
		r = scalar.Convert(scalar.Unpack(w.bits(n.Args[0]), n.Type), n.Type) // to f16, where it is computed with
	case len(n.Args) == 0:
		r = n
	default:
		args := make([]scalar.Expr, len(n.Args))
		for i, a := range n.Args {
			args[i] = w.expr(a)
		}
		r = scalar.Rebuild(n, args...)
	}
	w.done[n] = r
	return r
}

// narrowOperand returns the type of the operand of a unary operation.
func narrowOperand(n scalar.Expr) dtype.DType {
	if len(n.Args) != 1 {
		return dtype.Invalid
	}
	return n.Args[0].Type
}

// unpacked converts the bits of a narrow type to the wide type.
func unpacked(bits scalar.Expr, d dtype.DType) scalar.Expr {
	switch {
	case d.IsFloat():
		return scalar.Unpack(bits, d)
	case d.IsUnsigned():
		return bits
	}
	return wrapped(scalar.Bitcast(bits, dtype.I32), d)
}

// bits returns the bits of a value of a narrow type, in the lowest bits of a u32.
func (w *wordExpr) bits(n scalar.Expr) scalar.Expr {
	d := n.Type
	mask := number(1<<d.Bits() - 1)
	switch n.Op {
	case scalar.OpConst:
		v, _ := n.Value()
		if d.IsFloat() {
			return number(int(d.FloatBits(v.F)))
		}
		return scalar.And(scalar.ConstI(dtype.U32, v.I), mask)
	case scalar.OpVar:
		if b, ok := w.vectors[n.Name]; ok {
			return b
		}
		return scalar.And(scalar.FreeVar(n.Name, dtype.U32), mask) // a run scalar
	case scalar.OpLoad:
		return w.element(n.Ref, w.expr(n.Args[0]))
	case scalar.OpBitcast:
		if from := n.Args[0].Type; !w.caps.stored(from) { // f16
			return scalar.Pack(scalar.Convert(w.expr(n.Args[0]), dtype.F32), from)
		}
		return w.bits(n.Args[0])
	}
	x := w.expr(n.Args[0]) // a conversion from a wide type
	if d.IsFloat() {
		return scalar.Pack(x, d)
	}
	return scalar.And(scalar.Bitcast(x, dtype.U32), mask)
}

// storeRun stores the elements of one word.
func (w *wordLowering) storeRun(stores []Stmt) []Stmt {
	first := stores[0].(*Store)
	e := &wordExpr{w, map[scalar.Expr]scalar.Expr{}}
	var parts []scalar.Expr
	for _, s := range stores {
		parts = append(parts, e.bits(s.(*Store).Value))
	}
	at := w.Simplify(scalar.FloorDiv(e.expr(first.At), Int(len(parts))))
	return w.storeWords(first.Array, at, []scalar.Expr{packWord(parts)})
}

// storeWords stores whole words at an index of the array, which counts vectors if it has them.
func (w *wordLowering) storeWords(array int, at scalar.Expr, values []scalar.Expr) []Stmt {
	switch {
	case !w.isShared(array) && len(values) == 1 && w.arrays[array].Width == 1:
		return []Stmt{&Store{array, at, values[0]}}
	case !w.isShared(array):
		return []Stmt{&StoreVec{array, at, values}}
	}
	var out []Stmt
	for i, v := range values {
		place := w.Simplify(scalar.Add(scalar.Mul(at, Int(len(values))), Int(i)))
		out = append(out, w.replace(array, place, v, Int(0), 0xffffffff)...)
	}
	return out
}

// packWord packs the bits of the elements of a word.
func packWord(parts []scalar.Expr) scalar.Expr {
	size := 32 / len(parts)
	word := parts[0]
	for i, p := range parts[1:] {
		word = scalar.Or(word, scalar.Shl(p, number((i+1)*size)))
	}
	return word
}

func number(n int) scalar.Expr { return scalar.ConstI(dtype.U32, int64(n)) }

// add stores one element of an array.
func (w *wordLowering) add(array int, at, bits scalar.Expr) []Stmt {
	n := w.perWord(array)
	place := w.Simplify(scalar.FloorDiv(at, Int(n)))
	return w.replace(array, place, bits, w.shift(array, at), 1<<(32/n)-1)
}

// shift returns the bit offset of an element in its word.
func (w *wordLowering) shift(array int, at scalar.Expr) scalar.Expr {
	n := w.perWord(array)
	in := w.Simplify(scalar.Mod(at, Int(n)))
	return scalar.Convert(scalar.Mul(in, Int(32/n)), dtype.U32)
}

// replace replaces the bits of a word under a shifted mask.
func (w *wordLowering) replace(array int, place, bits, shift scalar.Expr, mask uint32) []Stmt {
	if shift.Type == dtype.I32 {
		shift = scalar.Convert(shift, dtype.U32)
	}
	old := w.name("old")
	now := scalar.And(scalar.Shr(scalar.LoadAt(array, dtype.U32, place), shift), scalar.ConstI(dtype.U32, int64(mask)))
	change := scalar.Shl(scalar.Sub(bits, scalar.FreeVar(old, dtype.U32)), shift)
	return []Stmt{&Let{old, now}, &AtomicOp{Op: scalar.OpAdd, Array: array, At: place, Value: change}}
}

func (w *wordLowering) storeVector(s *StoreVec, e *wordExpr) []Stmt {
	n, at := w.perWord(s.Array), e.expr(s.At)
	if len(s.Values) < n {
		var out []Stmt
		for i, v := range s.Values {
			place := w.Simplify(scalar.Add(scalar.Mul(at, Int(len(s.Values))), Int(i)))
			out = append(out, w.add(s.Array, place, e.bits(v))...)
		}
		return out
	}
	var values []scalar.Expr
	for part := range slices.Chunk(s.Values, n) {
		bits := make([]scalar.Expr, n)
		for i, v := range part {
			bits[i] = e.bits(v)
		}
		values = append(values, packWord(bits))
	}
	return w.storeWords(s.Array, at, values)
}
