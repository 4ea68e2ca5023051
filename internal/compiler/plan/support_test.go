package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/codegen/msl"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/ops"
)

// printers lists the dialects with a printer: a dialect without one supports nothing.
var printers = map[dtype.Dialect]plan.Printer{dtype.WGSL: wgsl.Printer{}, dtype.CUDA: cudacpp.Printer{}, dtype.MSL: msl.Printer{}}

// TestSupportTableMatchesPrinter compiles, for each element type and
// each dialect, kernels that load, compute and store; complex numbers by their
// parts. If the table does not
// list them the error is of the right kind and names the value and its type.
func TestSupportTableMatchesPrinter(t *testing.T) {
	for dialect, printer := range printers {
		target := plan.WebGPU()
		target.Dialect = dialect
		for _, d := range dtype.All() {
			for name, f := range uses(d) {
				t.Run(dialect.String()+"/"+d.String()+"/"+name, func(t *testing.T) {
					p, err := compileFor(t, f, target, printer)
					inPairs := d.IsComplex() && d.Real().On(dialect) != dtype.Unsupported
					if d.On(dialect) != dtype.Unsupported || inPairs {
						if err != nil || printer == nil || len(p.Kernels) == 0 {
							t.Errorf("promised, but %v", err)
						}
						return
					}
					if !errors.Is(err, ir.ErrUnsupported) || !strings.Contains(err.Error(), `"weights"`) || name != "convert" && !strings.Contains(err.Error(), d.String()) {
						t.Errorf("error %v, want one of kind %q that names weights and %s", err, ir.ErrUnsupported, d)
					}
				})
			}
		}
	}
}

// uses are graphs that compute with values of a type: their input, or the node that computes it, is
// called weights.
func uses(d ir.DType) map[string]func(b *ir.Builder) {
	input := func(b *ir.Builder) ir.Value { return b.Input("weights", d, ir.N(512)) }
	out := map[string]func(b *ir.Builder){
		"load and store": func(b *ir.Builder) { b.Output("y", input(b)) },
	}
	if d.IsPacked() {
		return out
	}
	if !d.IsComplex() { // where i32 is not promised either the error is about that
		out["convert"] = func(b *ir.Builder) {
			x := b.Input("weights", ir.I32, ir.N(512))
			b.Label("weights")
			b.Output("y", ops.Convert(b, x, d))
		}
	}
	out["move"] = func(b *ir.Builder) { b.Output("y", ops.Reverse(b, input(b), 0)) }
	out["choose"] = func(b *ir.Builder) {
		x := input(b)
		b.Output("y", ops.Select(b, ops.Eq(b, x, ops.ZerosLike(b, x)), x, ops.OnesLike(b, x)))
	}
	if d.IsBool() {
		out["compute"] = func(b *ir.Builder) { x := input(b); b.Output("y", ops.Not(b, ops.And(b, x, ops.Reverse(b, x, 0)))) }
		return out
	}
	if d.IsFloat8() {
		return out
	}
	out["compute"] = func(b *ir.Builder) { x := input(b); b.Output("y", ops.Add(b, ops.Mul(b, x, x), ops.OnesLike(b, x))) }
	out["sum"] = func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, input(b))) }
	out["product of matrices"] = func(b *ir.Builder) {
		x := ops.Reshape(b, input(b), ir.N(16), ir.N(32))
		b.Output("y", ops.MatMul(b, x, ops.Transpose(b, x, 1, 0)))
	}
	return out
}

func compileFor(t *testing.T, f func(b *ir.Builder), target plan.Target, printer plan.Printer) (*plan.Plan, error) {
	t.Helper()
	g, err := ir.Build("g", f)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	return plan.Compile(m, target, printer)
}
