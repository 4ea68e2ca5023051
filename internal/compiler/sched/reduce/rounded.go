package reduce

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Products of packed weights with activations that are rounded to 8 bits, s·q with a step s for each block of 32. Threads
// round their part of the row once, and for all rows of weights multiply integers, four with four by an instruction: the
// sum of a block's products is exact, then Σ s·(scale·sum) is computed in f32. For 32 weights of q4_0 and of q8_0 a thread
// executes some 40 instructions on an H200, loads included; with numbers it is 90 and 150.

// activationBlock is the number of activations that have a step in common.
const activationBlock = 32

// rounding is how the activations of a kernel are rounded.
type rounding struct {
	given    map[ir.Value]scalar.Expr // the variables of largest magnitudes in expressions of elements
	names    map[string]bool          // of these
	step     scalar.Expr              // by the largest magnitude
	variable string                   // that step depends on
	lo, hi   scalar.Expr              // bounds of the integers
	of       []int                    // the block of each element of a slice
	blocks   int                      // of a slice
	lanes    int                      // that have slices of the same blocks
	steps    [][]scalar.Expr          // by turn and block
	whole    [][]scalar.Expr          // by turn and element: integers in the low bits of floats, see wholeBits
}

// quad is four numbers, the signed bytes of a word. Elements are those of the slice for each byte, or -1.
type quad struct {
	weights  scalar.Expr // u32
	elements [4]int
}

// A float of wholeBits plus an integer of up to 22 bits has that in its lowest bits.
const (
	wholeBits  = 0x4b400000
	wholeFloat = 3 << (fractionBits - 1)
)

// findRounding finds out whether and how activations are rounded by their blocks' largest magnitudes.
func findRounding(p *packedRows) {
	maxima := p.Partition.BlockMaxima()
	if len(maxima) == 0 {
		return
	}
	a := &rounding{given: map[ir.Value]scalar.Expr{}, names: map[string]bool{}}
	for i, v := range maxima {
		name := format.Sprintf("largest_%d", i)
		a.given[v], a.names[name] = scalar.FreeVar(name, v.DType()), true
	}
	p.rounding = a
	p.first = scalar.NewVar(generalRow, ir.I32, 0, int64(max(len(p.g.Outer), 1)))
	for _, m := range p.r.membersAt(0, true) {
		inner := scalar.NewVar(generalInner, ir.I32, 0, int64(p.g.Inner[0]-1))
		if x, _, ok := p.product(m, p.first, inner); ok && a.match(x) {
			break
		}
	}
	if a.step == nil || !a.divide(p.split) {
		p.rounding = nil
		clear(p.elements)
	}
}

// match finds the step and the bounds of activations.
func (a *rounding) match(x scalar.Expr) bool {
	q, _ := clampedQuotient(x)
	if q == nil {
		return false
	}
	step, fine := q.Args[0].Args[0].Args[1], true
	scalar.Walk(step, func(n scalar.Expr) {
		switch n.Op {
		case scalar.OpLoad:
			fine = false
		case scalar.OpVar:
			fine = fine && a.names[n.Name] && (a.variable == "" || a.variable == n.Name)
			a.variable = n.Name
		}
	})
	if fine && a.variable != "" {
		a.step, a.lo, a.hi = step, q.Args[1], q.Args[2]
	}
	return a.step != nil
}

// clampedQuotient returns the factor clamp(round(x/step)) of a product of it and the step, and x.
func clampedQuotient(e scalar.Expr) (q, x scalar.Expr) {
	if e.Op != scalar.OpMul {
		return nil, nil
	}
	for i, q := range e.Args {
		if q.Op != scalar.OpClamp || q.Args[0].Op != scalar.OpRound || q.Args[0].Args[0].Op != scalar.OpDiv {
			continue
		}
		if by := q.Args[0].Args[0]; scalar.Key(by.Args[1]) == scalar.Key(e.Args[1-i]) {
			return q, by.Args[0]
		}
	}
	return nil, nil
}

// unrounded returns the activation that is rounded.
func unrounded(e scalar.Expr) (x scalar.Expr, ok bool) {
	_, x = clampedQuotient(e)
	return x, x != nil
}

