package sparse_test

import (
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/sparse"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// TestPatternsCoverNonzerosOfEveryOp compares, for samples of every op and
// each operand, the pattern of the first result with its dense Jacobian.
func TestPatternsCoverNonzerosOfEveryOp(t *testing.T) {
	checked, full := 0, 0
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil || d.NoGrad != "" {
			continue
		}
		for _, s := range d.Samples() {
			elements, differentiable := 0, true
			for _, x := range s.In {
				elements += x.Len()
				differentiable = differentiable && !x.DType.IsComplex() && (x.DType != ir.F16 && x.DType != ir.BF16)
			}
			g, _, err := irtest.SampleGraph(op, s)
			if err != nil {
				t.Fatal(err)
			}
			if out := g.Outputs()[0].Value; elements > 60 || !differentiable || !out.DType().IsFloat() || out.DType().IsFloat8() {
				continue
			}
			for i, x := range s.In {
				if port := g.Ports()[i].Name; x.DType.IsFloat() && !x.DType.IsFloat8() {
					n, all := holds(t, g, s, port)
					checked += n
					full += all
				}
			}
		}
	}
	t.Logf("%d elements, of which patterns leave %d", checked, full)
	if checked < 20000 || full > checked*2/5 {
		t.Error("too few elements to tell, or patterns that leave nearly all")
	}
}

// holds checks the pattern of a graph by a port, and returns how many elements the
// matrix has, and the pattern.
func holds(t *testing.T, g *ir.Graph, s ir.Sample, port string) (elements, left int) {
	t.Helper()
	name := g.Outputs()[0].Name
	j, err := autodiff.JacobianForward(g, name, port)
	if err != nil {
		return 0, 0 // other tests say which ops have no derivative
	}
	p, err := sparse.PatternOf(g, name, port)
	if err != nil {
		t.Errorf("%s, %s by %s: %v", g.Name(), s.Name, port, err)
		return 0, 0
	}
	dense := output(t, j, irtest.SampleInputs(s), autodiff.JacobianName(name, port))
	for i, row := range p.Rows {
		at := 0
		for c := range p.Columns {
			inside := at < len(row) && int(row[at]) == c
			if inside {
				at++
			} else if x := dense.F[i*p.Columns+c]; x != 0 {
				t.Errorf("%s, %s by %s: element %d, %d is %v and not in the pattern", g.Name(), s.Name, port, i, c, x)
				return 0, 0
			}
		}
	}
	return dense.Len(), p.Len()
}
