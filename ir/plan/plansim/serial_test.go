package plansim_test

import (
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/plan"
)

// The schedules for one thread in the simulator, which watches bounds and memory
// that nobody has written.

func TestSamplesOnOneThread(t *testing.T) {
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		t.Run(string(op), func(t *testing.T) {
			for i, s := range d.Samples() {
				t.Run(strconv.Itoa(i)+" "+s.Name, func(t *testing.T) { checkSampleOn(t, plan.WebAssembly(false), op, s) })
			}
		})
	}
}

func TestRandomGraphsOnOneThread(t *testing.T) {
	eachRandomGraph(t, func(t *testing.T, g *ir.Graph, inputs map[string]*ir.Array) {
		checkTwoRuns(t, g, inputs, plan.WebAssembly(false))
	})
}
