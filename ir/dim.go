package ir

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Dim is the size of an axis: a number, or a polynomial in named symbols with exact rational
// coefficients, such as batch*seq or 1/2*n-3. Dims are comparable: they are equal exactly if their
// normal forms are.
type Dim struct {
	n   int64
	sym string // normal form of a polynomial, "" for a constant
}

// invalidDim is the result of overflow and of negative sizes.
var invalidDim = Dim{n: math.MinInt64}

// maxDim limits every number inside a Dim, so that products cannot overflow undetected and every
// constant is an int. maxTerms and maxDegree limit the polynomials, which repeated products would
// grow exponentially.
const (
	maxDim    = min(1<<53, math.MaxInt)
	maxTerms  = 64
	maxDegree = 32
)

// N returns a constant size. For a negative n, or one above 2⁵³ (2³¹−1 if int has 32 bits), the Dim
// is not valid.
func N(n int) Dim { return limit(int64(n)) }

// Sym returns a symbolic size. The name is a letter or underscore followed by letters, digits and
// underscores; for any other name the Dim is not valid.
func Sym(name string) Dim {
	if !isSymbol(name) {
		return invalidDim
	}
	return Dim{sym: name}
}

// Valid reports whether d is a size: not negative and not the result of an overflow.
func (d Dim) Valid() bool { return d.sym != "" || d.n >= 0 }

// Const returns the size as a number, or false if it is symbolic or not valid.
func (d Dim) Const() (int, bool) { return int(d.n), d.sym == "" && d.n >= 0 }

// Is reports whether d is the constant n.
func (d Dim) Is(n int) bool { return d.sym == "" && d.n == int64(n) }

// String returns the normal form, as in "batch*seq", "1/2*n-3" or "4".
func (d Dim) String() string {
	switch {
	case d.sym != "":
		return d.sym
	case d == invalidDim:
		return "invalid"
	}
	return strconv.FormatInt(d.n, 10)
}

// Add returns d + e.
func (d Dim) Add(e Dim) Dim { return combine(d, e, 1) }

// Sub returns d − e.
func (d Dim) Sub(e Dim) Dim { return combine(d, e, -1) }

// Mul returns d · e.
func (d Dim) Mul(e Dim) Dim {
	if d.sym == "" && e.sym == "" {
		return mulInt(d, e)
	}
	return dimOf(d.poly().mul(e.poly()))
}

// Div returns d / e if that is a polynomial, as in batch*seq/seq or n/2. A constant must be
// divisible. A symbolic quotient is checked when its symbols are bound: it must then be an integer.
// Otherwise the error is of kind [ErrShape].
func (d Dim) Div(e Dim) (Dim, error) {
	if e.Is(0) || !d.Valid() || !e.Valid() {
		return invalidDim, Shapef("%s cannot be divided by %s", d, e)
	}
	q, ok := d.poly().div(e.poly())
	if r := dimOf(q); ok && r.Valid() {
		return r, nil
	}
	return invalidDim, Shapef("%s is not a multiple of %s", d, e)
}

// Symbols returns the names of the symbols in d, sorted.
func (d Dim) Symbols() []string {
	set := map[string]bool{}
	for _, t := range d.poly() {
		for _, s := range t.symbols {
			set[s] = true
		}
	}
	return sortedKeys(set)
}

// Bind returns d with its symbols replaced by numbers. The error is of kind [ErrSymbol] if one is
// missing, and [ErrShape] if the result is not a non-negative integer.
func (d Dim) Bind(values map[string]int) (int, error) {
	if n, ok := d.Const(); ok {
		return n, nil
	}
	sum := ratio{0, 1}
	for _, t := range d.poly() {
		c := t.coef
		for _, s := range t.symbols {
			v, ok := values[s]
			if !ok {
				return 0, Errorf(ErrSymbol, "symbol %q of size %s has no value", s, d)
			}
			if v < 0 {
				return 0, Shapef("symbol %q of size %s is %d; it must be 0 or greater", s, d, v)
			}
			c = c.mul(ratio{int64(v), 1})
		}
		sum = sum.add(c)
	}
	if sum.den != 1 || sum.num < 0 || sum.num > maxDim {
		return 0, Shapef("size %s is negative, fractional or too large for the given symbols", d)
	}
	return int(sum.num), nil
}

