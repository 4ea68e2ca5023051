package plan_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/routine"
)

// reducing has sums over two devices of the results of a chain of kernels, as in a backward pass.
func reducing(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("reducing", func(b *ir.Builder) {
		mesh := ops.MeshAttrs{MeshAxis: "data", Devices: 2}
		x := b.Input("x", ir.F32, ir.Dims(16, 16)...)
		var sums []ir.Value
		for range 4 {
			for range 3 {
				x = ops.Tanh(b, ops.MatMul(b, x, x))
			}
			sums = append(sums, ops.AllReduce(b, x, mesh, ops.AllReduceSum))
		}
		b.Output("sums", ops.Concatenate(b, 0, sums...))
		b.Output("index", ops.AxisIndex(b, mesh))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func withCollectives() plan.Target {
	target := plan.WebGPU()
	target.Collectives = true
	return target
}

// What is computed between a collective and the next touches the memory of neither array, so that a
// device can do both at the same time.
func TestTheMemoryOfACollectiveIsHeldUntilTheNext(t *testing.T) {
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: reducing(t)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Compile(m, withCollectives(), wgsl.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	steps := p.Entries[0].Steps
	isSum := func(s plan.Step) bool {
		c, ok := s.(*plan.Call)
		return ok && p.Routines[c.Routine].Name() == "collective"
	}
	overlaps := func(a, b plan.Binding) bool {
		return a.Buffer == b.Buffer && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes
	}
	found, beside := 0, 0
	for i, s := range steps {
		if !isSum(s) {
			continue
		}
		found++
		held := s.(*plan.Call).Bindings
		end := slices.IndexFunc(steps[i+1:], isSum)
		for _, later := range steps[i+1:][:max(end, 0)] {
			d, ok := later.(*plan.Dispatch)
			if !ok {
				continue
			}
			beside++
			for k, b := range d.Bindings {
				writes := p.Kernels[d.Kernel].Storage[k] != loop.Read
				if overlaps(b, held[1]) || writes && overlaps(b, held[0]) {
					t.Errorf("a step after collective %d touches its memory: %v, %v", found, b, held)
				}
			}
		}
	}
	if found != 4 || beside < 9 {
		t.Errorf("%d collectives with %d steps beside them", found, beside)
	}
}

// Without the feature of the target, and under a condition, collectives of several devices are refused.
func TestCollectivesNeedATargetThatHasThem(t *testing.T) {
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: reducing(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{}); err == nil {
		t.Error("a target without collectives takes them")
	}
	p, err := plan.Compile(m, withCollectives(), wgsl.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.Routines, p.Routines) || !slices.Contains(p.Routines, routine.Routine(routine.DeviceIndex{Axis: "data", Devices: 2})) {
		t.Errorf("the routines are %v, and read as %v", p.Routines, again.Routines)
	}
}