// divide finds the blocks of a slice's elements. It reports false where the threads that have parts of a block are not
// adjacent.
func (a *rounding) divide(s rowSlice) bool {
	block := func(slice, i int) int {
		major, minor := slice/s.minors, slice%s.minors
		return (major*s.fields*s.minors*s.run + (i/s.run*s.minors+minor)*s.run + i%s.run) / activationBlock
	}
	number, count := map[int]int{}, 0
	for i := range s.elements() {
		if _, known := number[block(0, i)]; !known {
			number[block(0, i)] = len(number)
		}
		a.of = append(a.of, number[block(0, i)])
		if a.of[i] == 0 {
			count++
		}
	}
	a.blocks, a.lanes = len(number), activationBlock/count
	for slice := range s.perBlock() {
		own := map[int]int{}
		for i := range s.elements() {
			b := block(slice, i)
			if n, known := own[b]; known && n != a.of[i] || b != block(slice-slice%a.lanes, i) {
				return false
			}
			own[b] = a.of[i]
		}
		if len(own) != a.blocks {
			return false
		}
	}
	return emit.PowerOfTwo(a.lanes) == a.lanes
}

// integerCost is [sliceCost] for products of integers: of the time on an H200, load instructions take most, whatever lines they
// touch, and eight others are issued in that of one.
func integerCost(ops, loads int) float64 { return float64(ops)/8 + float64(loads) }

// halfBlocks returns the slice of [rowSlices] of half a block of 32 instead of the cheapest, where it takes at most costlyHalf of
// that's cycles: what q8_0 has. A thread has two, of which neither waits for the other: q8_0 is read at 3,511 GB/s instead of 3,448
// with 8192 × 8192 weights, and at 3,471 instead of 3,331 with 14336 × 4096 (H200).
func (w *Space) halfBlocks(best int) int {
	half := slices.Index(rowSlices, rowSlice{32, 1, 1, 2, 16})
	n := w.Group.Inner[0]
	if n%rowSlices[half].block != 0 || n > 2*packedLanes*rowSlices[half].elements() ||
		newPackedRows(w.e.Sibling(), w.Group, rowSlices[best]).rounding == nil {
		return best
	}
	least, _ := w.sliceCost(best)
	if c, ok := w.sliceCost(half); !ok || c > costlyHalf*least {
		return best
	}
	return half
}

// costlyHalf is 1.5 for q8_0, and 2 for q4_0, whose bytes have numbers of both halves.
const costlyHalf = 1.6

// wordsAhead are the registers of a thread that hold loads of an iteration ahead: with 256 threads of two workgroups, more
// than an H200 needs in flight to read at full speed.
const wordsAhead = 48

// integerRows returns how many rows are loaded at once: as many as registers hold, in two iterations or more.
func integerRows(p *packedRows, s emit.Schedule, turns int) int {
	words, rows := turns*wordsOf(p), 1
	for 2*rows*words <= wordsAhead && 4*rows <= s.Rows && s.Rows%(2*rows) == 0 && 2*rows <= loop.Warp {
		rows *= 2
	}
	return rows
}

// wordsOf returns the loads of a slice of one row, of all members.
func wordsOf(p *packedRows) (loads int) {
	q := newPackedRows(p.Sibling(), p.g, p.split)
	q.loadSlice(func() {})
	for _, s := range q.Body {
		loop.EachNode(s, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad {
				loads++
			}
		})
	}
	return loads
}

// loadSlice loads the words of any slice of any row, and calls f after those of each member. It reports false where the weights
// of one do not factor: its words are not loaded.
func (p *packedRows) loadSlice(f func()) bool {
	p.first = scalar.NewVar("first", ir.I32, 0, int64(fusion.Product(p.g.Outer)-1))
	slice, all := scalar.NewVar("slice", ir.I32, 0, int64(p.g.Inner[0]/p.split.elements()-1)), true
	for _, m := range p.members {
		terms, ok := p.terms(m, p.first, slice)
		if ok {
			p.weights.inWords(terms)
			f()
		}
		all = all && ok
	}
	return all
}

// Steps below 2^−smallStep are scaled by 2^stepFactor, so that their inverses are normal numbers.
const (
	smallStep  = 100
	stepFactor = 64
)

