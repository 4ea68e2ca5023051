package ir

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func parseDim(t *testing.T, s string) Dim {
	t.Helper()
	d, err := ParseDim(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDimsHaveOneNormalForm(t *testing.T) {
	tests := []struct{ in, want string }{
		{"0", "0"},
		{"007", "7"},
		{N(maxDim).String(), N(maxDim).String()},
		{"n", "n"},
		{"b*a", "a*b"},
		{"a*2*b", "2*a*b"},
		{"n/2", "1/2*n"},
		{"4/6*n", "2/3*n"},
		{"n+n", "2*n"},
		{"n-n", "0"},
		{"n-n+3", "3"},
		{"1/2+1/2", "1"},
		{"-3+n", "n-3"},
		{"1+n+n*n", "n*n+n+1"},
		{"b+a", "a+b"},
		{"a*c+a*b+b*c", "a*b+a*c+b*c"},
		{"-n", "-n"},
		{"1/2*n+1/2", "1/2*n+1/2"},
		{"_a1*_a1", "_a1*_a1"},
	}
	for _, tt := range tests {
		d := parseDim(t, tt.in)
		if d.String() != tt.want {
			t.Errorf("%s is printed as %s, want %s", tt.in, d, tt.want)
		}
		if d != parseDim(t, tt.want) {
			t.Errorf("%s does not equal its own normal form %s", tt.in, tt.want)
		}
	}
}

func TestParseDimRefuses(t *testing.T) {
	for _, s := range []string{
		"", "-", "+", "n+", "n*", "*n", "n**2", "1/0", "n/n", "1.5", " n", "n n", "--n", "1/2", "-1", "2n",
		"9007199254740993", "9007199254740992*2*n", "é", "n/", "/2",
		strings.Repeat("n*", maxDegree) + "n",
		strings.Repeat("1+", maxTerms) + "n",
	} {
		if d, err := ParseDim(s); !errors.Is(err, ErrSyntax) || d.Valid() {
			t.Errorf("ParseDim(%q) = %v, %v", s, d, err)
		}
	}
}

func TestDimArithmetic(t *testing.T) {
	n, m := Sym("n"), Sym("m")
	div := func(d, e Dim) Dim { q, _ := d.Div(e); return q }
	tests := []struct {
		name string
		got  Dim
		want string
	}{
		{"add", n.Add(m), "m+n"},
		{"add numbers", N(2).Add(N(3)), "5"},
		{"subtract to a number", n.Add(N(3)).Sub(n), "3"},
		{"difference of squares", n.Add(m).Mul(n.Sub(m)), "-m*m+n*n"},
		{"large denominators", parseDim(t, "n/100000000+n/100000000"), "1/50000000*n"},
		{"negative in between", N(2).Sub(N(5)).Add(N(4)), "1"},
		{"zero product", n.Mul(N(0)), "0"},
		{"divide numbers", div(N(6), N(3)), "2"},
		{"divide to a fraction", div(n.Mul(N(2)), N(6)), "1/3*n"},
		{"divide by a symbol", div(n.Mul(m), m), "n"},
		{"divide polynomials", div(parseDim(t, "n*n-m*m"), n.Add(m)), "-m+n"},
		{"divide zero", div(N(0), n), "0"},
		{"divide by itself", div(n.Sub(N(1)), n.Sub(N(1))), "1"},
	}
	for _, tt := range tests {
		if tt.got.String() != tt.want || !tt.got.Valid() {
			t.Errorf("%s: %s, want %s", tt.name, tt.got, tt.want)
		}
	}
}

func TestDimDivRefuses(t *testing.T) {
	n, m := Sym("n"), Sym("m")
	for _, tt := range [][2]Dim{
		{N(7), N(2)},
		{N(7), N(0)},
		{N(7), n},
		{n, N(0)},
		{n, m},
		{n.Add(N(1)), n},
		{n.Mul(n).Add(m), n.Add(m)},
		{N(-4), N(2)},
		{Sym("1x"), N(2)},
	} {
		if q, err := tt[0].Div(tt[1]); !errors.Is(err, ErrShape) || q.Valid() {
			t.Errorf("%s / %s = %v, %v", tt[0], tt[1], q, err)
		}
	}
}

func TestDimOverflowIsNotValid(t *testing.T) {
	big, n := N(maxDim), Sym("n")
	power := N(1)
	for range maxDegree + 1 {
		power = power.Mul(n)
	}
	sum := N(0)
	for i := range maxTerms + 1 {
		sum = sum.Add(Sym("s" + strings.Repeat("x", i)))
	}
	tests := map[string]Dim{
		"negative":                  N(-1),
		"number":                    limit(maxDim + 1),
		"sum":                       big.Add(N(1)),
		"product":                   big.Mul(N(2)),
		"coefficient":               n.Mul(big).Mul(N(2)),
		"coefficient next to terms": n.Mul(big).Add(N(1)).Mul(N(3)),
		"sum of coefficients":       n.Mul(big).Add(n.Mul(big)),
		"invalid times zero":        big.Mul(N(2)).Mul(N(0)),
		"invalid times symbol":      big.Mul(N(2)).Mul(n),
		"invalid minus itself":      big.Mul(N(2)).Sub(big.Mul(N(2))),
		"bad symbol":                Sym("a-b"),
		"no symbol":                 Sym(""),
		"degree":                    power,
		"terms":                     sum,
	}
	for name, d := range tests {
		if d.Valid() {
			t.Errorf("%s: %s is valid", name, d)
		}
		if _, ok := d.Const(); ok {
			t.Errorf("%s: %s is a number", name, d)
		}
	}
}

func TestDimBind(t *testing.T) {
	values := map[string]int{"n": 6, "m": 5, "neg": -1, "huge": maxDim}
	tests := []struct {
		dim  string
		want int
		kind error
	}{
		{"4", 4, nil},
		{"n", 6, nil},
		{"n*m-n/2+1", 28, nil},
		{"1/4*n*m+1/2*m", 10, nil},
		{"m/2", 0, ErrShape},
		{"m-n", 0, ErrShape},
		{"neg", 0, ErrShape},
		{"neg*neg", 0, ErrShape},
		{"huge*huge", 0, ErrShape},
		{"k*n", 0, ErrSymbol},
	}
	for _, tt := range tests {
		got, err := parseDim(t, tt.dim).Bind(values)
		if got != tt.want || !errors.Is(err, tt.kind) {
			t.Errorf("%s is %d, %v; want %d, %v", tt.dim, got, err, tt.want, tt.kind)
		}
	}
	if _, err := N(-1).Bind(nil); !errors.Is(err, ErrShape) {
		t.Errorf("a negative size binds: %v", err)
	}
}

// Arithmetic on polynomials must agree with arithmetic on their values.
func TestDimArithmeticAgreesWithNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	values := map[string]int{"a": 60, "b": 120, "c": 180}
	random := func() Dim {
		d := N(rng.IntN(4))
		for range 1 + rng.IntN(3) {
			d = d.Add(N(rng.IntN(5)).Mul(Sym([]string{"a", "b", "c"}[rng.IntN(3)])))
		}
		return d
	}
	at := func(d Dim) int {
		v, err := d.Bind(values)
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		return v
	}
	for range 2000 {
		d, e := random(), random()
		if got, want := at(d.Add(e)), at(d)+at(e); got != want {
			t.Errorf("%s + %s is %d, want %d", d, e, got, want)
		}
		p := d.Mul(e)
		if got, want := at(p), at(d)*at(e); got != want {
			t.Errorf("%s · %s is %d, want %d", d, e, got, want)
		}
		if e.Is(0) {
			continue
		}
		if q, err := p.Div(e); err != nil || q != d {
			t.Errorf("%s / %s = %v, %v; want %s", p, e, q, err, d)
		}
	}
}

func FuzzDim(f *testing.F) {
	for _, s := range []string{"n", "4", "batch*seq", "1/2*n-3", "a*b+a*c-7/3*b", "-n", N(maxDim).String(), "n/2"} {
		f.Add(s, "m+1")
	}
	f.Fuzz(func(t *testing.T, s, u string) {
		d, err := ParseDim(s)
		if err != nil {
			return
		}
		again, err := ParseDim(d.String())
		if err != nil || again != d {
			t.Fatalf("%q is printed as %q, which is read as %v, %v", s, d, again, err)
		}
		e, err := ParseDim(u)
		if err != nil {
			return
		}
		if back := d.Add(e).Sub(e); back.Valid() && back != d {
			t.Errorf("%s + %s − %[2]s = %s", d, e, back)
		}
		p := d.Mul(e)
		if !p.Valid() || e.Is(0) {
			return
		}
		if p != e.Mul(d) {
			t.Errorf("%s · %s does not commute", d, e)
		}
		if q, err := p.Div(e); err == nil && q != d {
			t.Errorf("%s / %s = %s, want %s", p, e, q, d)
		}
	})
}

func TestDimSubstitute(t *testing.T) {
	values := map[string]Dim{"n": Sym("k").Mul(N(2)), "m": N(3), "bad": Sym("a b")}
	for text, want := range map[string]string{
		"n*m+2": "6*k+2", "n*n": "4*k*k", "n/2": "k", "other-m": "other-3", "m/2": "invalid", "2-m": "-1", "bad": "invalid", "7": "7",
	} {
		if got := parseDim(t, text).Substitute(values); got.String() != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}
