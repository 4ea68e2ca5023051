//go:build !386 && !arm && !wasm

package sched_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// far is a target like CUDA with unlimited memory.
func far() plan.Target {
	t := plan.WebGPU()
	t.Dialect, t.Shuffles, t.Long = dtype.CUDA, true, loop.LongElements
	t.StorageBuffers, t.BindingBytes, t.BufferBytes = 64, 1<<50, 1<<50
	return t
}

// farHopper is far with the MMA of an H200.
func farHopper() plan.Target {
	t := schedtest.Hopper()
	t.Long, t.BindingBytes, t.BufferBytes = loop.LongElements, 1<<50, 1<<50
	return t
}

// long are graphs of tensors with more than 2³¹ elements, in one axis or in several.
var long = map[string]func(b *ir.Builder){
	"map": func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(70_000, 40_001)...)
		b.Output("y", ops.Add(b, ops.Sin(b, x), ops.BroadcastInDim(b, b.Input("z", ir.F32, ir.N(40_001)), x.Shape(), []int{1})))
	},
	"map of vectors": func(b *ir.Builder) {
		b.Output("y", ops.Add(b, b.Input("x", ir.F32, ir.Dims(3<<30)...), b.Input("z", ir.F32, ir.Dims(3<<30)...)))
	},
	"iota": func(b *ir.Builder) {
		b.Output("y", ops.Add(b, ops.Iota(b, ir.U32, 0, ir.Dims(70_000, 40_000)...), ops.Iota(b, ir.U32, 1, ir.Dims(70_000, 40_000)...)))
	},
	"transpose":         transposed(70_000, 40_000),
	"transpose of odds": transposed(70_001, 40_001),
	"random bits": func(b *ir.Builder) {
		b.Output("y", ops.Uniform(b, ops.Key(b, 1), ir.F32, ir.Dims(1<<20, 5000)...))
	},
	"sum of rows":      sumOf(1, 70_000, 40_001),
	"sum of columns":   sumOf(0, 70_001, 40_001),
	"sum of one row":   sumOf(0, 5<<30),
	"sum of few rows":  sumOf(1, 3, 3<<30),
	"sum of long rows": sumOf(0, 3<<30, 3),
	"sum of all": func(b *ir.Builder) {
		b.Output("y", ops.SumAll(b, b.Input("x", ir.F32, ir.Dims(70_000, 40_001)...)))
	},
	"greatest place": func(b *ir.Builder) {
		b.Output("y", ops.ArgMax(b, b.Input("x", ir.F32, ir.Dims(5<<30)...), 0))
	},
	"softmax": func(b *ir.Builder) {
		b.Output("y", ops.Softmax(b, b.Input("x", ir.F32, ir.Dims(70_000, 40_000)...), 1))
	},
	"slices": func(b *ir.Builder) {
		x, y := b.Input("x", ir.I8, ir.Dims(9<<30)...), b.Input("y", ir.F32, ir.Dims(70_000, 40_000)...)
		b.Output("far", ops.SliceAxis(b, x, 0, ir.N(8<<30), ir.N(1000)))
		b.Output("strided", ops.Slice(b, x, ir.Dims(5), ir.Dims(4000), []int{2 << 20}))
		b.Output("corner", ops.Slice(b, y, ir.Dims(69_000, 39_000), ir.Dims(1000, 1000), []int{1, 1}))
	},
	"reshape": func(b *ir.Builder) {
		x := ops.Reshape(b, b.Input("x", ir.F32, ir.Dims(70_000, 40_000)...), ir.Dims(35_000, 80_000)...)
		b.Output("y", ops.Add(b, ops.Transpose(b, x, 1, 0), b.Input("z", ir.F32, ir.N(35_000))))
	},
	"reverse and join": func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2<<30)...)
		b.Output("y", ops.Concatenate(b, 0, x, ops.Reverse(b, x, 0)))
	},
	"gather": func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(70_000, 40_000)...)
		b.Output("y", ops.Take(b, x, b.Input("rows", ir.I32, ir.N(1000)), 0, ops.OutsideClip))
	},
	"gather of elements": func(b *ir.Builder) {
		b.Output("y", ops.Take(b, b.Input("x", ir.F32, ir.Dims(5<<30)...), b.Input("at", ir.I64, ir.N(1000)), 0, ops.OutsideFill))
	},
	"scatter": func(b *ir.Builder) {
		x := b.State("x", ir.F32, ir.Dims(70_000, 40_000)...)
		rows, u := b.Input("rows", ir.I32, ir.Dims(1000, 1)...), b.Input("u", ir.F32, ir.Dims(1000, 40_000)...)
		b.SetState("x", ops.Scatter(b, x, rows, u, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}}))
	},
	"product of a long factor": func(b *ir.Builder) {
		b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(70_000, 40_000)...), b.Input("w", ir.F32, ir.Dims(40_000, 64)...)))
	},
	"long product": func(b *ir.Builder) {
		b.Output("y", ops.Relu(b, ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(70_001, 32)...), b.Input("w", ir.F32, ir.Dims(32, 40_000)...))))
	},
	"product in half precision": func(b *ir.Builder) {
		b.Output("y", ops.MatMul(b, b.Input("x", ir.BF16, ir.Dims(70_000, 40_000)...), b.Input("w", ir.BF16, ir.Dims(40_000, 512)...)))
	},
	"product of a long space": func(b *ir.Builder) {
		b.Output("y", ops.MatMul(b, b.Input("x", ir.BF16, ir.Dims(3<<20, 1024, 64)...), b.Input("w", ir.BF16, ir.Dims(64, 64)...)))
	},
	"product with a vector": func(b *ir.Builder) {
		b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(70_000, 40_000)...), b.Input("w", ir.F32, ir.Dims(40_000, 1)...)))
	},
	"loop over slices": func(b *ir.Builder) {
		_, ys := ops.Scan(b, ops.Loop{Xs: []ir.Value{b.Input("x", ir.F32, ir.Dims(1000, 3000, 1000)...)}, Body: func(b *ir.Builder, _, _, x []ir.Value) (next, ys []ir.Value) {
			return nil, []ir.Value{ops.Sin(b, x[0])}
		}})
		b.Output("y", ys[0])
	},
	"running sum": func(b *ir.Builder) {
		b.Output("y", ops.CumSum(b, b.Input("x", ir.F32, ir.Dims(70_000, 40_000)...), ops.CumSumAttrs{Axis: 1}))
	},
}

