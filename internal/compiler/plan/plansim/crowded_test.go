package plansim_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// inputsOf are n inputs of one shape.
func inputsOf(b *ir.Builder, n int, dims ...int) []ir.Value {
	in := make([]ir.Value, n)
	for i := range in {
		in[i] = b.Input("x"+strconv.Itoa(i), ir.F32, ir.Dims(dims...)...)
	}
	return in
}

// crowded are graphs with nodes of far more operands, results or states than a kernel binds.
var crowded = map[string]func(b *ir.Builder){
	"concatenate 300": func(b *ir.Builder) {
		b.Output("y", ops.Sin(b, ops.Concatenate(b, 0, inputsOf(b, 300, 3, 2)...)))
	},
	"concatenate 300 columns computed": func(b *ir.Builder) {
		in := inputsOf(b, 300, 4, 4)
		for i, x := range in {
			if i%3 == 0 {
				in[i] = ops.MatMul(b, x, ops.Transpose(b, in[(i+1)%300], 1, 0))
			} else {
				in[i] = ops.Exp(b, ops.Add(b, x, in[(i+7)%300]))
			}
		}
		b.Output("y", ops.ReduceSum(b, ops.Concatenate(b, 1, in...), 1))
	},
	"norms of 500": func(b *ir.Builder) {
		var sum ir.Value
		for i, x := range inputsOf(b, 500, 7) {
			n := ops.ReduceSum(b, ops.Mul(b, x, x))
			if i == 0 {
				sum = n
			} else {
				sum = ops.Add(b, sum, n)
			}
		}
		b.Output("y", ops.Sqrt(b, sum))
	},
	"each with each of 40": func(b *ir.Builder) {
		in := inputsOf(b, 40, 6)
		for i := range in {
			y := in[i]
			for j := range in {
				y = ops.Mul(b, ops.Sin(b, y), in[j])
			}
			b.Output("y"+strconv.Itoa(i), y)
		}
	},
	"rows of all": func(b *ir.Builder) { // each row's softmax adds up fourteen inputs
		in := inputsOf(b, 14, 5, 9)
		y := in[0]
		for _, x := range in {
			y = ops.Add(b, y, ops.Exp(b, x))
		}
		y = ops.Softmax(b, y, 1)
		for i, x := range in {
			b.Output("y"+strconv.Itoa(i), ops.Mul(b, y, x))
		}
	},
	"product of sums of twelve": func(b *ir.Builder) {
		in := inputsOf(b, 12, 70, 70)
		x, y := in[0], in[1]
		for i := range 6 {
			x, y = ops.Add(b, x, in[2*i]), ops.Mul(b, y, in[2*i+1])
		}
		p := ops.MatMul(b, x, y)
		for _, z := range in {
			p = ops.Add(b, p, z)
		}
		b.Output("y", p)
	},
	"scan of 200 states": func(b *ir.Builder) {
		carries, ys := ops.Scan(b, ops.Loop{
			Carries: inputsOf(b, 200, 3), Length: ir.N(5),
			Body: func(b *ir.Builder, _, c, _ []ir.Value) (next, ys []ir.Value) {
				for i := range c {
					next = append(next, ops.Sin(b, ops.Add(b, c[i], c[(i+1)%len(c)])))
				}
				return next, []ir.Value{next[7], next[190]}
			},
		})
		for i, c := range carries {
			b.Output("c"+strconv.Itoa(i), c)
		}
		b.Output("a", ys[0])
		b.Output("b", ys[1])
	},
	"scan of 60 slices": func(b *ir.Builder) {
		_, ys := ops.Scan(b, ops.Loop{
			Xs: inputsOf(b, 60, 4, 3),
			Body: func(b *ir.Builder, _, _, xs []ir.Value) (next, ys []ir.Value) {
				sum := xs[0]
				for _, x := range xs[1:] {
					sum = ops.Add(b, sum, x)
				}
				for _, x := range xs {
					ys = append(ys, ops.Div(b, x, sum))
				}
				return nil, ys
			},
		})
		for i, y := range ys {
			b.Output("y"+strconv.Itoa(i), y)
		}
	},
	"cond of 100 values": func(b *ir.Builder) {
		in := inputsOf(b, 100, 3)
		p := ops.Gt(b, ops.ReduceSum(b, in[0]), ops.Const(b, ir.F32, 0))
		out := ops.Cond(b, p, in, func(b *ir.Builder, in []ir.Value) []ir.Value {
			out := make([]ir.Value, len(in))
			for i := range in {
				out[i] = ops.Add(b, in[i], in[len(in)-1-i])
			}
			return out
		}, func(b *ir.Builder, in []ir.Value) []ir.Value { return in })
		for i, y := range out {
			b.Output("y"+strconv.Itoa(i), y)
		}
	},
	"while of 50 values": func(b *ir.Builder) {
		out := ops.WhileLoop(b, ops.While{
			Carries: inputsOf(b, 50, 3), MaxSteps: 4,
			Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value {
				return ops.Lt(b, ops.ReduceMax(b, ops.Add(b, c[3], c[4])), ops.Const(b, ir.F32, 3))
			},
			Body: func(b *ir.Builder, _, c []ir.Value) []ir.Value {
				out := make([]ir.Value, len(c))
				for i := range c {
					out[i] = ops.Add(b, c[i], ops.Exp(b, c[(i+11)%len(c)]))
				}
				return out
			},
		})
		for i, y := range out {
			b.Output("y"+strconv.Itoa(i), y)
		}
	},
	"combination of 20 values, without a derivative": func(b *ir.Builder) {
		for i, y := range ops.AssociativeScan(b, ops.AssociativeAttrs{}, inputsOf(b, 20, 300), func(b *ir.Builder, x, y []ir.Value) []ir.Value {
			out := make([]ir.Value, len(x))
			for i := range x {
				out[i] = ops.Max(b, x[i], y[i])
			}
			return out
		}) {
			b.Output("y"+strconv.Itoa(i), y)
		}
	},
	"recurrence of 3 values": func(b *ir.Builder) {
		in := inputsOf(b, 12, 300)
		for i := range in {
			in[i] = ops.Mul(b, in[i], ops.ConstLike(b, in[i], 0.5))
		}
		for i, y := range ops.LinearRecurrences(b, in[:9], in[9:], ops.CumSumAttrs{}) {
			b.Output("y"+strconv.Itoa(i), y)
		}
	},
	"combination of 4 values that may fail, without a derivative": func(b *ir.Builder) {
		in := inputsOf(b, 4, 300)
		for i := range in {
			in[i] = ops.Convert(b, in[i], ir.I32)
		}
		for i, y := range ops.AssociativeScan(b, ops.AssociativeAttrs{}, in, func(b *ir.Builder, x, y []ir.Value) []ir.Value {
			return []ir.Value{ops.CheckIndex(b, ops.Add(b, x[0], y[0]), ir.N(100), "sum"), ops.Max(b, x[1], y[1]), ops.Max(b, x[2], y[2]), ops.Add(b, x[3], y[3])}
		}) {
			b.Output("y"+strconv.Itoa(i), y)
		}
	},
	"combination of 4 values": func(b *ir.Builder) {
		for i, y := range ops.AssociativeScan(b, ops.AssociativeAttrs{}, inputsOf(b, 4, 300), func(b *ir.Builder, x, y []ir.Value) []ir.Value {
			return []ir.Value{ops.Add(b, x[0], y[0]), ops.Max(b, x[1], y[1]), ops.Max(b, x[2], y[2]), ops.Add(b, x[3], y[3])}
		}) {
			b.Output("y"+strconv.Itoa(i), y)
		}
	},
	"sort with 30 payloads": func(b *ir.Builder) {
		in := inputsOf(b, 31, 3, 20)
		for i, y := range ops.Sort(b, ops.SortAttrs{Axis: 1}, in[0], in[1:]...) {
			b.Output("y"+strconv.Itoa(i), y)
		}
	},
	"scatter of sums of twelve": func(b *ir.Builder) {
		in := inputsOf(b, 12, 200, 4)
		u := in[0]
		for _, x := range in[1:] {
			u = ops.Add(b, u, x)
		}
		rows := ops.Convert(b, ops.ReduceSum(b, ops.Mul(b, u, u), 1), ir.I32)
		t := in[3]
		for _, x := range in {
			t = ops.Mul(b, t, x)
		}
		b.Output("y", ops.ScatterAdd(b, t, ops.ExpandDims(b, rows, -1), u, rowsOf))
	},
	"gathers from twenty tables": func(b *ir.Builder) {
		ids := b.Input("ids", ir.I32, ir.N(17))
		var sum ir.Value
		for i, x := range inputsOf(b, 20, 9, 4) {
			r := ops.Take(b, x, ids, 0, ops.OutsideClip)
			if i == 0 {
				sum = r
			} else {
				sum = ops.Mul(b, sum, r)
			}
		}
		b.Output("y", sum)
	},
	"states updated from each other": func(b *ir.Builder) {
		var s []ir.Value
		for i := range 60 {
			s = append(s, b.State("s"+strconv.Itoa(i), ir.F32, ir.N(5)))
		}
		for i := range s {
			b.SetState("s"+strconv.Itoa(i), ops.Add(b, s[(i+1)%60], ops.Mul(b, s[(i+29)%60], s[i])))
		}
	},
}

// lonely returns a target whose buffers hold only one of a graph's largest tensors.
func lonely(g *ir.Graph) plan.Target {
	most := 256 // alignment of storage arrays
	for _, n := range g.Nodes() {
		for _, t := range n.Types() {
			size, _ := t.Shape.Size().Const()
			most = max(most, size*loop.DeviceSize(t.DType))
		}
	}
	t := plan.WebGPU()
	t.BindingBytes = (most + 255) / 256 * 256
	t.BufferBytes = t.BindingBytes
	return t
}

// TestGraphsOverTheBindingLimit: a graph whose tensors each fit a binding is never refused for
// their number, even if no two tensors share a buffer, and neither are its derivatives.
func TestGraphsOverTheBindingLimit(t *testing.T) {
	for name, build := range crowded {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := schedtest.Build(t, build)
			checkSources(t, compiled(t, g))
			checkTwoRuns(t, g, someValues(g), lonely(g))
			if strings.HasSuffix(name, "without a derivative") {
				return
			}
			g, err := autodiff.VJP(g)
			if err != nil {
				t.Fatal(err)
			}
			checkSources(t, compiled(t, g))
			compiledFor(t, lonely(g), g)
		})
	}
}
