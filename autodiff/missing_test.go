package autodiff_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// partly is a loss that depends on x and not on z, but through a step.
func partly(t *testing.T) *ir.Graph {
	return build(t, func(b *ir.Builder) {
		x, z := b.Param("x", ir.F64), b.Param("z", ir.F64)
		b.Output("y", ops.Add(b, ops.Mul(b, x, x), ops.Floor(b, z)))
	})
}

// TestPortsWithoutAPathAreTreatedAlike requests from every transform the derivative
// by a port that has none, with either option.
func TestPortsWithoutAPathAreTreatedAlike(t *testing.T) {
	type options = autodiff.Options
	for name, c := range map[string]struct {
		with func(g *ir.Graph, o options) (*ir.Graph, error)
		// plain is the transform without options, zeros whether it gives zeros.
		plain func(g *ir.Graph) (*ir.Graph, error)
		zeros bool
		in    values
		zero  string
	}{
		"vjp": {
			autodiff.VJPWith, func(g *ir.Graph) (*ir.Graph, error) { return autodiff.VJP(g) }, true,
			values{"cotangent/y": num(1)},
			"grad/z",
		},
		"jvp": {
			autodiff.JVPWith, func(g *ir.Graph) (*ir.Graph, error) { return autodiff.JVP(g) }, true,
			values{"tangent/x": num(0), "tangent/z": num(1)},
			"tangent/y",
		},
		"grad": {
			func(g *ir.Graph, o options) (*ir.Graph, error) {
				return autodiff.GradWith(g, autodiff.GradOptions{Loss: "y", Wrt: o.Wrt, Missing: o.Missing})
			}, func(g *ir.Graph) (*ir.Graph, error) { return autodiff.Grad(g, "y") }, false, values{}, "grad/z",
		},
		"hvp": {
			func(g *ir.Graph, o options) (*ir.Graph, error) { return autodiff.HVPWith(g, "y", o) },
			func(g *ir.Graph) (*ir.Graph, error) { return autodiff.HVP(g, "y") },
			false,
			values{"tangent/x": num(1), "tangent/z": num(1)},
			"hvp/z",
		},
		"hessian": {
			func(g *ir.Graph, o options) (*ir.Graph, error) { return autodiff.HessianWith(g, "y", o) },
			func(g *ir.Graph) (*ir.Graph, error) { return autodiff.Hessian(g, "y") }, false,
			values{},
			"hessian/x/z",
		},
		"jet": {
			func(g *ir.Graph, o options) (*ir.Graph, error) { return autodiff.JetWith(g, 1, o) },
			func(g *ir.Graph) (*ir.Graph, error) { return autodiff.Jet(g, 1) }, true,
			values{"series/1/x": num(0), "series/1/z": num(1)},
			"series/1/y",
		},
		"jacobian, by column": {
			func(g *ir.Graph, o options) (*ir.Graph, error) { return autodiff.JacobianForwardWith(g, "y", byAll(o)) },
			func(g *ir.Graph) (*ir.Graph, error) { return autodiff.JacobianForward(g, "y", "z") }, true,
			values{},
			"jacobian/y/z",
		},
		"jacobian, by row": {
			func(g *ir.Graph, o options) (*ir.Graph, error) { return autodiff.JacobianReverseWith(g, "y", byAll(o)) },
			func(g *ir.Graph) (*ir.Graph, error) { return autodiff.JacobianReverse(g, "y", "z") }, true,
			values{},
			"jacobian/y/z",
		},
		"nth order": {
			func(g *ir.Graph, o options) (*ir.Graph, error) {
				return autodiff.NthOrderWith(g, "y", last(o), 2, o.Missing)
			},
			func(g *ir.Graph) (*ir.Graph, error) { return autodiff.NthOrder(g, "y", "z", 2) }, true,
			values{},
			"d1/y",
		},
		"directional": {
			func(g *ir.Graph, o options) (*ir.Graph, error) {
				return autodiff.DirectionalWith(g, "y", last(o), 1, o.Missing)
			},
			func(g *ir.Graph) (*ir.Graph, error) { return autodiff.Directional(g, "y", "z", 1) }, true,
			values{"direction1/z": num(1)},
			"d1/y",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := partly(t)
			check := func(d *ir.Graph, err error) {
				t.Helper()
				in := values{"x": num(3), "z": num(0.5)}
				maps.Copy(in, c.in)
				checkFloats(t, c.zero, eval(t, must(t, d, err), in)[c.zero], []float64{0}, 0)
			}
			refused := func(_ *ir.Graph, err error) {
				t.Helper()
				var missing *autodiff.NoPathError
				if !errors.As(err, &missing) || missing.Port != "z" || len(missing.Ends) != 1 || missing.Ends[0].Op != ops.OpFloor {
					t.Errorf("error %v, want one that names z and floor", err)
				}
			}
			check(c.with(g, options{Missing: autodiff.MissingIsZero}))
			refused(c.with(g, options{}))
			if d, err := c.with(g, options{Wrt: []string{"x"}}); err != nil || d == nil {
				t.Errorf("by x alone: %v", err)
			}
			if c.zeros {
				check(c.plain(g))
			} else {
				refused(c.plain(g))
			}
		})
	}
}