// roundActivations rounds the activations of the thread. The quotient x/step is that of a division: the product of x
// with the inverse of the step, corrected by its error (Markstein, Computation of elementary functions on the IBM RISC
// System/6000 processor). It is at most 127 and a little, except where the step is subnormal.
func roundActivations(p *packedRows) {
	a, f := p.rounding, func(x float64) scalar.Expr { return scalar.Const(ir.F32, x) }
	for t, own := range p.x {
		whole := make([]scalar.Expr, len(own))
		var steps []scalar.Expr
		for b := range a.blocks {
			largest := p.r.let("largest", largestOf(p, t, b))
			step := p.r.let("step", scalar.SubstituteVars(a.step, map[string]scalar.Expr{a.variable: largest}))
			// The product of an infinite step with 0 is not a number, that with another integer must not be one either.
			steps = append(steps, p.r.let("step", scalar.Select(scalar.IsFinite(step), step, f(math.NaN()))))
			inverse := p.r.let("inverse", scalar.Div(f(1), step))
			for i, x := range own {
				if a.of[i] == b {
					whole[i] = p.Var("whole", scalar.Add(quotient(p, x, step, inverse), f(wholeFloat)))
				}
			}
			p.When(scalar.Lt(step, f(math.Ldexp(1, -smallStep))), func() {
				by := f(math.Ldexp(1, stepFactor))
				large := p.r.let("large", scalar.Mul(step, by))
				inverse := p.r.let("inverse", scalar.Div(f(1), large))
				for i, x := range own {
					if a.of[i] == b {
						q := quotient(p, p.r.let("scaled", scalar.Mul(x, by)), large, inverse)
						p.Set(whole[i], scalar.Add(scalar.Min(scalar.Max(q, a.lo), a.hi), f(wholeFloat)))
					}
				}
			})
		}
		for i := range own {
			p.x[t][i] = scalar.Mul(steps[a.of[i]], scalar.Sub(whole[i], f(wholeFloat)))
		}
		a.steps, a.whole = append(a.steps, steps), append(a.whole, whole)
	}
}

// quotient returns x/step.
func quotient(p *packedRows, x, step, inverse scalar.Expr) scalar.Expr {
	near := p.r.let("near", scalar.Mul(x, inverse))
	return scalar.Fma(scalar.Fma(scalar.Neg(near), step, x), inverse, near)
}

// largestOf returns the largest magnitude of a block, of which other threads of the warp have parts.
func largestOf(p *packedRows, turn, block int) scalar.Expr {
	a := p.rounding
	var list []scalar.Expr
	for i, x := range p.x[turn] {
		if a.of[i] == block {
			list = append(list, scalar.Abs(x))
		}
	}
	for n := len(list); n > 1; n = (n + 1) / 2 { // a tree, as each maximum waits for its operands
		for i := range n / 2 {
			list[i] = scalar.Max(list[i], list[(n+1)/2+i])
		}
	}
	largest := list[0]
	for across := 1; across < a.lanes; across *= 2 {
		mine, name := p.r.let("mine", largest), p.Name("other")
		p.Body = append(p.Body, &loop.Shuffle{Name: name, Value: mine, Xor: across})
		largest = scalar.Max(mine, scalar.FreeVar(name, ir.F32))
	}
	return largest
}

// integerSum returns a sum plus that of the products of a term, whose numbers and activations are integers.
func integerSum(p *packedRows, turn int, w term, sum scalar.Expr) scalar.Expr {
	dots := scalar.ConstI(ir.I32, wholeBits)
	if w.minus != 0 {
		dots = lessWhole(p, turn, w)
	}
	for _, q := range w.quads {
		dots = scalar.Dot4(scalar.Convert(q.weights, ir.I32), quadOf(p, turn, q), dots)
	}
	dot := scalar.Sub(scalar.Bitcast(p.r.let("dots", dots), ir.F32), scalar.Const(ir.F32, wholeFloat))
	if w.scale != nil {
		dot = scalar.Mul(w.scale, dot)
	}
	if step := p.rounding.steps[turn][w.block]; sum == nil {
		sum = scalar.Mul(step, dot)
	} else {
		sum = scalar.Fma(step, dot, sum)
	}
	if w.offset == nil {
		return sum
	}
	total := p.totals[totalKey(turn, w)]
	if w.negative {
		total = scalar.Neg(total)
	}
	return scalar.Fma(w.offset, total, sum)
}

// quadOf returns the activations that a quad is multiplied with.
func quadOf(p *packedRows, turn int, q quad) scalar.Expr {
	key := format.Sprintf("%d quad %v", turn, q.elements)
	if p.scaled[key] != nil {
		return p.scaled[key]
	}
	word := scalar.ConstI(ir.I32, 0)
	for i, e := range q.elements {
		if e >= 0 {
			x := scalar.And(scalar.Bitcast(p.rounding.whole[turn][e], ir.I32), scalar.ConstI(ir.I32, 255))
			word = scalar.Or(word, scalar.Shl(x, scalar.ConstI(ir.I32, int64(8*i))))
		}
	}
	p.scaled[key] = p.beforeRows("quad", word)
	return p.scaled[key]
}

