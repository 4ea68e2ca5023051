package plansim_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// The schedules for one thread in the simulator, which watches bounds and memory
// that has not been written.

// undivided is a target whose kernels have one workgroup, divided one whose kernels have as many as
// possible: the simulator checks that they are independent.
var undivided, divided = plan.WebAssembly(false), plan.WebAssembly(false)

func init() { undivided.ShareOps, divided.ShareOps = 0, 1 }

// large is the number of elements from which on the operands of a sample run divided alone.
const large = 4000

// TestSamplesOnOneThread runs the samples divided and, but for large ones, undivided: a page divides these, and
// their kernels are those of small ones.
func TestSamplesOnOneThread(t *testing.T) {
	eachSample(t, func(t *testing.T, op ir.Op, s ir.Sample) {
		g, inputs, err := sampleGraph(op, s)
		if err != nil {
			t.Fatal(err)
		}
		targets := []plan.Target{divided, undivided}
		if slices.ContainsFunc(s.In, func(a *ir.Array) bool { return a.Len() > large }) {
			targets = targets[:1]
		}
		for _, target := range targets {
			if !runsOn(g, target) {
				continue
			}
			if program := open(t, g, target); ran.add(t, program, inputs) {
				checkRun(t, program, g, inputs)
			}
		}
	})
}

func TestRandomGraphsOnOneThread(t *testing.T) {
	for name, target := range map[string]plan.Target{"undivided": undivided, "divided": divided} {
		t.Run(name, func(t *testing.T) {
			eachRandomGraph(t, func(t *testing.T, g *ir.Graph, inputs map[string]*ir.Array) {
				checkTwoRuns(t, g, inputs, target)
			})
		})
	}
}

// TestManyMapsOnOneThread has more tensors than a kernel binds, of pairwise different types, so
// that no two share a binding.
func TestManyMapsOnOneThread(t *testing.T) {
	for _, d := range []ir.DType{ir.U8, ir.BF16, ir.F64} {
		t.Run(d.String(), func(t *testing.T) {
			inputs := map[string]*ir.Array{}
			g := schedtest.Build(t, func(b *ir.Builder) {
				for i := range 40 {
					x := ir.NewArray(d, 3+i%2)
					for j := range x.I {
						x.I[j] = int64(i + j)
					}
					for j := range x.F {
						x.F[j] = float64(i + j)
					}
					name := "x" + strconv.Itoa(i)
					inputs[name] = x
					v := b.Input(name, d, ir.N(x.Len()))
					b.Output("y"+strconv.Itoa(i), ops.Add(b, v, v))
				}
			})
			checkGraphOn(t, plan.WebAssembly(false), g, inputs)
		})
	}
}
