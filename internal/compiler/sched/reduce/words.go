package reduce

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// wordBytes is the size of a word that bytes are loaded by.
const wordBytes = 4

// wordLoads replaces loads of bytes by those of the words that hold them. Bytes at constant distances
// share words.
type wordLoads struct {
	e       *emit.Emitter
	tensors map[int]bool // those read as words, by ID
	bases   []*wordBase
	// whole means that numbers of bytes become words of four, see [integersOf].
	whole bool
	// from, if not nil, returns the words, instead of loads from memory.
	from WordLoader
}

func newWordLoads(e *emit.Emitter) *wordLoads { return &wordLoads{e: e, tensors: map[int]bool{}} }

// wordBase is a position in an array of bytes from which other bytes have constant distances.
type wordBase struct {
	array int
	at    scalar.Expr
	rest  int // at modulo the size of a word, or the largest value that it can have
	known bool
	word  scalar.Expr // the number of the first word
	shift scalar.Expr // in bits, where rest is not known
	ends  map[int]bool
	words map[int]scalar.Expr // loaded, by their distance from the first
	whole map[int]scalar.Expr // the words from at on, where rest is not known
	quads map[int]scalar.Expr // the words from at + phase on, which hold the bytes of numbers
	phase int
	of    map[int]bool // the distances of bytes of numbers
}

// inWords returns terms whose weights are computed from words, which it loads first.
func (w *wordLoads) inWords(terms []term) []term {
	w.bases = nil
	each := func(f func(x scalar.Expr) scalar.Expr) {
		for i, t := range terms {
			if t.shifts == nil && t.quads == nil {
				t.numbers = slices.Clone(t.numbers)
				for k, x := range t.numbers {
					t.numbers[k] = f(x)
				}
			}
			if t.scale != nil {
				t.scale = f(t.scale)
			}
			if t.offset != nil {
				t.offset = f(t.offset)
			}
			terms[i] = t
		}
	}
	each(func(x scalar.Expr) scalar.Expr {
		w.note(x)
		return x
	})
	w.loadBases(terms)
	for i := range terms {
		if !emit.WithMma || !w.whole || !integersOf(w, &terms[i]) {
			w.subnormal(&terms[i])
		}
	}
	each(func(x scalar.Expr) scalar.Expr { return w.replaced(x, map[scalar.Expr]scalar.Expr{}) })
	return terms
}

// note finds the bases of the bytes that an expression loads.
func (w *wordLoads) note(x scalar.Expr) {
	scalar.Walk(x, func(n scalar.Expr) {
		if isByte(n) {
			base, at := w.find(n)
			base.ends[at] = true
		}
	})
}

// loadBases loads the words of all bases, those of the numbers of terms as a whole where numbers become words of four.
func (w *wordLoads) loadBases(terms []term) {
	if emit.WithMma && w.whole {
		noteNumbers(w, terms)
	}
	for _, b := range w.bases {
		w.align(b)
		w.load(b)
		if emit.WithMma && w.whole {
			loadQuads(w, b)
		}
	}
}

func isByte(n scalar.Expr) bool { return n.Op == scalar.OpLoad && n.Type == ir.U8 && n.Ref >= 0 }

// find returns the base of a byte and its distance from it.
func (w *wordLoads) find(n scalar.Expr) (*wordBase, int) {
	r, at := w.e, w.e.Simplify(n.Args[0])
	for _, b := range w.bases {
		if d, ok := r.Simplify(scalar.Sub(at, b.at)).IntConst(); ok && b.array == n.Ref {
			return b, int(d)
		}
	}
	b := &wordBase{array: n.Ref, at: at, ends: map[int]bool{}, words: map[int]scalar.Expr{}, whole: map[int]scalar.Expr{}}
	w.bases = append(w.bases, b)
	return b, 0
}

