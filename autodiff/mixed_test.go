package autodiff_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// partials are derivatives by the variables that their keys name: "xxy" is the
// third derivative, twice by x and once by y, in that order if the table has the
// others too. What a table omits is 0.
type partials map[string]float64

// mixedCase is a function of two numbers at a point where its rule has a guard.
type mixedCase struct {
	name string
	f    func(b *ir.Builder, x, y ir.Value) ir.Value
	x, y float64
	want partials
}

// powerAt are the derivatives of x^y for x > 0 in closed form.
func powerAt(x, y float64) partials {
	l, p := math.Log(x), func(k float64) float64 { return math.Pow(x, y-k) }
	return partials{
		"": p(0), "x": y * p(1), "y": p(0) * l,
		"xx": y * (y - 1) * p(2), "xy": p(1) * (1 + y*l), "yy": p(0) * l * l,
		"xxx": y * (y - 1) * (y - 2) * p(3), "xxy": p(2) * (2*y - 1 + y*(y-1)*l), "xyy": p(1) * l * (2 + y*l), "yyy": p(0) * l * l * l,
	}
}

// quotient are the derivatives of x / y.
func quotient(x, y float64) partials {
	return partials{
		"": x / y, "x": 1 / y, "y": -x / y / y, "xy": -1 / y / y, "yy": 2 * x / y / y / y,
		"xyy": 2 / y / y / y, "yyy": -6 * x / y / y / y / y,
	}
}

// angle are the derivatives of atan2(x, y), whose rules divide by x² + y².
func angle(x, y float64) partials {
	r := x*x + y*y
	xx, xy := -2*x*y/r/r, (x*x-y*y)/r/r
	xxx := (6*x*x*y - 2*y*y*y) / r / r / r
	xxy := (6*x*y*y - 2*x*x*x) / r / r / r
	return partials{
		"": math.Atan2(x, y), "x": y / r, "y": -x / r, "xx": xx, "xy": xy, "yy": -xx,
		"xxx": xxx, "xxy": xxy, "xyy": -xxx, "yyy": -xxy,
	}
}

func product(b *ir.Builder, v ...ir.Value) ir.Value { return ops.ReduceProd(b, stack(b, v...)) }

