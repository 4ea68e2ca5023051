package autodiff_test

import (
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// loop runs l, by a scan node or step by step.
type loop func(b *ir.Builder, l ops.Loop) (carries, ys []ir.Value)

// unrolled is a loop without a scan: the definition that scan is held against.
func unrolled(b *ir.Builder, l ops.Loop) (carries, ys []ir.Value) {
	n, _ := l.Length.Const()
	if len(l.Xs) > 0 {
		n, _ = l.Xs[0].Dim(0).Const()
	}
	carries = l.Carries
	var stacks [][]ir.Value
	for step := range n {
		if l.Reverse {
			step = n - 1 - step
		}
		xs := make([]ir.Value, len(l.Xs))
		for i, x := range l.Xs {
			xs[i] = ops.Squeeze(b, ops.SliceAxis(b, x, 0, ir.N(step), ir.N(1)), 0)
		}
		var out []ir.Value
		carries, out = l.Body(b, l.Consts, carries, xs)
		if stacks == nil {
			stacks = make([][]ir.Value, len(out))
		}
		for i, y := range out {
			row := ops.ExpandDims(b, y, 0)
			if l.Reverse {
				stacks[i] = append([]ir.Value{row}, stacks[i]...)
			} else {
				stacks[i] = append(stacks[i], row)
			}
		}
	}
	for _, rows := range stacks {
		ys = append(ys, ops.Concatenate(b, 0, rows...))
	}
	return carries, ys
}

// branch picks between two functions, by a cond node or by select.
type branch func(b *ir.Builder, p ir.Value, operands []ir.Value, yes, no ops.Branch) []ir.Value

func selected(b *ir.Builder, p ir.Value, operands []ir.Value, yes, no ops.Branch) []ir.Value {
	y, n := yes(b, operands), no(b, operands)
	out := make([]ir.Value, len(y))
	for i := range y {
		out[i] = ops.Select(b, ops.BroadcastTo(b, p, y[i].Shape()), y[i], n[i])
	}
	return out
}

// controlled is a scalar function "loss" of ports "x" and "w" written with loops
// and branches.
type controlled struct {
	name string
	x, w *ir.Array
	loss func(b *ir.Builder, x, w ir.Value, scan loop, cond branch) ir.Value
}

func sumAll(b *ir.Builder, values ...ir.Value) ir.Value {
	total := ops.ReduceSum(b, values[0])
	for _, v := range values[1:] {
		total = ops.Add(b, total, ops.ReduceSum(b, v))
	}
	return total
}

func recurrent(reverse bool) func(b *ir.Builder, x, w ir.Value, scan loop, cond branch) ir.Value {
	return func(b *ir.Builder, x, w ir.Value, scan loop, _ branch) ir.Value {
		carries, ys := scan(b, ops.Loop{
			Consts:  []ir.Value{w, ops.Exp(b, w)},
			Carries: []ir.Value{ops.SliceAxis(b, ops.Reshape(b, w, ir.N(9)), 0, ir.N(2), ir.N(3)), ops.Zeros(b, ir.I32)},
			Xs:      []ir.Value{x, ops.Sin(b, x)},
			Reverse: reverse,
			Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
				h := ops.Tanh(b, ops.Add(b, ops.MatMul(b, carries[0], consts[0]), xs[0]))
				n := ops.Add(b, carries[1], ops.Const(b, ir.I32, 1))
				y := ops.Mul(b, ops.Mul(b, h, xs[1]), ops.Convert(b, n, ir.F64))
				return []ir.Value{h, n}, []ir.Value{y, ops.ReduceSum(b, consts[1], 0)}
			},
		})
		return sumAll(b, ops.Mul(b, carries[0], carries[0]), ops.Exp(b, ys[0]), ys[1])
	}
}