// lessWhole returns what the dot product of a term begins with: the sum of its activations times the constant that is
// not subtracted from each number, subtracted from wholeBits.
func lessWhole(p *packedRows, turn int, w term) scalar.Expr {
	key := format.Sprintf("%s whole less %d", totalKey(turn, w), w.minus)
	if p.scaled[key] == nil {
		total := scalar.ConstI(ir.I32, 0)
		for _, q := range w.quads {
			total = scalar.Dot4(quadOf(p, turn, q), scalar.ConstI(ir.I32, 0x01010101), total)
		}
		less := scalar.Mul(total, scalar.ConstI(ir.I32, w.minus))
		p.scaled[key] = p.beforeRows("less", scalar.Sub(scalar.ConstI(ir.I32, wholeBits), less))
	}
	return p.scaled[key]
}

// noteNumbers notes which bytes are of numbers, not of scales and offsets.
func noteNumbers(w *wordLoads, terms []term) {
	for _, b := range w.bases {
		b.of = map[int]bool{}
	}
	for _, t := range terms {
		for _, x := range t.numbers {
			scalar.Walk(x, func(n scalar.Expr) {
				if isByte(n) {
					b, at := w.find(n)
					b.of[at] = true
				}
			})
		}
	}
}

// moveNumbers moves the places of numbers by that of the first byte.
func moveNumbers(b *wordBase, first int) {
	of := map[int]bool{}
	for at := range b.of {
		of[at-first] = true
	}
	b.of = of
}

// loadQuads makes words of bytes of numbers where these begin at another byte of a word than all bytes of the base.
func loadQuads(w *wordLoads, b *wordBase) {
	if len(b.of) == 0 {
		return
	}
	phase := slices.Min(sorted(b.of, nil)) % wordBytes
	if b.known && (phase+b.rest)%wordBytes == 0 || !b.known && phase == 0 || !b.known && phase+b.rest > wordBytes {
		return
	}
	var places []int
	for _, at := range sorted(b.of, nil) {
		k := floorDiv(at - phase)
		first := k
		if b.known {
			first = floorDiv(wordBytes*k + phase + b.rest)
		}
		if b.words[first] == nil || b.words[first+1] == nil {
			return
		}
		if !slices.Contains(places, k) {
			places = append(places, k)
		}
	}
	b.phase, b.quads = phase, map[int]scalar.Expr{}
	for _, k := range places {
		first, shift := k, scalar.ConstI(ir.U64, int64(8*(phase+b.rest)%(8*wordBytes)))
		if b.known {
			first = floorDiv(wordBytes*k + phase + b.rest)
		} else {
			shift = scalar.Add(scalar.Convert(b.shift, ir.U64), scalar.ConstI(ir.U64, int64(8*phase)))
		}
		both := scalar.Or(scalar.Shl(scalar.Convert(b.words[first+1], ir.U64), scalar.ConstI(ir.U64, 32)), scalar.Convert(b.words[first], ir.U64))
		b.quads[k] = let(w.e, "quad", scalar.Convert(scalar.Shr(both, shift), ir.U32))
	}
}

// part is a field of a word, shifted left: numbers are the sum of a few. by, if not nil, is a further shift right of the
// field's word, by at most most, which the thread computes.
type part struct {
	field
	left int
	by   scalar.Expr
	most int
}

// partsOf returns an integer as fields whose bits differ.
func partsOf(w *wordLoads, n scalar.Expr) (parts []part, ok bool) {
	if f, ok := fieldOf(n); ok {
		return []part{{field: f}}, true
	}
	switch n.Op {
	case scalar.OpConvert:
		return partsOf(w, n.Args[0])
	case scalar.OpAnd:
		return shifted(w, n)
	case scalar.OpOr, scalar.OpAdd:
		a, fine := partsOf(w, n.Args[0])
		b, ok := partsOf(w, n.Args[1])
		return append(a, b...), fine && ok
	case scalar.OpShl, scalar.OpMul:
		by, known := n.Args[1].IntConst()
		if n.Op == scalar.OpMul {
			power := int(by)
			if by, known = int64(math.Ilogb(float64(by))), known && by > 0 && emit.PowerOfTwo(power) == power; !known {
				return nil, false
			}
		}
		parts, ok = partsOf(w, n.Args[0])
		for i := range parts {
			parts[i].left += int(by)
		}
		return parts, ok && known
	}
	return nil, false
}

// shifted returns the bits of a mask of a field that is shifted right by what the thread computes.
func shifted(w *wordLoads, n scalar.Expr) (parts []part, ok bool) {
	mask, known := n.Args[1].IntConst()
	shift := n.Args[0]
	if !known || mask < 0 || shift.Op != scalar.OpShr {
		return nil, false
	}
	f, ok := fieldOf(shift.Args[0])
	lo, hi, fine := w.bounds(shift.Args[1])
	if !ok || !fine || lo < 0 || f.flips != 0 || hi+int64(bitsOf(mask)) > int64(bitsOf(f.mask)) {
		return nil, false
	}
	f.mask = mask
	return []part{{field: f, by: scalar.Convert(shift.Args[1], ir.U32), most: int(hi)}}, true
}

