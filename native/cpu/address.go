package cpu

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// address is the element that each lane of a block loads or stores: base plus the terms plus
// stride times the lane, or the index register where it is not affine.
type address struct {
	base   int
	terms  []term
	stride int
	// run, if not 0, is the number of lanes after which the address restarts, jump elements after
	// the start of the previous run. Point i of a row is at i/run·jump + i%run·stride.
	run, jump int
	start     register // the index in the row of lane 0, where there are runs
	row       int      // the points of a row, where there are runs
	index     register // of a general address
	wide      bool     // lanes differ, or may
	level     level
	// general addresses are not affine: each lane has its index, which adds to base and terms.
	general bool
	// span, if not 0, is the number of elements of which kernels gather those of a general address.
	span int
	// apart means that no two neighbouring lanes of these are in a cache line.
	apart bool
	// most, if not 0, is the number of values from 0 that the only term that is not a coordinate may
	// have for the element to be one of its buffer: kernels compute such addresses.
	most int
	// mask, if not nil, selects the lanes that use the address: the others load
	// element 0.
	mask *value
}

// term is a multiple of a uniform register.
type term struct {
	coef int
	reg  register
}

// key returns a string that equal addresses share.
func (a *address) key() string {
	if a.mask != nil {
		plain := *a
		plain.mask = nil
		return fmt.Sprint(plain.key(), " if ", a.mask.reg.index)
	}
	if a.general {
		return fmt.Sprint("index ", a.index.index, " ", a.base, a.terms)
	}
	var sb strings.Builder
	fmt.Fprint(&sb, a.base, " ", a.stride)
	if a.run > 0 {
		fmt.Fprint(&sb, " run ", a.run, " ", a.jump)
	}
	for _, t := range a.terms {
		fmt.Fprint(&sb, " ", t.coef, "*", t.reg.index)
	}
	return sb.String()
}

// address compiles an offset. A sum of multiples of coordinates that fit the order of the
// lanes becomes a base and a stride.
func (m *nestBuilder) address(offset scalar.Expr, buf *buffer) *address {
	sum := affineOf(offset).joined(buf.elems)
	a := &address{base: sum.constant}
	if cond, inside := sum.guard(); cond != nil {
		return m.masked(offset, cond, inside, buf)
	}
	if !m.runs(a, sum) {
		return m.general(offset)
	}
	switch s := m.n.wideSpace(); {
	case a.run > 0:
		a.wide, a.level, a.start, a.row = true, m.n.wideLevel(), s.start, s.row
	case a.stride != 0:
		a.wide, a.level = true, m.n.wideLevel()
		a.terms = append(a.terms, term{a.stride, s.start})
	}
	for _, t := range sum.terms {
		if c := m.coords[t.of.Name]; t.of.Op == scalar.OpVar && c != nil && m.named[c.name].wide {
			continue
		}
		v := m.expr(t.of)
		if v.wide {
			return m.general(offset)
		}
		a.terms = append(a.terms, term{t.coef, v.reg})
		a.level = max(a.level, v.level)
	}
	return a
}

// masked compiles an offset that is affine under a condition and 0 elsewhere, as loads near an
// edge are kept in bounds. The affine part may fit the order of the lanes although the
// condition does not.
func (m *nestBuilder) masked(offset, cond, inside scalar.Expr, buf *buffer) *address {
	a := m.address(inside, buf)
	if a.general || a.mask != nil || a.run > 0 {
		return m.general(offset)
	}
	mask := m.expr(cond)
	a.wide, a.level = a.wide || mask.wide, max(a.level, mask.level)
	a.mask = &mask
	return a
}

// guard returns the condition that guards a whole sum, and the sum without it; nil if there is
// none.
func (a affine) guard() (cond, inside scalar.Expr) {
	if a.constant != 0 || len(a.terms) == 0 {
		return nil, nil
	}
	for _, t := range a.terms {
		if t.of.Op != scalar.OpSelect || cond != nil && t.of.Args[0] != cond {
			return nil, nil
		}
		if c, ok := t.of.Args[2].IntConst(); !ok || c != 0 {
			return nil, nil
		}
		cond = t.of.Args[0]
		part := scalar.Mul(loop.Long(t.of.Args[1]), loop.Int(t.coef))
		if inside == nil {
			inside = part
		} else {
			inside = scalar.Add(inside, part)
		}
	}
	return cond, inside
}

