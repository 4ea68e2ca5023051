package backendtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
)

// randomTolerance is the tolerance of results rounded by many ops in sequence.
func randomTolerance(d ir.DType) irtest.Tolerance {
	tol := irtest.LooseToleranceFor(d)
	return irtest.Tolerance{Abs: 2 * tol.Abs, Rel: 2 * tol.Rel}
}

// Random runs random graphs of supported ops, a few in each module.
func Random(t *testing.T, b native.Backend) {
	const graphs, together = 12, 6
	for first := uint64(0); first < graphs; first += together {
		t.Run(fmt.Sprintf("%d to %d", first, first+together-1), func(t *testing.T) {
			var cases []one
			for seed := first; seed < first+together; seed++ {
				c, err := randomCase(seed)
				if err != nil {
					t.Fatal(err)
				}
				if supported(b, c.graph) == "" {
					cases = append(cases, c)
				}
			}
			check(t, b, cases)
		})
	}
	t.Run("with any op", func(t *testing.T) {
		var cases []one
		usable := irtest.Memoize(accepts(b))
		for _, n := range somePatchworks(usable) {
			c, err := patchworkCase(usable, n)
			if err != nil {
				t.Fatal(err)
			}
			cases = append(cases, c)
		}
		check(t, b, cases)
	})
}

// somePatchworks returns the seeds of the random patchworks that a backend runs: few, since
// it also runs the samples of each op.
func somePatchworks(usable func(op ir.Op, s ir.Sample) bool) []uint64 {
	const patchworks = 6
	step := max(1, irtest.Patchworks(usable)/patchworks)
	out := make([]uint64, patchworks)
	for i := range out {
		out[i] = uint64(i) * step
	}
	return out
}

// accepts returns whether a backend supports the node of a sample.
func accepts(b native.Backend) func(op ir.Op, s ir.Sample) bool {
	return func(op ir.Op, s ir.Sample) bool {
		g, _, err := irtest.SampleGraph(op, s)
		return err == nil && supported(b, g) == ""
	}
}

func patchworkCase(usable func(op ir.Op, s ir.Sample) bool, n uint64) (one, error) {
	p := irtest.RandomPatchwork(n, usable)
	c := one{name: fmt.Sprint("patchwork ", n), in: p.Inputs, tol: p.DeviceTolerance}
	var err error
	c.graph, err = plainPorts(p.Graph)
	return c, err
}

func randomCase(seed uint64) (one, error) {
	g, in := irtest.RandomGraph(rand.New(rand.NewPCG(seed, 6)), 3+int(seed%30))
	c := one{name: fmt.Sprint("seed ", seed), in: in, tol: randomTolerance}
	var err error
	c.graph, err = plainPorts(g)
	return c, err
}

// plainPorts turns the persistent values of a graph into inputs and outputs, since entries
// of a module would share them.
func plainPorts(g *ir.Graph) (*ir.Graph, error) {
	return ir.Build(g.Name(), func(b *ir.Builder) {
		ports := make([]ir.Value, len(g.Ports()))
		for i, p := range g.Ports() {
			ports[i] = b.Port(ir.InputPort, p.Name, p.Value.Type())
		}
		for i, v := range b.Splice(g, ports) {
			b.Output(fmt.Sprint("y", i), v)
		}
	})
}