// Substitute returns d with its symbols replaced by sizes, some of which may be symbolic. Symbols
// without a size remain. The result is not valid if it is a constant that is negative or no
// integer.
func (d Dim) Substitute(values map[string]Dim) Dim {
	if d.sym == "" {
		return d
	}
	var sum poly
	for _, t := range d.poly() {
		product := poly{{t.coef, nil}}
		for _, s := range t.symbols {
			v, given := values[s]
			if !given {
				v = Sym(s)
			}
			if v == invalidDim {
				return invalidDim
			}
			product = product.mul(v.poly())
		}
		sum = append(sum, product...)
	}
	return dimOf(sum)
}

// ParseDim reads the normal form written by [Dim.String], and any sum of products such as
// seq*2*batch-n/2+1.
func ParseDim(s string) (Dim, error) {
	p, ok := parsePoly(s)
	d := dimOf(p)
	if !ok || !d.Valid() {
		return invalidDim, Errorf(ErrSyntax, "%q is not a size", s)
	}
	return d, nil
}

func combine(d, e Dim, sign int64) Dim {
	if d == invalidDim || e == invalidDim {
		return invalidDim
	}
	if d.sym == "" && e.sym == "" {
		return limit(d.n + sign*e.n)
	}
	p := d.poly()
	for _, t := range e.poly() {
		p = append(p, term{t.coef.mul(ratio{sign, 1}), t.symbols})
	}
	return dimOf(p)
}

func limit(n int64) Dim {
	if n > maxDim || n < -maxDim {
		return invalidDim
	}
	return Dim{n: n}
}

func mulInt(d, e Dim) Dim {
	if d == invalidDim || e == invalidDim {
		return invalidDim
	}
	if d.n != 0 && e.n != 0 && math.Abs(float64(d.n))*math.Abs(float64(e.n)) > maxDim {
		return invalidDim
	}
	return Dim{n: d.n * e.n}
}