var mixed = []mixedCase{
	{"pow with exponent 0", ops.Pow, 2, 0, powerAt(2, 0)},
	{"pow with exponent 1", ops.Pow, 3, 1, powerAt(3, 1)},
	{"pow with exponent 2", ops.Pow, 0.5, 2, powerAt(0.5, 2)},
	{"pow of base 1", ops.Pow, 1, 0, powerAt(1, 0)},
	{"pow of base 1 and exponent 1", ops.Pow, 1, 1, powerAt(1, 1)},
	{"pow", ops.Pow, 0.7, -1.5, powerAt(0.7, -1.5)},
	// Limits for x → 0 from above. Two derivatives by x make 0^0 of 0², whose
	// exponent counts as fixed: by y first it is infinite.
	{"pow of base 0 squared", ops.Pow, 0, 2, partials{"xx": 2, "xxy": 3, "xyx": -inf, "yxx": -inf}},
	{"pow of base 0 cubed", ops.Pow, 0, 3, partials{"xxx": 6}},
	{"pow of base 0 to the fourth", ops.Pow, 0, 4, nil},
	{"product", ops.Mul, 0, 0, partials{"xy": 1}},
	{"masking product", ops.MulZero, 0, 0, partials{"xy": 1}},
	{"masking product by 0", ops.MulZero, 0, 3, partials{"x": 3, "xy": 1}},
	{"square times a masked factor", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.MulZero(b, ops.Mul(b, x, x), y)
	}, 0, 0, partials{"xxy": 2}},
	{"quotient of 0", ops.Div, 0, 2, quotient(0, 2)},
	{"quotient", ops.Div, 3, -2, quotient(3, -2)},
	{"remainder", ops.Rem, 5, 3, partials{"": 2, "x": 1, "y": -1}},
	{"angle on one axis", ops.Atan2, 0, 2, angle(0, 2)},
	{"angle on the other axis", ops.Atan2, -2, 0, angle(-2, 0)},
	{"angle from the origin", ops.Atan2, 0, 0, nil},
	{"angle of a point near the origin", ops.Atan2, 1e-60, -2e-60, angle(1e-60, -2e-60)},
	{"product of elements with one zero", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return product(b, x, y, x)
	}, 0, 3, partials{"xx": 6, "xxy": 2}},
	{"product of elements with two zeros", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return product(b, x, y, x)
	}, 0, 0, partials{"xxy": 2}},
	{"product of one zero and a number", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return product(b, x, y, constant(b, 5))
	}, 0, 2, partials{"x": 10, "xy": 5}},
	{"product by scatter of elements with two zeros", func(b *ir.Builder, x, y ir.Value) ir.Value {
		same := ops.Zeros(b, ir.I32, ir.N(3), ir.N(1))
		a := ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}}
		return elementOf(b, ops.ScatterMul(b, ops.Ones(b, ir.F64, ir.N(2)), same, stack(b, x, y, x), a), 0)
	}, 0, 0, partials{"xxy": 2}},
	{"tie of squares", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.Max(b, ops.Mul(b, x, y), ops.Mul(b, y, y))
	}, 2, 2, partials{"": 4, "x": 1, "y": 3, "xy": 0.5, "yy": 1}},
	{"tie in a reduction", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.ReduceMin(b, stack(b, ops.Mul(b, x, y), ops.Mul(b, y, y)))
	}, 2, 2, partials{"": 4, "x": 1, "y": 3, "xy": 0.5, "yy": 1}},
	{"clamp at its bound", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.Mul(b, clamped(b, x), y)
	}, 0, 3, partials{"x": 3, "xy": 1}},
	{"abs at 0", func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.Mul(b, ops.Abs(b, x), y) }, 0, 3, nil},
	{"relu at 0 times a number", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.Mul(b, ops.Relu(b, ops.Mul(b, x, y)), y)
	}, 0, 3, nil},
	{"sqrt at 0 times a masking 0", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.MulZero(b, y, ops.Sqrt(b, x))
	}, 4, 0, partials{"y": 2, "xy": 0.25, "xxy": -1. / 32}},
	{"expm1 and log1p at 0", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.Mul(b, ops.Expm1(b, x), ops.Log1p(b, y))
	}, 0, 0, partials{"xy": 1, "xxy": 1, "xyy": -1}},
	{"softmax with a masked element", maskedSoftmax, 1, 1, partials{
		"": 0.5, "x": -0.25, "y": 0.25, "xxx": 0.125, "xxy": -0.125, "xyy": 0.125, "yyy": -0.125,
	}},
	{"logsumexp with a masked element", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.LogSumExp(b, stack(b, x, y, constant(b, -inf)), 0)
	}, 1, 1, partials{"": 1 + math.Ln2, "x": 0.5, "y": 0.5, "xx": 0.25, "yy": 0.25, "xy": -0.25}},
	{"log_softmax with a masked element", func(b *ir.Builder, x, y ir.Value) ir.Value {
		row := ops.LogSoftmax(b, stack(b, x, y, constant(b, -inf)), 0)
		return elementOf(b, row, 0)
	}, 1, 1, partials{"": -math.Ln2, "x": 0.5, "y": -0.5, "xx": -0.25, "yy": -0.25, "xy": 0.25}},
	{"logsumexp of a masked row", func(b *ir.Builder, x, y ir.Value) ir.Value {
		row := ops.LogSumExp(b, ops.Add(b, stack(b, x, y), constant(b, -inf)), 0)
		return ops.Exp(b, row)
	}, 1, 1, nil},
	{"softmax of a masked row", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.ReduceSum(b, ops.Softmax(b, ops.Add(b, stack(b, x, y), constant(b, -inf)), 0))
	}, 1, 1, nil},
	{"rms_norm of zeros", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return elementOf(b, ops.RMSNorm(b, stack(b, x, y), ops.Ones(b, ir.F64, ir.N(2)), 1), 0)
	}, 0, 0, partials{"x": 1, "xxx": -1.5, "xyy": -0.5}},
	{"attention to one of two keys", attentionTo("10"), 0.3, -0.7, partials{"": -0.7, "y": 1}},
	{"attention to no key", attentionTo("00"), 0.3, -0.7, nil},
	// x + (y−x)·sigmoid(x(y−x)), that is (x+y)/2 + x(y−x)²/4 and terms of a higher order.
	{"attention to two keys", attentionTo("11"), 0, 0, partials{"x": 0.5, "y": 0.5, "xxx": 1.5, "xxy": -1, "xyy": 0.5}},
	{"sum of a running sum times its end", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.ReduceProd(b, ops.CumSum(b, stack(b, x, y, x), ops.CumSumAttrs{}))
	}, 0, 0, partials{"xxx": 12, "xxy": 6, "xyy": 2}}, // x(x+y)(2x+y)
}

