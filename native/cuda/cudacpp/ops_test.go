package cudacpp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	_ "github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/native/cuda/check"
)

// TestClangAcceptsTheKernelsOfAllOps prints the kernels of every sample of
// every op that the printer has types for, and compiles those of an op at once:
// each in a namespace and with a name of its own. Of kernels that differ in
// numbers alone one is compiled, to save time.
func TestClangAcceptsTheKernelsOfAllOps(t *testing.T) {
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			var all strings.Builder
			seen := map[string]bool{}
			for i, s := range d.Samples() {
				p, err := compileSample(op, s)
				if err != nil {
					t.Errorf("sample %d: %v", i, err)
					continue
				}
				for j, k := range p.Kernels {
					words := strings.Map(dropDigits, k.Source)
					if seen[words] {
						continue
					}
					seen[words] = true
					unique := fmt.Sprintf("sample_%d_%d", i, j)
					source := strings.Replace(k.Source, " k_"+k.Name+"(", " "+unique+"(", 1)
					fmt.Fprintf(&all, "namespace in_%s {\n%s}\n", unique, source)
				}
			}
			if _, err := check.Compile(all.String()); err != nil {
				t.Error(err)
			}
		})
	}
}

func dropDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}

// compileSample returns the plan of a sample, an empty one where the printer
// lacks a type.
func compileSample(op ir.Op, s ir.Sample) (*plan.Plan, error) {
	g, err := ir.Build("sample", func(b *ir.Builder) {
		var in []ir.Value
		for i, a := range s.In {
			in = append(in, b.Port(ir.InputPort, fmt.Sprintf("x%d", i), a.Type()))
		}
		for i, v := range b.AddNode(op, s.Attrs, s.Subs, in...) {
			b.Output(fmt.Sprintf("y%d", i), v)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, n := range g.Nodes() {
		for _, t := range n.Types() {
			if t.DType.On(dtype.CUDA) != dtype.Arithmetic {
				return &plan.Plan{}, nil
			}
		}
	}
	return compile(g, nil)
}