// inByte returns the byte of its word that a part is in, how far it is shifted right in that, and the bits that it has
// at last. It reports false where it is not in one byte, or has others.
func (f part) inByte() (lane, right int, mask, flips int64, ok bool) {
	mask, flips = f.mask<<f.left, f.flips<<f.left
	lane = f.shift / 8
	inside := f.shift%8+f.most+bitsOf(f.mask) <= 8 && mask < 256 && lane < wordBytes
	return lane, f.shift%8 - f.left, mask, flips, inside
}

// bitsOf returns the number of bits of a mask.
func bitsOf(mask int64) int { return math.Ilogb(float64(2*mask + 1)) }

// quadParts are the parts of the numbers of a quad.
type quadParts struct {
	key   string
	parts []part
	more  int64 // what numbers have more than the bytes
	quad
}

// integersOf replaces the numbers of a term by words with four each, if all are bytes less one constant.
func integersOf(w *wordLoads, t *term) bool {
	var list []*quadParts
	for i, x := range t.numbers {
		if x.Op != scalar.OpConvert || x.Type != ir.F32 || x.Args[0].Type != ir.I32 {
			return false
		}
		n, minus := lessConstant(w.replaced(x.Args[0], map[scalar.Expr]scalar.Expr{}))
		parts, ok := partsOf(w, n)
		if !ok || i > 0 && minus != t.minus {
			return false
		}
		t.minus = minus
		if list, ok = withNumber(list, parts, t.elements[i]); !ok {
			return false
		}
	}
	for i, q := range list {
		word, more := wordOf(q.parts)
		if q.weights = word; i > 0 && more != list[0].more {
			return false
		}
		q.more = more
	}
	for _, q := range list {
		q.weights = let(w.e, "q", q.weights)
		t.quads = append(t.quads, q.quad)
	}
	t.numbers, t.minus = nil, t.minus-list[0].more
	return true
}

// withNumber adds a number to the quad that has its parts, or a new one.
func withNumber(list []*quadParts, parts []part, element int) ([]*quadParts, bool) {
	key, first, used := "", 0, int64(0)
	for i, f := range parts {
		lane, right, mask, flips, ok := f.inByte()
		if i == 0 {
			first = lane
		}
		if !ok || lane != first || used&mask != 0 {
			return nil, false
		}
		used |= mask
		key += format.Sprintf("%s %s %d %d %d ", scalar.Key(f.word), keyOf(f.by), right, mask, flips)
	}
	for _, q := range list {
		if q.key == key && q.elements[first] < 0 {
			q.elements[first] = element
			return list, true
		}
	}
	q := &quadParts{key: key, parts: parts, quad: quad{elements: [4]int{-1, -1, -1, -1}}}
	q.elements[first] = element
	return append(list, q), true
}

// wordOf returns a word of four signed bytes, and what numbers have more than these.
func wordOf(parts []part) (word scalar.Expr, more int64) {
	const each = 0x01010101
	used, flipped := int64(0), int64(0)
	for _, f := range parts {
		_, right, mask, flips, _ := f.inByte()
		x := f.word
		if f.by != nil {
			x = scalar.Shr(x, f.by)
		}
		if right > 0 {
			x = scalar.Shr(x, scalar.ConstI(ir.U32, int64(right)))
		} else if right < 0 {
			x = scalar.Shl(x, scalar.ConstI(ir.U32, int64(-right)))
		}
		if mask < 255 {
			x = scalar.And(x, scalar.ConstI(ir.U32, mask*each))
		}
		word, used, flipped = orWord(word, x), used|mask, flipped|flips
	}
	if used > math.MaxInt8 { // unsigned bytes, less 128
		flipped, more = flipped^128, 128
	}
	if flipped != 0 {
		word = scalar.Xor(word, scalar.ConstI(ir.U32, flipped*each))
	}
	return word, more
}

// isFree reports whether a node is no instruction: conversions of integers, and those of the words that a funnel shift takes,
// which is the conversion of its result here.
func isFree(n scalar.Expr) bool {
	return n.Type == ir.U64 || n.Op == scalar.OpBitcast || n.Op == scalar.OpConvert && n.Type.IsInteger() && n.Args[0].Type != ir.U64
}

func orWord(a, b scalar.Expr) scalar.Expr {
	if a == nil {
		return b
	}
	return scalar.Or(a, b)
}
