//go:build cgo && !js

package webgpu

import (
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestAttentionInBlocksOnTheDevice runs samples in kernels that keep no scores,
// which the backend takes for large ones only. They are few since a software GPU takes
// seconds to compile one.
func TestAttentionInBlocksOnTheDevice(t *testing.T) {
	dev := open(t)
	for op, name := range map[ir.Op]string{ops.OpAttentionForward: "beyond a tile", ops.OpAttentionBackward: "bias, softcap and causal"} {
		d, _ := ir.Lookup(op)
		for _, s := range d.Samples() {
			if s.Name == name {
				t.Run(string(op), func(t *testing.T) { attendOn(t, dev, op, s) })
			}
		}
	}
}

func attendOn(t *testing.T, dev *device, op ir.Op, s ir.Sample) {
	g, n, err := irtest.SampleGraph(op, s)
	if err != nil {
		t.Fatal(err)
	}
	inputs := irtest.SampleInputs(s)
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	target := dev.target()
	target.ScoreBytes = 1
	given := tensors{}
	for name, a := range inputs {
		given[name] = native.Tensor{DType: a.DType, Dims: a.Dims, Data: a.Bytes()}
	}
	p := load(t, func(*device, *plan.Plan) (*plan.Plan, error) { return plan.Compile(m, target, wgsl.Printer{}) })
	got := run(t, p, "run", given)
	for i, o := range g.Outputs() {
		tol := irtest.SampleTolerance(n, s, want[i].DType)
		for j, x := range asFloats(got[o.Name]) {
			if y := want[i].Float(j); !tol.Allows(x, y) && !math.IsInf(y, 0) {
				t.Fatal(fmt.Errorf("%s: element %d is %v, not %v", o.Name, j, x, y))
			}
		}
	}
}
