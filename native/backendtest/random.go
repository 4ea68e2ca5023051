package backendtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
)

// randomTolerance is that of results which many ops in a row have rounded.
func randomTolerance(d ir.DType) irtest.Tolerance {
	tol := irtest.LooseToleranceFor(d)
	return irtest.Tolerance{Abs: 2 * tol.Abs, Rel: 2 * tol.Rel}
}

// Random runs some random graphs, a few in one module: those of which the
// backend supports every node.
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
}

// randomCase makes plain inputs and outputs of the persistent values of a
// random graph, as entries of one module share these.
func randomCase(seed uint64) (one, error) {
	g, in := irtest.RandomGraph(rand.New(rand.NewPCG(seed, 6)), 3+int(seed%30))
	c := one{name: fmt.Sprint("seed ", seed), in: in, tol: randomTolerance}
	var err error
	c.graph, err = ir.Build("random", func(b *ir.Builder) {
		ports := make([]ir.Value, len(g.Ports()))
		for i, p := range g.Ports() {
			ports[i] = b.Port(ir.InputPort, p.Name, p.Value.Type())
		}
		for i, v := range b.Splice(g, ports) {
			b.Output(fmt.Sprint("y", i), v)
		}
	})
	return c, err
}