// byAll are options by both ports of partly where they name none.
func byAll(o autodiff.Options) autodiff.Options {
	if len(o.Wrt) == 0 {
		o.Wrt = []string{"x", "z"}
	}
	return o
}

// last is the port of a transform by one port.
func last(o autodiff.Options) string {
	wrt := byAll(o).Wrt
	return wrt[len(wrt)-1]
}

func TestTransformsOfNoGraphAreErrors(t *testing.T) {
	for name, f := range map[string]func() (*ir.Graph, error){
		"vjp":                 func() (*ir.Graph, error) { return autodiff.VJP(nil) },
		"jvp":                 func() (*ir.Graph, error) { return autodiff.JVP(nil, "x") },
		"grad":                func() (*ir.Graph, error) { return autodiff.Grad(nil, "y") },
		"value and grad":      func() (*ir.Graph, error) { return autodiff.ValueAndGrad(nil, "y", "x") },
		"hvp":                 func() (*ir.Graph, error) { return autodiff.HVP(nil, "y") },
		"hessian":             func() (*ir.Graph, error) { return autodiff.Hessian(nil, "y") },
		"jacobian, by column": func() (*ir.Graph, error) { return autodiff.JacobianForward(nil, "y", "x") },
		"jacobian, by row":    func() (*ir.Graph, error) { return autodiff.JacobianReverse(nil, "y", "x") },
		"nth order":           func() (*ir.Graph, error) { return autodiff.NthOrder(nil, "y", "x", 2) },
		"directional":         func() (*ir.Graph, error) { return autodiff.Directional(nil, "y", "x", 2) },
		"vmap":                func() (*ir.Graph, error) { return autodiff.Vmap(nil, ir.N(2), autodiff.VmapOptions{}) },
	} {
		var e *autodiff.Error
		if _, err := f(); !errors.As(err, &e) || !errors.Is(err, ir.ErrGraph) {
			t.Errorf("%s: error %v, want one of kind %q", name, err, ir.ErrGraph)
		}
	}
}

// TestNamesOfDeeperLevels differentiates twice and checks the names of the added ports.
func TestNamesOfDeeperLevels(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x := b.Param("x", ir.F64)
		b.Output("y", ops.Mul(b, x, ops.Mul(b, x, x)))
	})
	d, err := autodiff.ValueAndGrad(g, "y")
	dd, err2 := autodiff.ValueAndGrad(must(t, d, err), autodiff.GradName("x"))
	out := eval(t, must(t, dd, err2), values{"x": num(2)})
	checkFloats(t, "second derivative", out[autodiff.AtLevel(2, autodiff.GradName("x"))], []float64{12}, 0)
	checkFloats(t, "first derivative", out[autodiff.AtLevel(1, autodiff.GradName("x"))], []float64{12}, 0)

	j, err := autodiff.JVP(must(t, d, err2))
	jj, err2 := autodiff.JVP(must(t, j, err))
	out = eval(t, must(t, jj, err2), values{
		"x": num(2), autodiff.TangentName("x"): num(1), autodiff.AtLevel(2, autodiff.TangentName("x")): num(1),
		autodiff.AtLevel(2, autodiff.TangentName(autodiff.TangentName("x"))): num(0),
	})
	name := autodiff.AtLevel(2, autodiff.TangentName(autodiff.TangentName(autodiff.GradName("x"))))
	checkFloats(t, "third derivative", out[name], []float64{6}, 0)
}
