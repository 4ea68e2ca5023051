package plansim_test

import (
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// scan is ops.Scan with its results in one list.
func scan(b *ir.Builder, l ops.Loop) []ir.Value {
	carries, ys := ops.Scan(b, l)
	return append(carries, ys...)
}

// loopPrograms return the outputs of loops over "x", f32[6,4], and "c", f32[4].
var loopPrograms = []struct {
	name string
	make func(b *ir.Builder, x, c ir.Value) []ir.Value
}{
	{"carries swapped", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		return scan(b, ops.Loop{Carries: []ir.Value{c, ops.Sin(b, c)}, Length: ir.N(3), Body: func(b *ir.Builder, _, c, _ []ir.Value) (next, ys []ir.Value) {
			return []ir.Value{c[1], c[0]}, nil
		}})
	}},
	{"a carry that every step mixes, odd and even, kept and not", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		m := ops.Reshape(b, ops.Sin(b, ops.Iota(b, ir.F32, 0, ir.N(16))), ir.N(4), ir.N(4))
		var out []ir.Value
		for n := range 5 {
			out = append(out, scan(b, ops.Loop{Consts: []ir.Value{m}, Carries: []ir.Value{c}, Length: ir.N(n + 1), Body: func(b *ir.Builder, consts, c, _ []ir.Value) (next, ys []ir.Value) {
				next = []ir.Value{ops.Tanh(b, ops.MatMul(b, consts[0], c[0]))}
				return next, next[:n%2]
			}})...)
		}
		return out
	}},
	{"mixing loops in mixing loops, whose results are carries and kept", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		m := ops.Reshape(b, ops.Sin(b, ops.Iota(b, ir.F32, 0, ir.N(16))), ir.N(4), ir.N(4))
		mixed := func(b *ir.Builder, n int, m, c ir.Value, body func(b *ir.Builder, m, c ir.Value) ir.Value) []ir.Value {
			return scan(b, ops.Loop{Consts: []ir.Value{m}, Carries: []ir.Value{c}, Length: ir.N(n), Body: func(b *ir.Builder, consts, c, _ []ir.Value) (next, ys []ir.Value) {
				next = []ir.Value{body(b, consts[0], c[0])}
				return next, next
			}})
		}
		once := func(b *ir.Builder, m, c ir.Value) ir.Value { return ops.Tanh(b, ops.MatMul(b, m, c)) }
		twice := func(n int) func(b *ir.Builder, m, c ir.Value) ir.Value {
			return func(b *ir.Builder, m, c ir.Value) ir.Value { return mixed(b, n, m, once(b, m, c), once)[0] }
		}
		return append(mixed(b, 3, m, c, twice(2)), mixed(b, 4, m, c, twice(3))...)
	}},
	{"sums of slices alone", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		return scan(b, ops.Loop{Carries: []ir.Value{ops.Zeros(b, ir.F32)}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
			return []ir.Value{ops.Add(b, c[0], ops.ReduceSum(b, x[0], 0))}, nil
		}})
	}},
	{"a branch on a flag that a loop in a loop carries, before and after its step", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		var out []ir.Value
		for _, before := range []bool{false, true} {
			inner := func(b *ir.Builder, x ir.Value) []ir.Value {
				return scan(b, ops.Loop{Carries: []ir.Value{ops.Const(b, ir.Bool, 1), ops.Zeros(b, ir.F32)}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
					going := ops.And(b, c[0], ops.Gt(b, x[0], ops.ZerosLike(b, x[0])))
					flag := going
					if before {
						flag = c[0]
					}
					sum := ops.Cond(b, flag, []ir.Value{c[1], x[0]},
						func(b *ir.Builder, in []ir.Value) []ir.Value {
							return []ir.Value{ops.Add(b, in[0], ops.Tanh(b, in[1]))}
						},
						func(_ *ir.Builder, in []ir.Value) []ir.Value { return in[:1] })
					return []ir.Value{going, sum[0]}, nil
				}})
			}
			out = append(out, scan(b, ops.Loop{Carries: []ir.Value{ops.Zeros(b, ir.F32)}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
				ys = inner(b, x[0])
				return []ir.Value{ops.Add(b, c[0], ys[1])}, ys
			}})...)
		}
		return out
	}},
	{"sums that need no loop, some of products and sums, forward and reverse", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		var out []ir.Value
		for _, reverse := range []bool{false, true} {
			square := ops.Zeros(b, ir.F32, ir.N(4), ir.N(4))
			out = append(out, scan(b, ops.Loop{
				Carries: []ir.Value{c, square, ops.Ones(b, ir.F32), square}, Xs: []ir.Value{x}, Reverse: reverse,
				Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
					h := ops.Sin(b, ops.Add(b, c[0], x[0]))
					outer := func(x, y ir.Value) ir.Value { return ops.DotGeneral(b, x, y, ops.DotAttrs{}) }
					more := ops.Sub(b, ops.Transpose(b, outer(h, x[0]), 1, 0), outer(x[0], x[0]))
					return []ir.Value{h, ops.Add(b, more, c[1]), ops.Add(b, c[2], ops.ReduceSum(b, x[0])), ops.Add(b, c[3], outer(c[0], h))}, []ir.Value{h}
				},
			})...)
		}
		return out
	}},
	{"one value for two carries", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		return scan(b, ops.Loop{Carries: []ir.Value{c, ops.Sin(b, c)}, Length: ir.N(3), Body: func(b *ir.Builder, _, c, _ []ir.Value) (next, ys []ir.Value) {
			v := ops.Cos(b, ops.Add(b, c[1], c[0]))
			return []ir.Value{v, v}, []ir.Value{v, v, c[0]}
		}})
	}},
	{"kept: the carry before, the carry after, a slice, a constant, a literal", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		return scan(b, ops.Loop{Consts: []ir.Value{c}, Carries: []ir.Value{c}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, consts, c, x []ir.Value) (next, ys []ir.Value) {
			after := ops.Sin(b, ops.Add(b, c[0], x[0]))
			return []ir.Value{after}, []ir.Value{c[0], after, x[0], consts[0], ops.Ones(b, ir.I32, ir.N(2))}
		}})
	}},
	{"from the end", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		return scan(b, ops.Loop{Carries: []ir.Value{c}, Xs: []ir.Value{x}, Reverse: true, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
			after := ops.Sin(b, ops.Add(b, c[0], x[0]))
			return []ir.Value{after}, []ir.Value{after}
		}})
	}},
	{"no steps", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		x = ops.SliceAxis(b, x, 0, ir.N(0), ir.N(0))
		return scan(b, ops.Loop{Carries: []ir.Value{c}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
			return []ir.Value{ops.Sin(b, c[0])}, []ir.Value{ops.Add(b, c[0], x[0])}
		}})
	}},
	{"one step", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		x = ops.SliceAxis(b, x, 0, ir.N(2), ir.N(1))
		return scan(b, ops.Loop{Carries: []ir.Value{c}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
			return []ir.Value{ops.Sin(b, c[0])}, []ir.Value{ops.Add(b, c[0], x[0])}
		}})
	}},
	{"empty values", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		x = ops.SliceAxis(b, x, 1, ir.N(0), ir.N(0))
		return scan(b, ops.Loop{Carries: []ir.Value{ops.Zeros(b, ir.F32, ir.N(0))}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
			sum := ops.Add(b, c[0], x[0])
			return []ir.Value{sum}, []ir.Value{ops.ReduceSum(b, sum)}
		}})
	}},
	{"all operands literals", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		return scan(b, ops.Loop{
			Consts: []ir.Value{ops.Const(b, ir.F32, 2)}, Carries: []ir.Value{ops.Const(b, ir.F32, 0.5)}, Xs: []ir.Value{ops.Ones(b, ir.F32, ir.N(3))},
			Body: func(b *ir.Builder, consts, c, x []ir.Value) (next, ys []ir.Value) {
				after := ops.Sin(b, ops.Add(b, ops.Mul(b, consts[0], c[0]), x[0]))
				return []ir.Value{after}, []ir.Value{ops.Add(b, after, x[0])}
			},
		})
	}},
	{"a scalar of the run", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		rate := b.Input("rate", ir.F32)
		return scan(b, ops.Loop{Consts: []ir.Value{rate}, Carries: []ir.Value{rate}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, consts, c, x []ir.Value) (next, ys []ir.Value) {
			return []ir.Value{ops.Add(b, c[0], ops.Mul(b, consts[0], ops.ReduceSum(b, x[0])))}, consts
		}})
	}},
	{"operands computed before, results computed on", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		m := ops.MatMul(b, x, ops.Reshape(b, ops.Iota(b, ir.F32, 0, ir.N(16)), ir.N(4), ir.N(4)))
		out := scan(b, ops.Loop{Consts: []ir.Value{m}, Carries: []ir.Value{ops.Exp(b, c)}, Xs: []ir.Value{ops.Exp(b, x)}, Body: func(b *ir.Builder, consts, c, x []ir.Value) (next, ys []ir.Value) {
			row := ops.MatMul(b, consts[0], c[0])
			after := ops.Div(b, x[0], ops.Add(b, ops.ReduceSum(b, ops.Abs(b, row)), ops.Const(b, ir.F32, 1)))
			return []ir.Value{after}, []ir.Value{row}
		}})
		return append(out, ops.ReduceSum(b, out[1]), ops.Softmax(b, out[1], 1))
	}},
	{"sums over the steps", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		out := scan(b, ops.Loop{Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, _, x []ir.Value) (next, ys []ir.Value) {
			return nil, []ir.Value{ops.Softmax(b, x[0], 0), ops.CumSum(b, x[0], ops.CumSumAttrs{Reverse: true, Exclusive: true})}
		}})
		return append(out, ops.ReduceSum(b, out[0], 0))
	}},
	{"a loop in a loop, with the outer slice and carry", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		return scan(b, ops.Loop{Consts: []ir.Value{c}, Carries: []ir.Value{c}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, consts, c, x []ir.Value) (next, ys []ir.Value) {
			inner := scan(b, ops.Loop{
				Consts: []ir.Value{c[0]}, Carries: []ir.Value{ops.Zeros(b, ir.F32)}, Xs: []ir.Value{x[0], consts[0]}, Reverse: true,
				Body: func(b *ir.Builder, consts, c, x []ir.Value) (next, ys []ir.Value) {
					after := ops.Add(b, c[0], ops.Mul(b, x[0], ops.ReduceMax(b, consts[0])))
					return []ir.Value{after}, []ir.Value{ops.Sub(b, after, x[1])}
				},
			})
			return []ir.Value{inner[1]}, []ir.Value{inner[0], inner[1], c[0]}
		}})
	}},
	{"the results of an inner loop are all that is kept", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		return scan(b, ops.Loop{Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, _, x []ir.Value) (next, ys []ir.Value) {
			return nil, scan(b, ops.Loop{Carries: []ir.Value{x[0]}, Length: ir.N(2), Body: func(b *ir.Builder, _, c, _ []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{ops.Reverse(b, c[0], 0)}, []ir.Value{ops.ReduceSum(b, c[0])}
			}})
		}})
	}},
	{"two loops side by side, one after them", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		step := func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
			return []ir.Value{ops.Sin(b, ops.Add(b, c[0], x[0]))}, []ir.Value{ops.Exp(b, c[0])}
		}
		first := scan(b, ops.Loop{Carries: []ir.Value{c}, Xs: []ir.Value{x}, Body: step})
		second := scan(b, ops.Loop{Carries: []ir.Value{c}, Xs: []ir.Value{ops.Neg(b, x)}, Body: step, Reverse: true})
		third := scan(b, ops.Loop{Carries: []ir.Value{ops.Add(b, first[0], second[0])}, Xs: []ir.Value{ops.Mul(b, first[1], second[1])}, Body: step})
		return append(append(first[:1:1], second[:1]...), third...)
	}},
	{"branches that hold loops, in a loop", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		branch := func(reverse bool) ops.Branch {
			return func(b *ir.Builder, in []ir.Value) []ir.Value {
				return scan(b, ops.Loop{Carries: []ir.Value{ops.Zeros(b, ir.F32)}, Xs: in, Reverse: reverse, Body: func(b *ir.Builder, _, c, x []ir.Value) (next, ys []ir.Value) {
					after := ops.Sub(b, x[0], c[0])
					return []ir.Value{after}, []ir.Value{after}
				}})
			}
		}
		return scan(b, ops.Loop{Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, _, x []ir.Value) (next, ys []ir.Value) {
			positive := ops.Gt(b, ops.ReduceSum(b, x[0]), ops.Const(b, ir.F32, 0.6))
			return nil, ops.Cond(b, positive, x, branch(false), branch(true))
		}})
	}},
	{"as long as a sum is small, in a loop and in a branch of it", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		m := ops.Reshape(b, ops.Sin(b, ops.Iota(b, ir.F32, 0, ir.N(16))), ir.N(4), ir.N(4))
		grow := func(most float64, reach int) ops.Branch {
			return func(b *ir.Builder, in []ir.Value) []ir.Value {
				return ops.WhileLoop(b, ops.While{
					Consts: in[:1], Carries: append(in[1:2:2], ops.Zeros(b, ir.I32)), MaxSteps: reach,
					Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value {
						return ops.Lt(b, ops.ReduceSum(b, ops.Abs(b, c[0])), ops.Const(b, ir.F32, most))
					},
					Body: func(b *ir.Builder, consts, c []ir.Value) []ir.Value {
						mixed := ops.Mul(b, ops.Const(b, ir.F32, 1.5), ops.MatMul(b, consts[0], c[0]))
						return []ir.Value{mixed, ops.Add(b, c[1], ops.OnesLike(b, c[1]))}
					},
				})
			}
		}
		out := grow(30, 9)(b, []ir.Value{m, c})
		return append(out, scan(b, ops.Loop{Consts: []ir.Value{m}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, consts, _, x []ir.Value) (next, ys []ir.Value) {
			positive := ops.Gt(b, ops.ReduceSum(b, x[0]), ops.Const(b, ir.F32, 0.6))
			return nil, ops.Cond(b, positive, []ir.Value{consts[0], x[0]}, grow(7, 5), grow(40, 3))
		}})...)
	}},
	{"choices in choices, of literals, operands and products", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		at := func(b *ir.Builder, x ir.Value, least float64) ir.Value {
			return ops.Gt(b, ops.ReduceSum(b, x), ops.Const(b, ir.F32, least))
		}
		inner := func(b *ir.Builder, in []ir.Value) []ir.Value {
			return ops.Cond(b, at(b, in[1], -1), in,
				func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.MatMul(b, in[0], in[1]), in[1]} },
				func(b *ir.Builder, in []ir.Value) []ir.Value {
					return []ir.Value{ops.Ones(b, ir.F32, ir.N(6)), ops.Exp(b, in[1])}
				})
		}
		plain := func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{ops.ReduceMax(b, in[0], 1), ops.Softmax(b, in[1], 0)}
		}
		out := ops.Cond(b, at(b, c, 100), []ir.Value{x, c}, inner, plain)
		out = append(out, ops.Cond(b, at(b, c, -100), []ir.Value{x, c}, inner, plain)...)
		return append(out, ops.Cond(b, at(b, ops.Neg(b, c), 0), []ir.Value{x, c}, plain, inner)...)
	}},
	{"sums long enough to be cut", func(b *ir.Builder, x, c ir.Value) []ir.Value {
		long := ops.BroadcastTo(b, ops.Reshape(b, c, ir.N(4), ir.N(1)), ir.Shape{ir.N(4), ir.N(5000)})
		return scan(b, ops.Loop{Consts: []ir.Value{ops.Exp(b, long)}, Carries: []ir.Value{ops.Zeros(b, ir.F32)}, Length: ir.N(2), Body: func(b *ir.Builder, consts, c, _ []ir.Value) (next, ys []ir.Value) {
			sum := ops.Mean(b, ops.Sin(b, ops.Add(b, consts[0], ops.BroadcastTo(b, c[0], consts[0].Shape()))))
			return []ir.Value{sum}, []ir.Value{sum}
		}})
	}},
}

func TestLoopsEqualReference(t *testing.T) {
	for _, p := range loopPrograms {
		t.Run(p.name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				for i, v := range p.make(b, b.Input("x", ir.F32, ir.N(6), ir.N(4)), b.Input("c", ir.F32, ir.N(4))) {
					b.Output("y"+strconv.Itoa(i), v)
				}
			})
			checkTwoRuns(t, g, someValues(g), plan.WebGPU())
			branching := plan.WebGPU()
			branching.Branch = 1
			checkTwoRuns(t, g, someValues(g), branching)
			checkTwoRuns(t, g, someValues(g), plan.WebAssembly(false))
		})
	}
}
