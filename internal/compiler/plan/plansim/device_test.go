package plansim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/loop"
)

// devices differ from the smallest WebGPU device.
var devices = []struct {
	name   string
	change func(l *loop.Limits)
}{
	// Workgroups are laid out in rows, the last of them with workgroups that
	// have nothing to do.
	{"short grids", func(l *loop.Limits) { l.Groups = 7 }},
	{"few bindings", func(l *loop.Limits) { l.StorageBuffers = 6 }},
	{"small bindings", func(l *loop.Limits) { l.BindingBytes = 4 << 10 }},
	{"large workgroups", func(l *loop.Limits) {
		l.Invocations, l.SharedBytes = 1024, 48<<10
		l.Workgroup = [3]int{1024, 1024, 64}
	}},
}

func TestRandomGraphsOnOtherDevices(t *testing.T) {
	for _, d := range devices {
		t.Run(d.name, func(t *testing.T) {
			target := plan.WebGPU()
			d.change(&target.Limits)
			eachRandomGraph(t, func(t *testing.T, g *ir.Graph, inputs map[string]*ir.Array) {
				checkTwoRuns(t, g, inputs, target)
			})
		})
	}
}

// TestRandomGraphsFitSmallBindings once drew a graph with attention between rows and more scores
// than a small binding holds.
func TestRandomGraphsFitSmallBindings(t *testing.T) {
	target := plan.WebGPU()
	target.Limits.BindingBytes = 4 << 10
	g, inputs := irtest.RandomGraph(rand.New(rand.NewPCG(7000165, 0)), 8)
	checkTwoRuns(t, g, inputs, target)
}
