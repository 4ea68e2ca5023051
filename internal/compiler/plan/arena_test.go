//go:build !js

package plan

import (
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestPackedValuesDoNotShareMemory places values of random sizes and live ranges: no two that are
// live at the same time overlap, and they take little more than the bytes that are live at a time.
func TestPackedValuesDoNotShareMemory(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := newCompiler(&ir.Module{}, WebGPU(), textPrinter{})
		ec := &entryCompiler{compiler: c, regions: map[*fusion.Tensor]region{}}
		lives, live := make([]*liveRange, 200), make([]int, 100)
		for i := range lives {
			from, rows := r.IntN(90), 1+r.IntN(40)
			lives[i] = &liveRange{t: &fusion.Tensor{DType: ir.F32, Dims: []int{rows * RowBytes / 4}}, from: from, to: from + r.IntN(9)}
			for at := from; at <= lives[i].to; at++ {
				live[at] += rows * RowBytes
			}
		}
		if err := packTemps(ec, lives); err != nil {
			t.Fatal(err)
		}
		most := 0
		for _, bytes := range live {
			most = max(most, bytes)
		}
		if got := c.plan.Buffers[0].Bytes; len(c.plan.Buffers) != 1 || got > most*5/4 {
			t.Errorf("seed %d: %d bytes in %d buffers, of which %d are live at a time", seed, got, len(c.plan.Buffers), most)
		}
		for i, a := range lives {
			for j, b := range lives[:i] {
				x, y := ec.regions[a.t], ec.regions[b.t]
				if a.from <= b.to && b.from <= a.to && x.offset < y.offset+y.bytes && y.offset < x.offset+x.bytes {
					t.Fatalf("seed %d: value %d at %+v lies over value %d at %+v", seed, i, x, j, y)
				}
			}
		}
	}
}

// TestConcurrentLaunchesShareNoMemory: of two chains, each from an input to a number, the launches alternate.
// A chain reuses its own memory and not that of the other, which would have to wait.
func TestConcurrentLaunchesShareNoMemory(t *testing.T) {
	const steps, size = 6, 64
	g, err := ir.Build("chains", func(b *ir.Builder) {
		chains := []ir.Value{b.Input("x", ir.F32, ir.Dims(size, size)...), b.Input("y", ir.F32, ir.Dims(size, size)...)}
		for range steps {
			for i, x := range chains {
				chains[i] = ops.MatMul(b, x, x)
			}
		}
		for i, x := range chains {
			b.Output([]string{"a", "b"}[i], x)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	target := WebGPU()
	target.Name, target.OneArena = "one arena", true
	ec := compileEntry(t, g, target)
	order := newLaunchOrder(ec.launches)
	shared := sharedMemory(ec)
	for _, s := range shared {
		if first, last := s[0].from, s[1].from; !order.depends(last, first) {
			t.Errorf("launches %d and %d share memory, and neither depends on the other", first, last)
		}
	}
	if len(shared) == 0 {
		t.Error("no memory is used twice")
	}
}

// sharedMemory returns the pairs of values that share memory, the earlier first.
func sharedMemory(ec *entryCompiler) (out [][2]*liveRange) {
	lives := memoryPhase{ec}.liveRanges(ec.partition.Outputs)
	for i, a := range lives {
		for _, b := range lives[:i] {
			x, y := ec.regions[a.t], ec.regions[b.t]
			if x.buffer == y.buffer && x.offset < y.offset+y.bytes && y.offset < x.offset+x.bytes {
				pair := [2]*liveRange{a, b}
				if b.from < a.from {
					pair = [2]*liveRange{b, a}
				}
				out = append(out, pair)
			}
		}
	}
	return out
}

// TestLargeCollectivesWaitForNoMemory: each layer's product is summed over the devices while the next layer is
// computed. Neither waits for the other's memory, although the values are large.
func TestLargeCollectivesWaitForNoMemory(t *testing.T) {
	const layers, size = 24, 1024
	g, err := ir.Build("layers", func(b *ir.Builder) {
		x, total := b.Input("x", ir.F32, ir.Dims(size, size)...), ops.Const(b, ir.F32, 0)
		for range layers {
			x = ops.MatMul(b, x, x)
			sum := ops.AllReduce(b, x, ops.MeshAttrs{MeshAxis: "data", Devices: 2}, ops.AllReduceSum)
			total = ops.Add(b, total, ops.Mean(b, sum))
		}
		b.Output("total", total)
	})
	if err != nil {
		t.Fatal(err)
	}
	target := WebGPU()
	target.Name, target.OneArena, target.Collectives = "one arena", true, true
	ec := compileEntry(t, g, target)
	order := newLaunchOrder(ec.launches)
	shared := sharedMemory(ec)
	for _, s := range shared {
		for _, user := range order.last[s[0].t.Root()] {
			next := s[1].from
			if (order.collective[user] || order.collective[next]) && next-user <= collectiveDistance && !order.depends(next, user) {
				t.Errorf("launch %d waits for the memory of launch %d, and one is a collective", next, user)
			}
		}
	}
	if len(shared) == 0 {
		t.Error("no memory is used twice")
	}
}
