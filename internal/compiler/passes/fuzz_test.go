package passes_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// A graph that can be read can be optimised.
func FuzzRun(f *testing.F) {
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		for i, s := range d.Samples() {
			g, _, err := irtest.SampleGraph(op, s)
			if err != nil {
				f.Fatal(err)
			}
			if i < 2 {
				f.Add(g.String())
			}
		}
	}
	for seed := range uint64(20) {
		g, _ := irtest.RandomGraph(rand.New(rand.NewPCG(seed, 4)), 8)
		f.Add(g.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ir.Parse(text)
		if err != nil {
			return
		}
		if _, err := passes.Run(g, passes.Options{Verify: ir.Verify}); err != nil {
			t.Fatalf("%v\n%s", err, g)
		}
	})
}