func elementOf(b *ir.Builder, x ir.Value, i int) ir.Value {
	return ops.Reshape(b, ops.Slice(b, x, []ir.Dim{ir.N(i)}, []ir.Dim{ir.N(1)}, nil))
}

func maskedSoftmax(b *ir.Builder, x, y ir.Value) ir.Value {
	row := ops.Softmax(b, stack(b, x, y, constant(b, -inf)), 0)
	return elementOf(b, row, 1)
}

// attentionTo returns the attention of the query x to the keys and values y and x; it attends to
// those with a 1 in mask.
func attentionTo(mask string) func(b *ir.Builder, x, y ir.Value) ir.Value {
	return func(b *ir.Builder, x, y ir.Value) ir.Value {
		keys := ops.Reshape(b, stack(b, y, x), ir.N(2), ir.N(1))
		seen := ops.Literal(b, ir.Ints(ir.Bool, []int64{int64(mask[0] - '0'), int64(mask[1] - '0')}, 1, 2))
		out := ops.Attention(b, ops.Reshape(b, x, ir.N(1), ir.N(1)), keys, keys, seen, ops.AttentionAttrs{Scale: 1})
		return ops.Reshape(b, out)
	}
}

// TestMixedDerivativesAreThoseOfTheClosedForm takes every derivative up to the
// third, by the variables in every order, forward and in reverse.
func TestMixedDerivativesAreThoseOfTheClosedForm(t *testing.T) {
	for _, c := range mixed {
		t.Run(c.name, func(t *testing.T) {
			g := build(t, func(b *ir.Builder) { b.Output("f", c.f(b, b.Input("x", ir.F64), b.Input("y", ir.F64))) })
			for way, d := range map[string]derivative{"forward": forwardBy, "reverse": reverseBy} {
				eachOrder(t, d, g, "", func(order string, g *ir.Graph) {
					got := eval(t, g, values{"x": num(c.x), "y": num(c.y)})["f"].F[0]
					want, ok := c.want[order]
					if !ok {
						want = c.want[sortedLetters(order)]
					}
					if !same(got, want, 1e-11) {
						t.Errorf("%s by %q: %v, want %v", way, order, got, want)
					}
				})
			}
		})
	}
}

// derivative returns the graph of the derivative of output f by a port, as its
// output f.
type derivative func(t *testing.T, g *ir.Graph, wrt string) *ir.Graph

func eachOrder(t *testing.T, d derivative, g *ir.Graph, order string, check func(order string, g *ir.Graph)) {
	t.Helper()
	check(order, g)
	if len(order) == 3 {
		return
	}
	for _, wrt := range []string{"x", "y"} {
		eachOrder(t, d, d(t, g, wrt), order+wrt, check)
	}
}

func sortedLetters(order string) string {
	letters := strings.Split(order, "")
	slices.Sort(letters)
	return strings.Join(letters, "")
}

func forwardBy(t *testing.T, g *ir.Graph, wrt string) *ir.Graph {
	t.Helper()
	d, err := autodiff.NthOrder(g, "f", wrt, 1)
	return renamed(must(t, d, err), "d1/f")
}

func reverseBy(t *testing.T, g *ir.Graph, wrt string) *ir.Graph {
	t.Helper()
	d, err := autodiff.GradWith(g, autodiff.GradOptions{Loss: "f", Wrt: []string{wrt}, Missing: autodiff.MissingIsZero, DropOutputs: true})
	return renamed(must(t, d, err), autodiff.GradName(wrt))
}

// renamed returns g with one of its outputs as its only one, "f".
func renamed(g *ir.Graph, output string) *ir.Graph {
	out, err := ir.Build(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		var in []ir.Value
		for _, p := range g.Ports() {
			in = append(in, m.Get(p.Value))
		}
		for i, v := range b.Splice(g, in) {
			if g.Outputs()[i].Name == output {
				b.Output("f", v)
			}
		}
	})
	if err != nil {
		panic(err)
	}
	return out
}
