package ir

import (
	"math"
	"slices"
	"strconv"
)

// Dim is the size of an axis: a number, or a polynomial in named symbols with exact rational
// coefficients, such as batch*seq or 1/2*n-3. Dims are comparable: they are equal exactly if their
// normal forms are.
type Dim struct {
	n   int64
	sym string // normal form of a polynomial that is not constant, else ""
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

// N returns a constant size. A negative n, or one above 2⁵³ (2³¹−1 if int has 32 bits), gives a Dim
// that is not valid.
func N(n int) Dim { return limit(int64(n)) }

// Sym returns the size named by a symbol: a letter or underscore followed by letters, digits and
// underscores. Any other name gives a Dim that is not valid.
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
				return 0, Errorf(ErrSymbol, "no number is given for %q, in the size %s", s, d)
			}
			if v < 0 {
				return 0, Shapef("%q in %s is %d", s, d, v)
			}
			c = c.mul(ratio{int64(v), 1})
		}
		sum = sum.add(c)
	}
	if sum.den != 1 || sum.num < 0 || sum.num > maxDim {
		return 0, Shapef("%s is not a size for the given symbols", d)
	}
	return int(sum.num), nil
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