func sortedKeys[T any](set map[string]T) []string {
	out := make([]string, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// poly is a sum of terms. In normal form no two terms have the same symbols, no coefficient is 0,
// and terms are sorted by decreasing degree, then by symbols.
type poly []term

type term struct {
	coef    ratio
	symbols []string // sorted, repeated for powers
}

func (d Dim) poly() poly {
	if d.sym == "" {
		return poly{{ratio{d.n, 1}, nil}}
	}
	p, _ := parsePoly(d.sym)
	return p
}

func dimOf(p poly) Dim {
	p, ok := p.normal()
	switch {
	case !ok:
		return invalidDim
	case len(p) == 0:
		return Dim{}
	case len(p) == 1 && len(p[0].symbols) == 0:
		if p[0].coef.den != 1 {
			return invalidDim
		}
		return limit(p[0].coef.num)
	}
	return Dim{sym: p.String()}
}

func (p poly) normal() (poly, bool) {
	byKey := map[string]int{}
	var out poly
	for _, t := range p {
		key := strings.Join(t.symbols, "*")
		i, ok := byKey[key]
		if !ok {
			i, byKey[key] = len(out), len(out)
			out = append(out, term{ratio{0, 1}, t.symbols})
		}
		out[i].coef = out[i].coef.add(t.coef)
	}
	for _, t := range out {
		if !t.coef.valid() || len(t.symbols) > maxDegree {
			return nil, false
		}
	}
	out = slices.DeleteFunc(out, func(t term) bool { return t.coef.num == 0 })
	if len(out) > maxTerms {
		return nil, false
	}
	for i := range out { // a linear search: there are few terms
		for ; i > 0 && out[i].precedes(out[i-1]); i-- {
			out[i-1], out[i] = out[i], out[i-1]
		}
	}
	return out, true
}

// precedes is a monomial order, which polynomial division requires.
func (t term) precedes(u term) bool {
	if len(t.symbols) != len(u.symbols) {
		return len(t.symbols) > len(u.symbols)
	}
	return slices.Compare(t.symbols, u.symbols) < 0
}

func (p poly) mul(q poly) poly {
	var out poly
	for _, t := range p {
		for _, u := range q {
			s := slices.Concat(t.symbols, u.symbols)
			slices.Sort(s)
			out = append(out, term{t.coef.mul(u.coef), s})
		}
	}
	return out
}

// div is long division by the leading term; it reports whether the remainder is zero.
func (p poly) div(q poly) (poly, bool) {
	p, okP := p.normal()
	q, okQ := q.normal()
	if !okP || !okQ || len(q) == 0 {
		return nil, false
	}
	var out poly
	for len(p) > 0 {
		rest, ok := removeSymbols(p[0].symbols, q[0].symbols)
		if !ok || len(out) > 64 {
			return nil, false
		}
		t := term{p[0].coef.mul(ratio{q[0].coef.den, q[0].coef.num}.reduced()), rest}
		out = append(out, t)
		p = append(p, poly{{t.coef.mul(ratio{-1, 1}), t.symbols}}.mul(q)...)
		if p, ok = p.normal(); !ok {
			return nil, false
		}
	}
	return out, true
}

// removeSymbols removes the sorted symbols t from s, or reports that s lacks one.
func removeSymbols(s, t []string) ([]string, bool) {
	var out []string
	i := 0
	for _, x := range s {
		if i < len(t) && t[i] == x {
			i++
			continue
		}
		out = append(out, x)
	}
	return out, i == len(t)
}

func (p poly) String() string {
	var sb strings.Builder
	for i, t := range p {
		c := t.coef
		if c.num < 0 {
			sb.WriteByte('-')
			c.num = -c.num
		} else if i > 0 {
			sb.WriteByte('+')
		}
		factors := slices.Clone(t.symbols)
		if c != (ratio{1, 1}) || len(factors) == 0 {
			factors = slices.Insert(factors, 0, c.String())
		}
		sb.WriteString(strings.Join(factors, "*"))
	}
	return sb.String()
}

func parsePoly(s string) (poly, bool) {
	var p poly
	for len(s) > 0 {
		sign := int64(1)
		if s[0] == '+' || s[0] == '-' {
			if s[0] == '-' {
				sign = -1
			}
			s = s[1:]
		} else if len(p) > 0 {
			return nil, false
		}
		end := strings.IndexAny(s, "+-")
		if end < 0 {
			end = len(s)
		}
		t, ok := parseTerm(s[:end])
		if !ok || len(p) == maxTerms {
			return nil, false
		}
		t.coef = t.coef.mul(ratio{sign, 1})
		p, s = append(p, t), s[end:]
	}
	return p, len(p) > 0
}

func parseTerm(s string) (term, bool) {
	t := term{coef: ratio{1, 1}}
	for _, f := range strings.SplitN(s, "*", maxDegree+2) {
		num, den, hasDen := strings.Cut(f, "/")
		a, b, err := uint64(1), uint64(1), error(nil)
		if isSymbol(num) {
			t.symbols = append(t.symbols, num)
		} else {
			a, err = strconv.ParseUint(num, 10, 64)
		}
		if err == nil && hasDen {
			b, err = strconv.ParseUint(den, 10, 64)
		}
		if err != nil || b == 0 || max(a, b) > maxDim {
			return t, false
		}
		t.coef = t.coef.mul(ratio{int64(a), int64(b)}.reduced())
	}
	slices.Sort(t.symbols)
	return t, t.coef.valid()
}

func isSymbol(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// ratio is a reduced fraction with a positive denominator; a zero denominator marks an overflow.
type ratio struct{ num, den int64 }

func (r ratio) valid() bool { return r.den > 0 }

func (r ratio) reduced() ratio {
	if r.den == 0 {
		return ratio{}
	}
	g := gcd(r.num, r.den)
	if r.den < 0 {
		g = -g
	}
	r.num, r.den = r.num/g, r.den/g
	if r.num > maxDim || r.num < -maxDim || r.den > maxDim {
		return ratio{}
	}
	return r
}

func (r ratio) mul(s ratio) ratio {
	if !r.valid() || !s.valid() {
		return ratio{}
	}
	// Cancel common factors first to avoid overflow.
	a, b := ratio{r.num, s.den}.reduced(), ratio{s.num, r.den}.reduced()
	if tooLarge(a.num, b.num) || tooLarge(a.den, b.den) {
		return ratio{}
	}
	return ratio{a.num * b.num, a.den * b.den}.reduced()
}

func (r ratio) add(s ratio) ratio {
	if !r.valid() || !s.valid() {
		return ratio{}
	}
	// Use the least common denominator to avoid overflow.
	g := gcd(r.den, s.den)
	if tooLarge(r.num, s.den/g) || tooLarge(s.num, r.den/g) || tooLarge(r.den, s.den/g) {
		return ratio{}
	}
	return ratio{r.num*(s.den/g) + s.num*(r.den/g), r.den * (s.den / g)}.reduced()
}

func (r ratio) String() string {
	s := strconv.FormatInt(r.num, 10)
	if r.den != 1 {
		s += "/" + strconv.FormatInt(r.den, 10)
	}
	return s
}

func tooLarge(a, b int64) bool {
	return math.Abs(float64(a))*math.Abs(float64(b)) > maxDim
}

// gcd returns a nonzero value if a or b is nonzero.
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	if a < 0 {
		return -a
	}
	return a
}