var controlledFunctions = []controlled{
	{"recurrence", wave(1, 4, 3), wave(2, 3, 3), recurrent(false)},
	{"recurrence from the end", wave(1, 4, 3), wave(2, 3, 3), recurrent(true)},
	{"power by a loop without slices", wave(1, 3), wave(2, 3), func(b *ir.Builder, x, w ir.Value, scan loop, _ branch) ir.Value {
		c, _ := scan(b, ops.Loop{
			Consts: []ir.Value{x}, Carries: []ir.Value{w}, Length: ir.N(5),
			Body: func(b *ir.Builder, consts, carries, _ []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{ops.Mul(b, carries[0], consts[0])}, nil
			},
		})
		return sumAll(b, c[0])
	}},
	{"a carry that becomes active in the second step", wave(1, 4), wave(2, 3), func(b *ir.Builder, x, w ir.Value, scan loop, _ branch) ir.Value {
		zero := ops.Zeros(b, ir.F64)
		c, ys := scan(b, ops.Loop{
			Consts: []ir.Value{w}, Carries: []ir.Value{zero, zero, zero}, Xs: []ir.Value{x},
			Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
				first := ops.Add(b, carries[0], ops.Mul(b, xs[0], xs[0]))
				second := ops.Add(b, carries[1], ops.Sin(b, carries[0]))
				third := ops.Mul(b, ops.ReduceSum(b, consts[0]), ops.Cos(b, carries[1]))
				return []ir.Value{first, second, third}, []ir.Value{carries[2]}
			},
		})
		return sumAll(b, c[1], c[2], ys[0])
	}},
	{"a loop in a loop", wave(1, 3, 2), wave(2, 2), func(b *ir.Builder, x, w ir.Value, scan loop, _ branch) ir.Value {
		c, ys := scan(b, ops.Loop{
			Carries: []ir.Value{w}, Xs: []ir.Value{x},
			Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
				inner, stack := scan(b, ops.Loop{
					Consts: xs, Carries: carries, Length: ir.N(2),
					Body: func(b *ir.Builder, consts, carries, _ []ir.Value) (next, ys []ir.Value) {
						s := ops.Sin(b, ops.Add(b, carries[0], consts[0]))
						return []ir.Value{s}, []ir.Value{ops.Mul(b, s, carries[0])}
					},
				})
				return inner, []ir.Value{sumAll(b, stack[0])}
			},
		})
		return sumAll(b, c[0], ops.Exp(b, ys[0]))
	}},
	{"branches", wave(1, 3), wave(2, 3), func(b *ir.Builder, x, w ir.Value, _ loop, cond branch) ir.Value {
		p := ops.Gt(b, ops.ReduceSum(b, x), constant(b, 0))
		out := cond(b, p, []ir.Value{x, w}, func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{ops.Mul(b, ops.Sin(b, in[0]), in[1]), ops.ReduceSum(b, in[1])}
		}, func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{ops.Exp(b, ops.Mul(b, in[0], in[0])), constant(b, 2)}
		})
		return sumAll(b, ops.Mul(b, out[0], out[0]), ops.Mul(b, out[1], out[1]))
	}},
	{"branches in a loop", wave(1, 4), wave(2, 2), func(b *ir.Builder, x, w ir.Value, scan loop, cond branch) ir.Value {
		c, ys := scan(b, ops.Loop{
			Carries: []ir.Value{w}, Xs: []ir.Value{x},
			Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
				p := ops.Gt(b, xs[0], constant(b, 0.1))
				out := cond(b, p, []ir.Value{carries[0], xs[0]}, func(b *ir.Builder, in []ir.Value) []ir.Value {
					return []ir.Value{ops.Mul(b, ops.Tanh(b, in[0]), in[1])}
				}, func(b *ir.Builder, in []ir.Value) []ir.Value {
					return []ir.Value{ops.Sub(b, in[0], ops.Exp(b, in[1]))}
				})
				return out, []ir.Value{ops.ReduceSum(b, out[0])}
			},
		})
		return sumAll(b, c[0], ops.Mul(b, ys[0], ys[0]))
	}},
}

func (c controlled) graph(t *testing.T, scan loop, cond branch) *ir.Graph {
	t.Helper()
	return build(t, func(b *ir.Builder) {
		x, w := b.Port(ir.InputPort, "x", c.x.Type()), b.Port(ir.ParamPort, "w", c.w.Type())
		b.Output("loss", c.loss(b, x, w, scan, cond))
	})
}

