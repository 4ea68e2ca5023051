//go:build cgo && linux

package metal_test

import (
	"context"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/metal"
)

// chain is a program of many dispatches: the given number of rounds of a sum of more values than one
// kernel handles, and a map of them.
func chain(t testing.TB, rounds int) *ir.Graph {
	t.Helper()
	g, err := ir.Build("chain", func(b *ir.Builder) {
		h, _ := ops.Scan(b, ops.Loop{
			Length: ir.N(rounds), Carries: []ir.Value{b.State("x", ir.F32, ir.N(1<<18))},
			Body: func(b *ir.Builder, _, c, _ []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{ops.Add(b, c[0], ops.ReduceSum(b, c[0], 0))}, nil
			},
		})
		b.SetState("x", h[0])
	})
	must(t, err)
	return g
}

// encodings returns how many dispatches a run has, and how often its encoders set
// something.
func encodings(t testing.TB, rounds int) (dispatches, settings int) {
	gpu := install(t, false)
	p := compile(t, metal.New(), chain(t, rounds))
	bound, err := p.Bind(context.Background(), "step", nil, nil)
	must(t, err)
	run := func() {
		must(t, bound.Start(context.Background()))
		_, err := p.Get(context.Background(), "x")
		must(t, err)
	}
	run()
	before := gpu.Encoded()
	run()
	return metal.Plan(p).Entries[0].Dispatches(), gpu.Encoded() - before
}

// Encoders do not set unchanged state: for one more iteration, each dispatch sets its pipeline and
// those buffers that differ from the dispatch before, and runs.
func TestEncodersSetOnlyChangedState(t *testing.T) {
	short, few := encodings(t, 100)
	long, many := encodings(t, 200)
	if each := float64(many-few) / float64(long-short); each > 3.4 {
		t.Errorf("a dispatch takes %.2f calls of an encoder", each)
	} else {
		t.Logf("a dispatch takes %.2f calls of an encoder", each)
	}
}

// BenchmarkEncode times the host's work for a step of 1,000 kernels and more: one call from Go,
// which encodes the prepared list and commits it. The encoders are those of the software device, so
// their time is not a Mac's; the calls are.
func BenchmarkEncode(b *testing.B) {
	gpu := install(b, false)
	p := compile(b, metal.New(), chain(b, 400))
	bound, err := p.Bind(context.Background(), "step", nil, map[string]native.Tensor{})
	must(b, err)
	b.Setenv("RLX_SOFTWARE_LOG", "")
	b.ResetTimer()
	before := gpu.Encoded()
	for range b.N {
		must(b, bound.Start(context.Background()))
		b.StopTimer() // until the device, which only notes, is done
		_, err := p.Get(context.Background(), "x")
		must(b, err)
		b.StartTimer()
	}
	dispatches := float64(b.N * metal.Plan(p).Entries[0].Dispatches())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/dispatches, "ns/dispatch")
	b.ReportMetric(float64(gpu.Encoded()-before)/dispatches, "calls/dispatch")
	b.ReportMetric(dispatches/float64(b.N), "dispatches")
}
