package backendtest

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	_ "github.com/rlx-go/rlx/ir/irtest/ownop" // an op with kernels of its own
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// Ops runs every sample of every op that the backend supports.
func Ops(t *testing.T, b native.Backend) {
	var all []subject
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		ofOp := subject{name: string(op)}
		for i, s := range d.Samples() {
			c, err := sample(op, s)
			if err != nil {
				t.Fatalf("%s: %v", op, err)
			}
			c.name = fmt.Sprintf("%d %s", i, s.Name)
			if supported(b, c.graph) == "" {
				ofOp.cases = append(ofOp.cases, c)
			}
		}
		all = append(all, ofOp)
	}
	checkSubjects(t, b, all)
}

// sample builds the graph of a sample, with its operands as inputs.
func sample(op ir.Op, s ir.Sample) (one, error) {
	c := one{in: map[string]*ir.Array{}}
	var err error
	c.graph, err = ir.Build("sample", func(b *ir.Builder) {
		var in []ir.Value
		for i, a := range s.In {
			name := "x" + strconv.Itoa(i)
			c.in[name] = a
			in = append(in, b.Port(ir.InputPort, name, a.Type()))
		}
		for i, v := range b.AddNode(op, s.Attrs, s.Subs, in...) {
			b.Output("y"+strconv.Itoa(i), v)
			c.tol = func(d ir.DType) irtest.Tolerance { return sampleTolerance(v.Node(), s, d) }
		}
	})
	return c, err
}

// sampleTolerance extends irtest's tolerance to complex numbers.
func sampleTolerance(n *ir.Node, s ir.Sample, d ir.DType) irtest.Tolerance {
	if d.IsComplex() {
		return irtest.ToleranceFor(d.Real())
	}
	return irtest.SampleTolerance(n, s, d)
}

// Gradients runs the gradient of one sample of every differentiable op, with
// respect to all its operands of a floating type, with -short of some ops.
func Gradients(t *testing.T, b native.Backend) {
	var all []subject
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil || d.NoGrad != "" {
			continue
		}
		for _, s := range d.Samples() {
			c, ok, err := gradient(b, op, s)
			if err != nil {
				t.Errorf("%s: %v", op, err)
			}
			if ok {
				all = append(all, subject{string(op), []one{c}})
				break
			}
		}
	}
	if testing.Short() {
		all = everyOf(all, shortGradients)
	}
	checkSubjects(t, b, all)
}

// shortGradients divides the ops, of which -short differentiates the first.
const shortGradients = 4

// everyOf returns each of every subjects.
func everyOf(all []subject, every int) (some []subject) {
	for i := 0; i < len(all); i += every {
		some = append(some, all[i])
	}
	return some
}

// gradient returns the gradient graph of a sample, or false if it has none.
func gradient(b native.Backend, op ir.Op, s ir.Sample) (one, bool, error) {
	if s.NoGrad != "" {
		return one{}, false, nil
	}
	var wrt []string
	for i, a := range s.In {
		if a.DType == ir.F32 {
			wrt = append(wrt, "x"+strconv.Itoa(i))
		}
		if a.Len() == 0 || a.DType.IsFloat() && a.DType != ir.F32 {
			return one{}, false, nil
		}
	}
	c, err := sample(op, s)
	if err != nil || len(wrt) == 0 || supported(b, c.graph) != "" {
		return one{}, false, err
	}
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		in := make([]ir.Value, len(c.graph.Ports()))
		for i, p := range c.graph.Ports() {
			in[i] = b.Port(p.Kind, p.Name, p.Value.Type())
		}
		total := ops.Const(b, ir.F32, 0)
		for _, y := range b.Splice(c.graph, in) {
			if y.DType() == ir.F32 {
				total = ops.Add(b, total, weighted(b, y))
			}
		}
		b.Output("loss", total)
	})
	if err != nil {
		return one{}, false, err
	}
	c.graph, err = autodiff.GradWith(loss, autodiff.GradOptions{Loss: "loss", Wrt: wrt, Missing: autodiff.MissingIsZero})
	c.name = "gradient"
	c.tol = func(d ir.DType) irtest.Tolerance {
		tol := irtest.LooseToleranceFor(d)
		return irtest.Tolerance{Abs: max(s.Tol, tol.Abs), Rel: max(s.Tol, tol.Rel)}
	}
	return c, err == nil && supported(b, c.graph) == "", err
}

// weighted returns a weighted sum of the elements of y with distinct weights.
func weighted(b *ir.Builder, y ir.Value) ir.Value {
	n := ops.DimSize(b, ir.F32, y.Shape()...)
	flat := ops.Reshape(b, y, y.Shape().Size())
	w := ops.Div(b, ops.Add(b, ops.Iota(b, ir.F32, 0, y.Shape().Size()), ops.Const(b, ir.F32, 1)), n)
	return ops.ReduceSum(b, ops.Mul(b, flat, w), 0)
}
