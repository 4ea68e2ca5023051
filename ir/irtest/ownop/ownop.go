// Package ownop is an op outside rlx's own packages, with its own kernels: an example of a user's
// package, which tests of backends run.
package ownop

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Op is the name of [Centered].
const Op ir.Op = "ownop.centered"

// Centered returns x less the mean of all its elements, for an x of f32.
func Centered(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(Op, nil, x) }

func init() {
	if err := ir.Register(&ir.Def{
		Op: Op, Doc: "Elements less the mean of all of them.", Operands: []string{"x"},
		Constraints: []string{"C1: x is f32"},
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			if t := n.Input(0).Type(); t.DType != ir.F32 {
				return nil, ir.DTypef("x is %s; it must be f32", t.DType)
			}
			return n.InTypes(), nil
		},
		Eval: eval,
		JVP: func(b *ir.Builder, _ *ir.Node, _, _, t []ir.Value) []ir.Value {
			return []ir.Value{Centered(b, t[0])}
		},
		Transpose: func(b *ir.Builder, _ *ir.Node, _ []bool, _, ct []ir.Value) []ir.Value {
			return []ir.Value{Centered(b, ct[0])} // its matrix is symmetric
		},
		NoBatch: "the mean of each element of a batch is another op",
		Lower:   &ir.KernelsLowering{Kernels: kernels},
		Samples: samples,
	}); err != nil {
		panic(err)
	}
}

func eval(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	x, out, sum := in[0], in[0].Clone(), 0.0
	for i := range x.F {
		sum += x.F[i]
	}
	for i := range out.F {
		out.F[i] -= sum / float64(len(x.F))
	}
	return []*ir.Array{c.Round(out)}, nil
}

// kernels adds up shares of the elements first, and then takes the mean off each. A
// target for the CPU in a page has one thread.
func kernels(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	size, _ := n.Input(0).Shape().Size().Const()
	if size == 0 {
		return &ir.Algorithm{}
	}
	k := plan{size: size, threads: min(64, caps.Invocations)}
	k.parts, k.groups = (size+k.share()-1)/k.share(), (size+k.threads-1)/k.threads
	if k.groups > caps.Groups {
		return nil
	}
	operand, result, sums := ir.Memory{Space: ir.OperandMemory}, ir.Memory{Space: ir.ResultMemory}, ir.Memory{Space: ir.ScratchMemory}
	return &ir.Algorithm{
		Scratch: []ir.Type{ir.TypeOf(ir.F32, ir.N(k.parts))},
		Launches: []ir.KernelLaunch{
			{Kernel: k.addUp(), Arrays: []ir.Memory{operand, sums}},
			{Kernel: k.subtract(), Arrays: []ir.Memory{operand, sums, result}},
		},
	}
}

// plan describes how the elements are shared out.
type plan struct {
	size    int
	threads int // of a workgroup
	parts   int // workgroups that add up a share each
	groups  int // workgroups of a thread for each element
}

// share is how many elements a workgroup adds up.
func (k plan) share() int { return 16 * k.threads }

func array(name string, length int, access loop.Access) loop.Array {
	return loop.Array{Name: name, DType: ir.F32, Width: 1, Len: length, Access: access}
}

// addUp has a workgroup for each part: its threads add up some elements each, and
// then each other's sums by halves.
func (k plan) addUp() *loop.Kernel {
	const x, sums, cells = 0, 1, 2
	w, lane := loop.NewWriter(), loop.LocalID(0, k.threads)
	first := scalar.Mul(loop.GroupID(0, k.parts), loop.Int(k.share()))
	end := w.Let("end", scalar.Min(scalar.Add(first, loop.Int(k.share())), loop.Int(k.size)))
	sum := w.Var("sum", scalar.ConstF(ir.F32, 0))
	w.Loop("i", scalar.Add(first, lane), end, k.threads, k.size-1, func(i scalar.Expr) {
		w.Set(sum, scalar.Add(sum, scalar.LoadAt(x, ir.F32, i)))
	})
	cell := func(at scalar.Expr) scalar.Expr { return scalar.LoadAt(cells, ir.F32, at) }
	w.Store(cells, lane, sum)
	w.Barrier()
	for half := k.threads / 2; half > 0; half /= 2 {
		w.When(scalar.Lt(lane, loop.Int(half)), func() {
			w.Store(cells, lane, scalar.Add(cell(lane), cell(scalar.Add(lane, loop.Int(half)))))
		})
		w.Barrier()
	}
	w.When(scalar.Eq(lane, loop.Int(0)), func() { w.Store(sums, loop.GroupID(0, k.parts), cell(loop.Int(0))) })
	shared := array("cells", k.threads, loop.Read)
	shared.Space = loop.Shared
	return &loop.Kernel{
		Name: "add_up", Workgroup: [3]int{k.threads, 1, 1}, Groups: [3]int{k.parts, 1, 1},
		Arrays: []loop.Array{array("x", k.size, loop.Read), array("sums", k.parts, loop.ReadWrite), shared},
		Body:   *w.Body,
	}
}

// subtract has a thread for each element.
func (k plan) subtract() *loop.Kernel {
	const x, sums, y = 0, 1, 2
	w := loop.NewWriter()
	i := w.Let("i", loop.GlobalID(0, k.threads, k.groups))
	sum := w.Var("sum", scalar.ConstF(ir.F32, 0))
	w.Times("part", k.parts, func(part scalar.Expr) { w.Set(sum, scalar.Add(sum, scalar.LoadAt(sums, ir.F32, part))) })
	w.When(scalar.Lt(i, loop.Int(k.size)), func() {
		mean := scalar.Div(sum, scalar.ConstF(ir.F32, float64(k.size)))
		w.Store(y, i, scalar.Sub(scalar.LoadAt(x, ir.F32, scalar.Min(i, loop.Int(k.size-1))), mean))
	})
	return &loop.Kernel{
		Name: "subtract", Workgroup: [3]int{k.threads, 1, 1}, Groups: [3]int{k.groups, 1, 1},
		Arrays: []loop.Array{array("x", k.size, loop.Read), array("sums", k.parts, loop.Read), array("y", k.size, loop.ReadWrite)},
		Body:   *w.Body,
	}
}

func samples() []ir.Sample {
	sample := func(name string, dims ...int) ir.Sample {
		x := ir.NewArray(ir.F32, dims...)
		for i := range x.F {
			x.F[i] = float64(i%7) - float64(i%5)/4
		}
		return ir.Sample{Name: name, In: []*ir.Array{x}}
	}
	return []ir.Sample{sample("scalar"), sample("empty", 0, 3), sample("one part", 3, 5), sample("several parts", 2, 3, 411)}
}