// align moves a base to its first byte and finds its place in a word.
func (w *wordLoads) align(b *wordBase) {
	r, first := w.e, slices.Min(slices.Collect(maps.Keys(b.ends)))
	ends := map[int]bool{}
	for at := range b.ends {
		ends[at-first] = true
	}
	if emit.WithMma && w.whole {
		moveNumbers(b, first)
	}
	b.ends, b.at = ends, r.Simplify(scalar.Add(b.at, loop.Int(first)))
	rest, known := r.Simplify(scalar.Mod(b.at, loop.Int(wordBytes))).IntConst()
	b.rest, b.known = int(rest), known
	if !known {
		b.rest = wordBytes - 1
		if odd, ok := r.Simplify(scalar.Mod(b.at, loop.Int(2))).IntConst(); ok {
			b.rest = wordBytes - 2 + int(odd)
		}
	}
}

// load loads the words of a base, in order of their addresses.
func (w *wordLoads) load(b *wordBase) {
	r := w.e
	w.tensors[b.array] = true
	b.word = r.Simplify(scalar.FloorDiv(b.at, loop.Int(wordBytes)))
	if w.from == nil {
		b.word = r.Let("word", b.word)
	}
	needed, beyond := map[int]bool{}, map[int]bool{}
	for at := range b.ends {
		if b.known {
			needed[floorDiv(at+b.rest)] = true
			continue
		}
		needed[floorDiv(at)] = true
		if at-wordBytes*floorDiv(at)+b.rest >= wordBytes {
			beyond[floorDiv(at)+1] = true
		}
	}
	last := r.Partition.Tensor(b.array).Len()
	last = (last+wordBytes-1)/wordBytes - 1
	for _, k := range sorted(needed, beyond) {
		at := r.Simplify(scalar.Add(b.word, loop.Int(k)))
		bound := -1
		if !needed[k] {
			bound = last
		}
		if w.from != nil {
			b.words[k] = w.from(b.array, at, bound)
		} else {
			b.words[k] = let(r, "w", scalar.LoadAt(b.array, ir.U32, atMost(at, bound)))
		}
	}
	if b.known {
		return
	}
	b.shift = r.Let("shift", scalar.Mul(scalar.Mod(b.at, loop.Int(wordBytes)), loop.Int(8)))
	shift := scalar.Convert(b.shift, ir.U32)
	for _, k := range sorted(needed, nil) {
		if !beyond[k+1] {
			b.whole[k] = let(r, "v", scalar.Shr(b.words[k], shift))
			continue
		}
		if !emit.WithMma || r.Caps.Dialect != dtype.CUDA { // which has a funnel shift, but others no integers of 64 bits
			high := scalar.Shl(scalar.Shl(b.words[k+1], scalar.ConstI(ir.U32, 1)), scalar.Sub(scalar.ConstI(ir.U32, 31), shift))
			b.whole[k] = let(r, "v", scalar.Or(high, scalar.Shr(b.words[k], shift)))
			continue
		}
		both := scalar.Or(scalar.Shl(scalar.Convert(b.words[k+1], ir.U64), scalar.ConstI(ir.U64, 32)), scalar.Convert(b.words[k], ir.U64))
		b.whole[k] = let(r, "v", scalar.Convert(scalar.Shr(both, scalar.Convert(b.shift, ir.U64)), ir.U32))
	}
}

// atMost returns a position that is at most last, if that is not negative.
func atMost(at scalar.Expr, last int) scalar.Expr {
	if last < 0 {
		return at
	}
	return scalar.Min(at, loop.Int(last))
}

func floorDiv(at int) int { return (at - (at%wordBytes+wordBytes)%wordBytes) / wordBytes }

