//go:build cgo && !js

package exec_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/webgpu/internal/exec"
)

// TestAttentionInBlocksOnTheDevice runs samples in kernels that keep no scores,
// which the backend takes for large ones only. They are few since lavapipe takes
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

func attendOn(t *testing.T, dev *exec.Device, op ir.Op, s ir.Sample) {
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
	target := dev.Target()
	target.ScoreBytes = 1
	p, err := plan.Compile(m, target, wgsl.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	e := entry(t, load(t, dev, p), "run")
	for name, a := range inputs {
		if err := e.Set(ctx, name, exec.Tensor{DType: a.DType, Dims: a.Dims, Data: a.Bytes()}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, o := range g.Outputs() {
		names = append(names, o.Name)
	}
	reading, err := e.Run(ctx, 1, names...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := reading.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs() {
		tol := irtest.SampleTolerance(n, s, want[i].DType)
		for j, x := range asFloats(got[o.Name]) {
			if y := want[i].Float(j); !tol.Allows(x, y) && !math.IsInf(y, 0) {
				t.Fatal(fmt.Errorf("%s: element %d is %v, not %v", o.Name, j, x, y))
			}
		}
	}
}