// bound sets [address.most] of the address of an offset in a buffer.
func (m *nestBuilder) bound(a *address, offset scalar.Expr, buf *buffer) {
	sum, computed := affineOf(offset).joined(buf.elems), affineTerm{}
	if a.general || sum.constant < 0 {
		return
	}
	s, rest := scalar.NewSimplifier(), sum.constant
	for _, t := range sum.terms {
		lo, hi, ok := s.Range(t.of)
		switch {
		case t.coef < 0:
			return
		case t.of.Op == scalar.OpVar && ok && lo >= 0:
			rest += t.coef * int(hi)
		case computed.of != nil:
			return
		default:
			computed = t
		}
	}
	if computed.of != nil && rest < buf.elems {
		a.most = min((buf.elems-1-rest)/computed.coef+1, math.MaxInt32)
	}
}

func (m *nestBuilder) general(offset scalar.Expr) *address {
	v := m.expr(offset)
	return &address{general: true, index: v.reg, wide: v.wide, level: v.level}
}

// wideSpace returns the coordinates over which the nest is vectorised.
func (n *nest) wideSpace() *space {
	if n.wideInner {
		return &n.inner
	}
	return &n.outer
}

// wideLevel returns the level of values that differ between lanes.
func (n *nest) wideLevel() level {
	if n.wideInner {
		return perElement
	}
	return perBlock
}

// runs sets the stride of an address, and its runs if the lanes are not equally spaced. It returns
// false for lanes of more than two levels.
func (m *nestBuilder) runs(a *address, sum affine) bool {
	wides := m.n.wideSpace().wides()
	length, seen := 1, false // of the run so far
	for i := len(wides) - 1; i >= 0; i-- {
		x := wides[i]
		if x.size == 1 {
			continue
		}
		c := sum.coef(x.name)
		switch {
		case !seen:
			a.stride, seen = c, true
		case a.run == 0 && c == a.stride*length, a.run > 0 && c == a.jump*(length/a.run):
		case a.run == 0:
			a.run, a.jump = length, c
		default:
			return false
		}
		length *= x.size
	}
	return true
}

// affine is a constant plus multiples of variables or of opaque expressions.
type affine struct {
	constant int
	terms    []affineTerm
}

type affineTerm struct {
	coef int
	of   scalar.Expr
}

// joined has one term in place of several computed ones, as kernels add one computed place to an address, of one of
// elems elements. A sum that a condition guards as a whole stays.
func (a affine) joined(elems int) affine {
	if cond, _ := a.guard(); cond != nil {
		return a
	}
	isComputed := func(t affineTerm) bool { return t.of.Op != scalar.OpVar && t.of.Type == ir.I32 }
	var parts []affineTerm
	by := 0
	for _, t := range a.terms {
		if isComputed(t) {
			parts, by = append(parts, t), gcd(by, t.coef)
		}
	}
	if len(parts) < 2 {
		return a
	}
	sum, guarded := loop.Int(0), elems/by <= math.MaxInt32
	for _, t := range parts {
		guarded = guarded && t.of.Op == scalar.OpSelect // which keeps the place in bounds
		if t.coef < 0 || t.coef/by > math.MaxInt32 {
			return a
		}
		sum = scalar.Add(sum, scalar.Mul(t.of, loop.Int(t.coef/by)))
	}
	if _, _, ok := scalar.NewSimplifier().Range(sum); !ok && !guarded {
		return a // the sum may overflow
	}
	return affine{a.constant, append(slices.DeleteFunc(slices.Clone(a.terms), isComputed), affineTerm{by, sum})}
}

// coef returns the coefficient of a variable.
func (a affine) coef(name string) int {
	for _, t := range a.terms {
		if t.of.Op == scalar.OpVar && t.of.Name == name {
			return t.coef
		}
	}
	return 0
}

