package dist_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dist"
	"github.com/rlx-go/rlx/ir/special"
)

var update = flag.Bool("update", false, "write ir/irtest/cases/graphs.json")

type builds func(b *ir.Builder, in []ir.Value) ir.Value

// pairs make a distribution, and another of its kind for [dist.KL], of inputs.
var pairs = map[string]struct {
	parameters int
	of         func(p []ir.Value) dist.Distribution
}{
	"normal":   {2, func(p []ir.Value) dist.Distribution { return dist.Normal{Loc: p[0], Scale: p[1]} }},
	"laplace":  {2, func(p []ir.Value) dist.Distribution { return dist.Laplace{Loc: p[0], Scale: p[1]} }},
	"logistic": {2, func(p []ir.Value) dist.Distribution { return dist.Logistic{Loc: p[0], Scale: p[1]} }},
	"gumbel":   {2, func(p []ir.Value) dist.Distribution { return dist.Gumbel{Loc: p[0], Scale: p[1]} }},
	"uniform":  {2, func(p []ir.Value) dist.Distribution { return dist.Uniform{Low: p[0], High: p[1]} }},
	"studentT": {3, func(p []ir.Value) dist.Distribution { return dist.StudentT{Freedom: p[0], Loc: p[1], Scale: p[2]} }},
	"truncatedNormal": {4, func(p []ir.Value) dist.Distribution {
		return dist.TruncatedNormal{Loc: p[0], Scale: p[1], Low: p[2], High: p[3]}
	}},
	"exponential":     {1, func(p []ir.Value) dist.Distribution { return dist.Exponential{Rate: p[0]} }},
	"gamma":           {2, func(p []ir.Value) dist.Distribution { return dist.Gamma{Shape: p[0], Rate: p[1]} }},
	"beta":            {2, func(p []ir.Value) dist.Distribution { return dist.Beta{A: p[0], B: p[1]} }},
	"dirichlet":       {1, func(p []ir.Value) dist.Distribution { return dist.Dirichlet{Concentration: p[0]} }},
	"bernoulli":       {1, func(p []ir.Value) dist.Distribution { return dist.Bernoulli{Logit: p[0]} }},
	"categorical":     {1, func(p []ir.Value) dist.Distribution { return dist.Categorical{Logits: p[0]} }},
	"poisson":         {1, func(p []ir.Value) dist.Distribution { return dist.Poisson{Rate: p[0]} }},
	"binomial":        {1, func(p []ir.Value) dist.Distribution { return dist.Binomial{Count: 9, P: p[0]} }},
	"binomial of 100": {1, func(p []ir.Value) dist.Distribution { return dist.Binomial{Count: 100, P: p[0]} }},
	"multinomial":     {1, func(p []ir.Value) dist.Distribution { return dist.Multinomial{Count: 9, Logits: p[0]} }},
	"mixture": {3, func(p []ir.Value) dist.Distribution {
		return dist.Mixture{Logits: p[0], Components: dist.Normal{Loc: p[1], Scale: p[2]}}
	}},
}

// methods build with a distribution of the first inputs, another one of the next, and what follows: numbers and a key.
var methods = map[string]func(b *ir.Builder, p, q dist.Distribution, x, key ir.Value) ir.Value{
	"sample": func(b *ir.Builder, p, _ dist.Distribution, _, key ir.Value) ir.Value {
		return p.Sample(b, key, ir.N(2))
	},
	"logProb":  func(b *ir.Builder, p, _ dist.Distribution, x, _ ir.Value) ir.Value { return p.LogProb(b, x) },
	"entropy":  func(b *ir.Builder, p, _ dist.Distribution, _, _ ir.Value) ir.Value { return p.Entropy(b) },
	"mean":     func(b *ir.Builder, p, _ dist.Distribution, _, _ ir.Value) ir.Value { return p.Mean(b) },
	"variance": func(b *ir.Builder, p, _ dist.Distribution, _, _ ir.Value) ir.Value { return p.Variance(b) },
	"kl":       func(b *ir.Builder, p, q dist.Distribution, _, _ ir.Value) ir.Value { return dist.KL(b, p, q) },
}