// sorted returns the union of two sets in order.
func sorted(a, b map[int]bool) []int {
	var out []int
	for k := range a {
		out = append(out, k)
	}
	for k := range b {
		if !a[k] {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// byteAt returns a byte, as i32.
func (w *wordLoads) byteAt(n scalar.Expr) scalar.Expr {
	b, at := w.find(n)
	words := b.whole
	switch {
	case emit.WithMma && b.quads != nil && b.of[at]:
		at, words = at-b.phase, b.quads
	case b.known:
		at += b.rest
		words = b.words
	}
	k := floorDiv(at)
	word := words[k]
	if shift := 8 * (at - wordBytes*k); shift > 0 {
		word = scalar.Shr(word, scalar.ConstI(ir.U32, int64(shift)))
	}
	return scalar.Convert(scalar.And(word, scalar.ConstI(ir.U32, 255)), ir.I32)
}

// replaced replaces the bytes in an expression, and conversions of small integers to floats.
func (w *wordLoads) replaced(x scalar.Expr, done map[scalar.Expr]scalar.Expr) scalar.Expr {
	if y, ok := done[x]; ok {
		return y
	}
	y := x
	switch {
	case isByte(x):
		y = scalar.Convert(w.byteAt(x), ir.U8)
	case x.Op == scalar.OpConvert && isByte(x.Args[0]) && x.Type == ir.I32:
		y = w.byteAt(x.Args[0])
	case len(x.Args) > 0:
		args := make([]scalar.Expr, len(x.Args))
		for i, a := range x.Args {
			args[i] = w.replaced(a, done)
		}
		y = w.smallFloat(scalar.Rebuild(x, args...))
	}
	done[x] = y
	return y
}

// Floats of integers. The bits of 2ⁿ, with those of an integer in the fraction where the last bit
// is worth 1, are 2ⁿ plus the integer: an operation on bits and a subtraction, which is exact,
// where conversions have a quarter of their rate.
const (
	fractionBits = 23
	exponentBias = 127
	fieldShift   = 12 // of words whose highest fields do not fit a fraction
)

// smallFloat returns the conversion of a small integer to f32 without a conversion, or the expression
// itself if it is none.
func (w *wordLoads) smallFloat(x scalar.Expr) scalar.Expr {
	if x.Op != scalar.OpConvert || x.Type != ir.F32 || x.Args[0].Type != ir.I32 {
		return x
	}
	n, minus := lessConstant(x.Args[0])
	const most = 1 << (fractionBits - 1)
	lo, hi, ok := w.bounds(n)
	if !ok || lo < -most || hi >= most || minus > most || minus < -most {
		return x
	}
	f, ok := fieldOf(n)
	if !ok || f.shift+bits.Len64(uint64(f.mask)) > 32 {
		sum := scalar.Add(n, scalar.ConstI(ir.I32, (exponentBias+fractionBits)<<fractionBits+most))
		return scalar.Sub(scalar.Bitcast(sum, ir.F32), scalar.Const(ir.F32, float64(3*most+minus)))
	}
	f = f.below(fractionBits)
	masked := scalar.And(f.word, scalar.ConstI(ir.U32, f.mask<<f.shift))
	power := int64(fractionBits - f.shift)
	pattern := scalar.Xor(masked, scalar.ConstI(ir.U32, (exponentBias+power)<<fractionBits|f.flips<<f.shift))
	return scalar.Sub(scalar.Bitcast(pattern, ir.F32), scalar.Const(ir.F32, float64(int64(1)<<power+minus)))
}

// lessConstant returns an integer as a difference of another one and a constant.
func lessConstant(x scalar.Expr) (n scalar.Expr, minus int64) {
	if x.Op == scalar.OpSub || x.Op == scalar.OpAdd {
		if c, ok := x.Args[1].IntConst(); ok && x.Op == scalar.OpAdd {
			return x.Args[0], -c
		} else if ok {
			return x.Args[0], c
		}
	}
	return x, 0
}

// Products with small integers as subnormal numbers. A word in which all but the bits of a field are 0 is, as
// f32, the field times a power of two, if it is below 2²⁴: one operation on bits converts it, and multiply-adds
// have their full rate. Activations are multiplied by a power of two before, so that products are the right ones
// times 2^−productScale: those of activations below 2⁷⁵ do not overflow, and the others are exact to 2⁻⁵³.
const (
	subnormalBits = 24  // of words that are subnormal, or have the same scale
	subnormalUnit = 149 // the least number is 2^−subnormalUnit
	productScale  = 96
	maxSubnormal  = 15 // larger integers lose more where a constant is subtracted from them
)

// subnormal replaces the numbers of a term by subnormal ones where all are small integers less one constant.
func (w *wordLoads) subnormal(t *term) {
	if !emit.WithMma || w.e.Caps.Dialect != dtype.CUDA { // WGSL may flush subnormal numbers to 0
		return
	}
	var numbers []scalar.Expr
	var shifts []int
	for i, x := range t.numbers {
		if x.Op != scalar.OpConvert || x.Type != ir.F32 || x.Args[0].Type != ir.I32 {
			return
		}
		n, minus := lessConstant(w.replaced(x.Args[0], map[scalar.Expr]scalar.Expr{}))
		lo, hi, ok := w.bounds(n)
		f, field := fieldOf(n)
		if !ok || !field || lo < 0 || hi > maxSubnormal || f.flips != 0 || i > 0 && minus != t.minus {
			return
		}
		f = f.below(subnormalBits)
		t.minus = minus
		shifts = append(shifts, f.shift)
		numbers = append(numbers, scalar.Bitcast(scalar.And(f.word, scalar.ConstI(ir.U32, f.mask<<f.shift)), ir.F32))
	}
	t.numbers, t.shifts = numbers, shifts
}

// bounds returns the range of an integer. Unlike those of package scalar it knows that a mask bounds
// also negative numbers.
func (w *wordLoads) bounds(n scalar.Expr) (lo, hi int64, ok bool) {
	switch {
	case n.Op == scalar.OpAnd:
		if c, known := n.Args[1].IntConst(); known && c >= 0 {
			return 0, c, true
		}
	case n.Op == scalar.OpXor || n.Op == scalar.OpOr:
		a, b, ok := w.bounds(n.Args[0])
		c, d, fine := w.bounds(n.Args[1])
		if ok && fine && min(a, c) >= 0 {
			return 0, 1<<bits.Len64(uint64(b|d)) - 1, true
		}
	case n.Op == scalar.OpMul:
		a, b, ok := w.bounds(n.Args[0])
		if c, known := n.Args[1].IntConst(); known && c >= 0 && c < 1<<fractionBits {
			return a * c, b * c, ok
		}
	case n.Op == scalar.OpShl:
		a, b, ok := w.bounds(n.Args[0])
		_, most, fine := w.bounds(n.Args[1])
		if ok && fine && a >= 0 && b < 1<<fractionBits && most >= 0 && most < fractionBits {
			return 0, b << most, true
		}
	case n.Op == scalar.OpNeg:
		a, b, ok := w.bounds(n.Args[0])
		return -b, -a, ok
	case n.Op == scalar.OpSelect:
		a, b, ok := w.bounds(n.Args[1])
		c, d, fine := w.bounds(n.Args[2])
		return min(a, c), max(b, d), ok && fine
	}
	return w.e.Simplifier.Range(n)
}

// field is (word >> shift & mask) ^ flips.
type field struct {
	word        scalar.Expr // u32
	shift       int
	mask, flips int64
}

// below returns the field with its bits below a position.
func (f field) below(position int) field {
	size := bits.Len64(uint64(f.mask))
	if f.shift+size <= position {
		return f
	}
	by := f.shift
	if by >= fieldShift && by-fieldShift+size <= position {
		by = fieldShift // shared with other fields of the word
	}
	f.word, f.shift = scalar.Shr(f.word, scalar.ConstI(ir.U32, int64(by))), f.shift-by
	return f
}

// fieldOf returns an integer as a field of a word.
func fieldOf(n scalar.Expr) (f field, ok bool) {
	switch {
	case n.Type == ir.U32 && n.Op == scalar.OpVar:
		return field{word: n, mask: 1<<32 - 1}, true
	case n.Op == scalar.OpConvert && (n.Args[0].Type == ir.U32 || n.Args[0].Type == ir.I32):
		return fieldOf(n.Args[0])
	case len(n.Args) != 2:
		return f, false
	}
	c, known := n.Args[1].IntConst()
	if f, ok = fieldOf(n.Args[0]); !ok || !known || c < 0 || f.flips != 0 {
		return f, false
	}
	switch n.Op {
	case scalar.OpAnd:
		f.mask &= c
	case scalar.OpShr:
		f.shift, f.mask = f.shift+int(c), f.mask>>c
	case scalar.OpXor:
		f.flips = c
		return f, c&^f.mask == 0
	default:
		return f, false
	}
	return f, true
}

// readsBytes reports whether statements still load bytes of an array that is read as words.
func (w *wordLoads) readsBytes(body []loop.Stmt) (found bool) {
	loop.Walk(body, func(s loop.Stmt) {
		loop.EachNode(s, func(n scalar.Expr) { found = found || isByte(n) && w.tensors[n.Ref] })
	})
	return found
}
