package conformance

import (
	"strconv"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// derivativesModule computes the first four derivatives of scalar functions at some points;
// the expected values are closed forms.
func derivativesModule() (*Module, error) {
	points := irtest.DerivativePoints
	run := Run{Inputs: map[string]*ir.Array{"x": ir.Floats(ir.F32, points, len(points))}}
	g, err := ir.Build("derivatives", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(len(points)))
		for _, f := range irtest.ClosedForms() {
			d, err := fourDerivatives(f)
			if err != nil {
				b.Fail(err)
				return
			}
			out := b.Call(d, map[string]ir.Value{"x": x})
			for order := 1; order <= 4; order++ {
				name := f.Name + "/" + strconv.Itoa(order)
				b.Output(name, out["d"+strconv.Itoa(order)+"/y"])
				run.Want = append(run.Want, Result{
					Output: name, About: f.Name, Array: closedForm(f, order), Tolerance: irtest.DerivativeTolerance(ir.F32, order),
				})
			}
		}
	})
	if err != nil {
		return nil, err
	}
	m := Module{Cases: []Case{{Name: "derivatives to the fourth", Entry: "run", Runs: []Run{run}}}}
	m.Module, err = ir.NewModule("model derivatives", ir.Entry{Name: "run", Graph: g})
	return &m, err
}

// fourDerivatives returns a graph of the derivatives of a function at each of the points.
func fourDerivatives(f irtest.Derivatives) (*ir.Graph, error) {
	g, err := ir.Build(f.Name, func(b *ir.Builder) { b.Output("y", f.F(b, b.Input("x", ir.F32))) })
	if err != nil {
		return nil, err
	}
	if g, err = autodiff.NthOrder(g, "y", "x", 4); err != nil {
		return nil, err
	}
	return autodiff.Vmap(g, ir.N(len(irtest.DerivativePoints)), autodiff.VmapOptions{In: map[string]int{"x": 0}})
}

func closedForm(f irtest.Derivatives, order int) *ir.Array {
	a := ir.NewArray(ir.F32, len(irtest.DerivativePoints))
	for i, x := range irtest.DerivativePoints {
		a.F[i] = f.Of(float64(float32(x)))[order]
	}
	return a
}