// functions are those of package special.
var functions = map[string]struct {
	operands int
	of       builds
}{
	"entr":                   {1, func(b *ir.Builder, in []ir.Value) ir.Value { return special.Entr(b, in[0]) }},
	"relEntr":                {2, func(b *ir.Builder, in []ir.Value) ir.Value { return special.RelEntr(b, in[0], in[1]) }},
	"klDiv":                  {2, func(b *ir.Builder, in []ir.Value) ir.Value { return special.KLDiv(b, in[0], in[1]) }},
	"gammaEntropy":           {1, func(b *ir.Builder, in []ir.Value) ir.Value { return special.GammaEntropy(b, in[0]) }},
	"logBeta":                {2, func(b *ir.Builder, in []ir.Value) ir.Value { return special.LogBeta(b, in[0], in[1]) }},
	"stirlingRemainder":      {1, func(b *ir.Builder, in []ir.Value) ir.Value { return special.StirlingRemainder(b, in[0]) }},
	"stirlingRemainderSlope": {1, func(b *ir.Builder, in []ir.Value) ir.Value { return special.StirlingRemainderSlope(b, in[0]) }},
	"erfcx":                  {1, func(b *ir.Builder, in []ir.Value) ir.Value { return special.Erfcx(b, in[0]) }},
	"logNdtr":                {1, func(b *ir.Builder, in []ir.Value) ir.Value { return special.LogNdtr(b, in[0]) }},
	"ndtri":                  {1, func(b *ir.Builder, in []ir.Value) ir.Value { return special.Ndtri(b, in[0]) }},
	"e1":                     {1, func(b *ir.Builder, in []ir.Value) ir.Value { return special.E1(b, in[0]) }},
	"ei":                     {1, func(b *ir.Builder, in []ir.Value) ir.Value { return special.Ei(b, in[0]) }},
	"j0":                     {1, func(b *ir.Builder, in []ir.Value) ir.Value { return special.J0(b, in[0]) }},
	"j1":                     {1, func(b *ir.Builder, in []ir.Value) ir.Value { return special.J1(b, in[0]) }},
	"zeta":                   {2, func(b *ir.Builder, in []ir.Value) ir.Value { return special.Zeta(b, in[0], in[1]) }},
	"gammainc":               {2, func(b *ir.Builder, in []ir.Value) ir.Value { return special.Gammainc(b, in[0], in[1]) }},
	"gammaincc":              {2, func(b *ir.Builder, in []ir.Value) ir.Value { return special.Gammaincc(b, in[0], in[1]) }},
	"betainc":                {3, func(b *ir.Builder, in []ir.Value) ir.Value { return special.Betainc(b, in[0], in[1], in[2]) }},
	"gammaQuantileSlope":     {2, func(b *ir.Builder, in []ir.Value) ir.Value { return special.GammaQuantileSlope(b, in[0], in[1]) }},
}

// others are the functions and distributions of cases of other types than f32.
var others = map[ir.DType][]string{
	ir.F64: {"erfcx", "ei", "j1", "gammainc", "logBeta", "klDiv", "stirlingRemainder", "exponential", "gamma", "studentT", "truncatedNormal", "binomial", "binomial of 100", "multinomial"},
	ir.F16: {"relEntr", "logBeta", "normal", "bernoulli", "dirichlet", "poisson"},
}

// shapes are those of operands, which are broadcast.
var shapes = [][]ir.Dim{{ir.N(3)}, {ir.Sym("n"), ir.N(3)}, {ir.N(3)}, {}}

func inputs(b *ir.Builder, d ir.DType, prefix string, n int) []ir.Value {
	in := make([]ir.Value, n)
	for i := range in {
		in[i] = b.Input(fmt.Sprint(prefix, i), d, shapes[i]...)
	}
	return in
}

// names are those of ports and of functions with own derivatives, which differ between the languages.
var names = regexp.MustCompile(`(graph|input) "[^"]*"`)

// hashOf returns the hash of a graph's text without names, "" for a graph of an unknown formula.
func hashOf(t *testing.T, build func(b *ir.Builder)) string {
	t.Helper()
	g, err := ir.Build("case", build)
	if errors.Is(err, ir.ErrUnsupported) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	text := names.ReplaceAllString(g.String(), "$1")
	text = strings.ReplaceAll(text, "constant 0x010000000000f87f ", "constant nan ") // of another payload than JavaScript's
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16]
}

// The graphs of TypeScript are compared with these by js/test/functions.test.mjs.
func TestGraphsAreThoseOfTypeScript(t *testing.T) {
	got := map[string]string{}
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16} {
		for name, f := range functions {
			if d == ir.F32 || slices.Contains(others[d], name) {
				got[strings.Join([]string{"special", name, d.String()}, " ")] = hashOf(t, func(b *ir.Builder) { b.Output("y", f.of(b, inputs(b, d, "x", f.operands))) })
			}
		}
		for name, made := range pairs {
			for method, f := range methods {
				if d != ir.F32 && (!slices.Contains(others[d], name) || method != "sample" && method != "logProb") {
					continue
				}
				got[strings.Join([]string{"dist", name, method, d.String()}, " ")] = hashOf(t, func(b *ir.Builder) {
					p, q := made.of(inputs(b, d, "p", made.parameters)), made.of(inputs(b, d, "q", made.parameters))
					x, size := d, ir.N(3)
					switch name {
					case "categorical":
						x = ir.U8
					case "mixture":
						size = ir.Sym("n")
					}
					b.Output("y", f(b, p, q, b.Input("x", x, size), b.Input("key", ir.U32, ir.N(2))))
				})
			}
		}
	}
	for _, r := range [][2]int32{{0, 10}, {-100_000, 100_000}, {-1 << 31, 1<<31 - 1}} {
		got[fmt.Sprint("randInt ", r[0], " ", r[1])] = hashOf(t, func(b *ir.Builder) {
			b.Output("y", dist.RandInt(b, b.Input("key", ir.U32, ir.N(2)), r[0], r[1], ir.N(4)))
		})
	}
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "../irtest/cases/graphs.json"
	if *update {
		if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := os.ReadFile(file); err != nil || string(stored) != string(text)+"\n" {
		t.Errorf("%s differs (%v): go test ./ir/dist -update, and see whether TypeScript has the same graphs", file, err)
	}
}