// affineOf decomposes an index into an affine form. Indices are positions in memory, so they never
// overflow.
func affineOf(e scalar.Expr) affine {
	var out affine
	var add func(e scalar.Expr, by int)
	add = func(e scalar.Expr, by int) {
		if c, ok := e.IntConst(); ok {
			out.constant += by * int(c)
			return
		}
		switch e.Op {
		case scalar.OpConvert:
			if e.Type == ir.I64 && e.Args[0].Type == ir.I32 {
				add(e.Args[0], by)
				return
			}
		case scalar.OpAdd:
			add(e.Args[0], by)
			add(e.Args[1], by)
			return
		case scalar.OpSub:
			add(e.Args[0], by)
			add(e.Args[1], -by)
			return
		case scalar.OpNeg:
			add(e.Args[0], -by)
			return
		case scalar.OpMul:
			for i := range 2 {
				if c, ok := e.Args[i].IntConst(); ok && math.Abs(float64(c)*float64(by)) < 1<<52 {
					add(e.Args[1-i], by*int(c))
					return
				}
			}
		case scalar.OpFloorDiv, scalar.OpMod:
			if v, slope, at, ok := lineOf(e); ok {
				out.constant += by * at
				add(v, by*slope)
				return
			}
		}
		for i := range out.terms {
			if t := &out.terms[i]; t.of == e || t.of.Op == scalar.OpVar && e.Op == scalar.OpVar && t.of.Name == e.Name {
				t.coef += by
				return
			}
		}
		out.terms = append(out.terms, affineTerm{by, e})
	}
	add(e, 1)
	kept := out.terms[:0]
	for _, t := range out.terms {
		if t.coef != 0 {
			kept = append(kept, t)
		}
	}
	out.terms = kept
	sort.SliceStable(out.terms, func(i, j int) bool { return out.terms[i].coef > out.terms[j].coef })
	return out
}

// lineOf returns a quotient or remainder of a variable v of few values as slope·v + at, and false where it is not affine. The
// phases of a convolution whose operand is dilated by 2 have such offsets.
func lineOf(e scalar.Expr) (v scalar.Expr, slope, at int, ok bool) {
	const most = 8
	by, isConst := e.Args[1].IntConst()
	of := affineOf(e.Args[0])
	if !isConst || by <= 0 || len(of.terms) != 1 || of.terms[0].of.Op != scalar.OpVar {
		return v, 0, 0, false
	}
	v = of.terms[0].of
	lo, hi, known := scalar.Range(v)
	if !known || hi <= lo || hi-lo >= most {
		return v, 0, 0, false
	}
	value := func(x int64) int {
		n := int64(of.constant) + int64(of.terms[0].coef)*x
		rest := (n%by + by) % by
		if e.Op == scalar.OpMod {
			return int(rest)
		}
		return int((n - rest) / by)
	}
	slope = value(lo+1) - value(lo)
	at = value(lo) - slope*int(lo)
	for x := lo; x <= hi; x++ {
		if value(x) != slope*int(x)+at {
			return v, 0, 0, false
		}
	}
	return v, slope, at, true
}

// gcd returns the greatest common divisor.
func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// coordinateOf returns the coordinate v of an axis of another size.
func coordinateOf(v scalar.Expr, size int) scalar.Expr {
	if size == 1 {
		return loop.Int(0)
	}
	return scalar.NewVar(v.Name, v.Type, 0, int64(size-1))
}

// divides reports whether a number divides all coefficients.
func (a affine) divides(by int) bool {
	return !slices.ContainsFunc(a.terms, func(t affineTerm) bool { return t.coef%by != 0 })
}

// quotient returns a multiple of a number, divided by it.
func (a affine) quotient(by int) affine {
	out := affine{constant: a.constant / by}
	for _, t := range a.terms {
		if t.coef != 0 {
			out.terms = append(out.terms, affineTerm{t.coef / by, t.of})
		}
	}
	return out
}

// expr returns the sum.
func (a affine) expr() scalar.Expr {
	sum := loop.Int(a.constant)
	for _, t := range a.terms {
		sum = scalar.Add(sum, scalar.Mul(t.of, loop.Int(t.coef)))
	}
	return scalar.Simplify(sum)
}