func sumOf(axis int, dims ...int) func(b *ir.Builder) {
	return func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, b.Input("x", ir.F32, ir.Dims(dims...)...), axis)) }
}

// TestNoIndexOverflows propagates ranges through the index expressions of kernels: no
// intermediate value overflows its type, however long the arrays are.
func TestNoIndexOverflows(t *testing.T) {
	for name, f := range long {
		t.Run(name, func(t *testing.T) {
			g := schedtest.Build(t, f)
			for _, k := range append(schedtest.Kernels(t, g, far()), schedtest.Kernels(t, g, farHopper())...) {
				if err := loop.Check(k); err != nil {
					t.Error(err)
				}
				o := &overflows{t: t, k: k, vars: map[string]scalar.Expr{}}
				o.block(k.Body)
			}
		})
	}
}

// overflows finds indices of a kernel that may overflow their types.
type overflows struct {
	t    *testing.T
	k    *loop.Kernel
	vars map[string]scalar.Expr // with known ranges
}

func (o *overflows) block(body []loop.Stmt) {
	for _, s := range body {
		loop.EachNode(s, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad {
				o.index(n.Ref, n.Args[0])
			}
		})
		switch s := s.(type) {
		case *loop.Let:
			o.check("the value of "+s.Name, s.Value)
			o.define(s.Name, s.Value.Type, s.Value, s.Value)
		case *loop.For:
			o.check("the first "+s.Var, s.Start)
			o.check("the end of "+s.Var, s.End)
			o.define(s.Var, s.Type(), s.Start, s.End)
			o.block(s.Body)
		case *loop.If:
			o.block(s.Then)
			o.block(s.Else)
		case *loop.Roles:
			for _, r := range s.List {
				o.block(r.Body)
			}
		case *loop.CopyAsync:
			o.index(s.From, s.FromAt)
		case *loop.CopyTMA:
			for _, at := range s.From {
				o.check("a place in a box", at)
			}
		case *loop.Store:
			o.index(s.Array, s.At)
		case *loop.LoadVec:
			o.index(s.Array, s.At)
		case *loop.StoreVec:
			o.index(s.Array, s.At)
		case *loop.AtomicOp:
			o.index(s.Array, s.At)
		}
	}
}