// controlTransforms are ways to derive a graph with ports "x" and "w" and an
// output "loss".
var controlTransforms = map[string]func(g *ir.Graph) (*ir.Graph, error){
	"nothing": func(g *ir.Graph) (*ir.Graph, error) { return g, nil },
	"jvp":     func(g *ir.Graph) (*ir.Graph, error) { return autodiff.JVP(g) },
	"vjp":     func(g *ir.Graph) (*ir.Graph, error) { return autodiff.VJP(g) },
	"grad":    func(g *ir.Graph) (*ir.Graph, error) { return autodiff.ValueAndGrad(g, "loss", "x", "w") },
	"hvp":     func(g *ir.Graph) (*ir.Graph, error) { return autodiff.HVP(g, "loss", "x", "w") },
	"jvp of jvp": func(g *ir.Graph) (*ir.Graph, error) {
		return twice(g, func(g *ir.Graph) (*ir.Graph, error) { return autodiff.JVP(g, "x", "w") })
	},
	"vjp of vjp": func(g *ir.Graph) (*ir.Graph, error) {
		return twice(g, func(g *ir.Graph) (*ir.Graph, error) { return autodiff.VJP(g, "x", "w") })
	},
	"vjp of hvp": func(g *ir.Graph) (*ir.Graph, error) {
		h, err := autodiff.HVP(g, "loss", "x", "w")
		if err != nil {
			return nil, err
		}
		return autodiff.VJP(h, "x", "w")
	},
	"vmap": batchOf("x"),
	"vmap of grad": func(g *ir.Graph) (*ir.Graph, error) {
		d, err := autodiff.ValueAndGrad(g, "loss", "x", "w")
		if err != nil {
			return nil, err
		}
		return batchOf("w")(d)
	},
	"grad of vmap": func(g *ir.Graph) (*ir.Graph, error) {
		d, err := batchOf("x")(g)
		if err != nil {
			return nil, err
		}
		return autodiff.VJP(d, "x", "w")
	},
	"hessian": func(g *ir.Graph) (*ir.Graph, error) { return autodiff.Hessian(g, "loss", "x", "w") },
}

func twice(g *ir.Graph, f func(*ir.Graph) (*ir.Graph, error)) (*ir.Graph, error) {
	d, err := f(g)
	if err != nil {
		return nil, err
	}
	return f(d)
}

func batchOf(port string) func(g *ir.Graph) (*ir.Graph, error) {
	return func(g *ir.Graph) (*ir.Graph, error) {
		return autodiff.Vmap(g, ir.N(2), autodiff.VmapOptions{In: map[string]int{port: 0}})
	}
}

func TestTransformsOfControlFlowEqualUnrolled(t *testing.T) {
	for _, c := range controlledFunctions {
		for name, transform := range controlTransforms {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				want, err := transform(c.graph(t, unrolled, selected))
				must(t, want, err)
				got, err := transform(c.graph(t, ops.Scan, ops.Cond))
				must(t, got, err)
				c.referenceOf(t, want).check(t, got)
			})
		}
	}
}

// reference is the expected results of a transform of a function, and its inputs.
type reference struct{ in, out values }

// referenceOf evaluates a transform. Values of ports are waves, seeded by the place of the
// port, but where the function has its own.
func (c *controlled) referenceOf(t *testing.T, want *ir.Graph) reference {
	t.Helper()
	in := values{"x": c.x, "w": c.w}
	for i, p := range want.Ports() {
		dims, _ := p.Value.Shape().Ints()
		if v, ok := in[p.Name]; !ok || !v.Type().Equal(p.Value.Type()) {
			in[p.Name] = wave(float64(i), dims...)
		}
	}
	return reference{in, eval(t, want, in)}
}

// check compares another form of the transform with the reference.
func (r reference) check(t *testing.T, got *ir.Graph) {
	t.Helper()
	for output, g := range eval(t, got, r.in) {
		checkFloats(t, output, g, r.out[output].F, 1e-11)
	}
}

func TestGradientsOfLoopsAndBranchesAreRightToSecondOrder(t *testing.T) {
	for _, c := range controlledFunctions {
		t.Run(c.name, func(t *testing.T) {
			err := gradcheck.Check(c.graph(t, ops.Scan, ops.Cond), values{"x": c.x, "w": c.w}, gradcheck.Options{Order: 2})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGradientOfALoopIsTwoLoops(t *testing.T) {
	// One loop forward, whose results and residuals are stacked, one backward.
	g := controlledFunctions[0].graph(t, ops.Scan, ops.Cond)
	d, err := autodiff.Grad(g, "loss", "x", "w")
	must(t, d, err)
	count := 0
	for _, n := range d.Nodes() {
		if n.Op() == ops.OpScan {
			count++
		}
	}
	if count != 2 {
		t.Errorf("%d loops, want 2", count)
	}
}