// define sets the range of a variable from the minimum of one value to the maximum of another.
func (o *overflows) define(name string, d ir.DType, from, to scalar.Expr) {
	lo, _, ok := scalar.Range(o.known(from))
	_, hi, ok2 := scalar.Range(o.known(to))
	if ok && ok2 && lo <= hi {
		o.vars[name] = scalar.NewVar(name, d, lo, hi)
	}
}

// known returns an expression with variables of known ranges; ranges that the kernel claims are
// kept where they are narrower.
func (o *overflows) known(x scalar.Expr) scalar.Expr {
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		v, ok := o.vars[n.Name]
		return v, ok && n.Op == scalar.OpVar && n.Lo > n.Hi && v.Type == n.Type
	})
}

func (o *overflows) index(array int, at scalar.Expr) {
	if o.k.Arrays[array].Space == loop.Storage {
		o.check("the index of "+o.k.ArrayName(array), at)
	}
}

// check checks an expression without loads.
func (o *overflows) check(what string, x scalar.Expr) {
	free := true
	scalar.Walk(x, func(n scalar.Expr) { free = free && n.Op != scalar.OpLoad && !n.Type.IsUnsigned() })
	if x = o.known(x); free && x.Type.IsInteger() && scalar.NewSimplifier().MayOverflow(x) {
		o.t.Errorf("kernel %s: %s, %s, may overflow", o.k.Name, what, x)
	}
}

// TestMmaOfLongArrays has 64-bit array indices with 32-bit tile indices.
func TestMmaOfLongArrays(t *testing.T) {
	copying := schedtest.Hopper()
	copying.Name, copying.TensorMaps = "copying", false
	for _, target := range []plan.Target{schedtest.Hopper(), copying, schedtest.Ampere()} {
		target.Long = 1
		for _, layout := range []string{"nn", "tt"} {
			t.Run(target.Name+" "+layout, func(t *testing.T) {
				g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulOf(b, ir.BF16, 130, 70, 136, layout, true) })
				schedtest.RunOn(t, g, schedtest.ContractionsBy(t, g, target, emit.Schedule{Family: emit.WarpGroups, N: 256, Stages: 4, Split: 2}), schedtest.Wholes)
			})
		}
	}
}

// TestEveryCandidateCountsIn64Bits is TestEveryCandidateIsRight with 64-bit indices in arrays
// of any length.
func TestEveryCandidateCountsIn64Bits(t *testing.T) {
	target := schedtest.Choosy()
	target.Dialect, target.Shuffles, target.Long = dtype.CUDA, true, 1
	for name, f := range choosing {
		if name == "sort" {
			continue // which uses 32-bit indices
		}
		g := schedtest.Build(t, f)
		for _, c := range schedtest.Choices(t, g, target) {
			for _, r := range c.Candidates {
				t.Run(fmt.Sprintf("%s, %s", name, r), func(t *testing.T) {
					schedtest.RunOn(t, g, schedtest.Forced(t, g, target, func(o *plan.Choice) (emit.Schedule, bool) { return r.Schedule, o.Key == c.Key }), 0)
				})
			}
		}
	}
}
