//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/cuda"
)

// BenchmarkSeveral trains GPT-2 124M in bf16 by data parallelism with 1, 2, 4 and 8 GPUs, as many as
// there are, also without overlap and with the states of AdamW divided: each rank has 16 sequences of 1024
// tokens. It times all-reduces of 256 MiB. Each rank
// writes what it measures.
func BenchmarkSeveral(b *testing.B) {
	gpu(b)
	for n := 1; n <= 8 && cuda.New(n-1).Probe() == nil; n *= 2 {
		for _, job := range []string{"gpt2", "serial gpt2", "gpt2 sharded", "bandwidth", "ring time", "llama 8B", "llama 70B", "7B params"} {
			alone := job == "gpt2" || job == "ring time" || job == "llama 8B"
			if n == 1 && !alone {
				continue
			}
			b.Run(job+"/"+strconv.Itoa(n), func(b *testing.B) {
				for i, said := range runRanks(b, job, n) {
					for line := range strings.Lines(said) {
						if strings.HasPrefix(line, "Several: ") || strings.HasPrefix(line, "ended") && !strings.Contains(line, "<nil>") {
							fmt.Printf("rank %d of %d, %s", i, n, line)
						}
					}
				}
			})
		}
	}
}

// module compiles a graph as entry "step" for the ranks along axis "data".
func (r *rank) module(ctx context.Context, g *ir.Graph) (native.Program, error) {
	mesh, err := collective.NewMesh(ctx, r.group, collective.Axis{Name: "data", Size: r.Size})
	if err != nil {
		return nil, err
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		return nil, err
	}
	o := native.Options{Mesh: mesh}
	if r.Size == 1 {
		o.Mesh = nil
	}
	return r.backend.Compile(ctx, m, o)
}

// dataParallel returns the training step of a model over the ranks.
func (r *rank) dataParallel(model func() (*ir.Graph, error), rate float64, half ir.DType) (*ir.Graph, error) {
	loss, err := model()
	if err != nil {
		return nil, err
	}
	if r.isPartition() {
		return r.partition(loss, rate)
	}
	mesh := ops.MeshAttrs{MeshAxis: "data", Devices: r.Size}
	sharded := strings.HasSuffix(r.job, "sharded") || r.dividesParams()
	pass := parallel.Data{Mesh: mesh, Scatter: sharded}
	g, err := optim.Step(loss, "loss", optim.AdamW{}, optim.Options{
		Schedule: optim.Constant(rate),
		Gradients: func(g *ir.Graph) (*ir.Graph, error) {
			g, _, err := pass.Gradients(g)
			return g, err
		},
	})
	if err == nil && sharded {
		g, _, err = parallel.Shard{Mesh: mesh, Params: r.dividesParams()}.States(g)
	}
	if err != nil || half == 0 {
		return g, err
	}
	return passes.Mixed(g, half)
}

// dividesParams reports whether each rank has a part of the parameters (ZeRO 3).
func (r *rank) dividesParams() bool { return strings.HasSuffix(r.job, "params") && r.Size > 1 }

// isPartition reports whether the step is written for the whole batch.
func (r *rank) isPartition() bool { return strings.HasSuffix(r.job, "partition") }

// partition returns a rank's part of the training step for the whole batch.
func (r *rank) partition(loss *ir.Graph, rate float64) (*ir.Graph, error) {
	g, err := optim.Step(loss, "loss", optim.AdamW{}, optim.Options{Schedule: optim.Constant(rate), ClipNorm: 10})
	if err != nil {
		return nil, err
	}
	p := parallel.Partition{
		Mesh: []parallel.Axis{{Name: "data", Size: r.Size}}, States: "data",
		Shardings: []parallel.Sharding{{Pattern: "x", Axes: []string{"data"}}},
	}
	places, err := p.Placements(g)
	if err != nil {
		return nil, err
	}
	g, _, err = p.Apply(g, places)
	return g, err
}

// gpt2OfARank prints the tokens of all ranks in a second.
func gpt2OfARank(ctx context.Context, r *rank) error {
	begun := time.Now()
	g, err := r.dataParallel(irtest.PeerGPT2.Loss, 3e-4, ir.BF16)
	if err != nil {
		return err
	}
	p, err := r.module(ctx, g)
	if err != nil {
		return err
	}
	in := begin(r.t, p, g, irtest.PeerGPT2.Vocab)
	bound, err := p.Bind(ctx, "step", in, nil)
	if err != nil {
		return err
	}
	if err := bound.Start(ctx); err != nil {
		return err
	}
	if err := cuda.Replay(p, "step", 1); err != nil {
		return err
	}
	first := time.Since(begun)
	if err := cuda.Replay(p, "step", 5); err != nil {
		return err
	}
	const each = 20
	var times []float64
	for range 5 {
		if err := r.group.Barrier(ctx); err != nil {
			return err
		}
		begun := time.Now()
		if err := cuda.Replay(p, "step", each); err != nil {
			return err
		}
		times = append(times, time.Since(begun).Seconds()/each)
	}
	slices.Sort(times)
	step := times[len(times)/2]
	tokens := float64(r.Size*irtest.PeerGPT2.Batch*irtest.PeerGPT2.Context) / step
	fmt.Printf("Several: %s 124M bf16, %d GPUs: %.0f tokens/s, step %.3f ms (%.3f to %.3f), first step after %.1f s, planned %.0f MiB, %d kernel nodes\n",
		os.Getenv(rankVariable), r.Size, tokens, 1e3*step, 1e3*times[0], 1e3*times[len(times)-1], first.Seconds(), float64(cuda.PlannedBytes(p))/(1<<20), cuda.Kinds(p)[0])
	return p.Close(ctx)
}

// curveBatch is the number of rows of a batch that the ranks divide.
const curveBatch = 16

// curveModel is the model of the losses that GPUs compare.
var curveModel = irtest.GPT{Vocab: 256, Context: 64, Width: 128, Heads: 4, Blocks: 2, Batch: curveBatch, Tied: true, Packed: true, Tanh: true}

// curveOfARank prints the losses of a model, a GPT or for the fake GPU two layers, whose batch is
// divided among the ranks.
func curveOfARank(ctx context.Context, r *rank) error {
	model := curveModel
	model.Batch /= r.Size
	loss, rate := model.Loss, 3e-3
	if strings.HasSuffix(r.job, "ring") {
		time := 512
		if strings.HasPrefix(r.job, "small") {
			time = curveBatch
		}
		loss, rate = func() (*ir.Graph, error) { return ringLoss(time/r.Size, r.Size) }, 0.03
	} else if strings.HasPrefix(r.job, "small") {
		rows := curveBatch / r.Size
		if r.isPartition() {
			rows = curveBatch
		}
		loss, rate = func() (*ir.Graph, error) { return twoLayers(rows) }, 0.05
	}
	g, err := r.dataParallel(loss, rate, 0)
	if err != nil {
		return err
	}
	p, err := r.module(ctx, g)
	if err != nil {
		return err
	}
	in := map[string]native.Tensor{}
	for k, port := range g.Ports() {
		dims, _ := port.Value.Shape().Ints()
		x := native.Zeros(port.Value.DType(), dims...)
		if port.Kind == ir.InputPort {
			in[port.Name] = x
			continue
		}
		if port.Kind == ir.ParamPort {
			skip := 0
			if r.dividesParams() {
				skip = r.Rank * x.Len()
			}
			draw(x, rand.New(rand.NewPCG(1, uint64(k))), skip)
		}
		if err := p.Set(ctx, port.Name, x); err != nil {
			return err
		}
	}
	for step := range 20 {
		for name, x := range in {
			// All ranks draw the whole batch, and each takes its rows.
			draw(x, rand.New(rand.NewPCG(uint64(len(name)), uint64(step))), r.Rank*len(x.Data)/x.DType.Size())
		}
		run, err := p.Run(ctx, "step", in)
		if err != nil {
			return err
		}
		out, err := run.Wait(ctx)
		if err != nil {
			return err
		}
		loss, err := out["loss"].Float32s()
		if err != nil {
			return err
		}
		fmt.Printf("loss %.9g\n", loss[0])
	}
	return p.Close(ctx)
}

// draw fills a tensor with random numbers, or integers below 8, after it has skipped some.
func draw(x native.Tensor, rng *rand.Rand, skip int) {
	if values, err := x.Int32s(); err == nil {
		for i := range skip + len(values) {
			if k := int32(rng.IntN(8)); i >= skip {
				values[i-skip] = k
			}
		}
	}
	if values, err := x.Float32s(); err == nil {
		for i := range skip + len(values) {
			if f := float32(0.1 * rng.NormFloat64()); i >= skip {
				values[i-skip] = f
			}
		}
	}
}

// twoLayers is the squared difference of a network and a target that it can reach.
func twoLayers(batch int) (*ir.Graph, error) {
	return ir.Build("two", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(batch), ir.N(6))
		h := ops.Tanh(b, ops.MatMul(b, x, b.Param("v", ir.F32, ir.N(6), ir.N(5))))
		y := ops.MatMul(b, h, b.Param("w", ir.F32, ir.N(5), ir.N(1)))
		d := ops.Sub(b, ops.Reshape(b, y, ir.N(batch)), ops.ReduceSum(b, x, 1))
		b.Output("loss", ops.Mean(b, ops.Mul(b, d, d), 0))
	})
}

// TestGPURanksTrainAsOne: two ranks, each with half of every batch, have the losses of one.
func TestGPURanksTrainAsOne(t *testing.T) {
	gpu(t)
	if err := cuda.New(1).Probe(); err != nil {
		t.Logf("one GPU: %v", err)
		return
	}
	trainAsOne(t, "curve", 0.5)
	trainAsOne(t, "curve sharded", 0.5)
	trainAsOne(t, "curve params", 0.5)
	trainAsOne(t, "curve ring", 0.6)
	trainAsOne(t, "tensor", 0.9)
	trainAsOne(t, "tensor sequence", 0.9)
}

// TestRanksTrainAsOneOnFakeGPUs does so with a smaller model.
func TestRanksTrainAsOneOnFakeGPUs(t *testing.T) {
	fakeRanks(t)
	trainAsOne(t, "small curve", 0.8)
	trainAsOne(t, "small curve sharded", 0.8)
	trainAsOne(t, "small curve params", 0.8)
	trainAsOne(t, "small curve partition", 0.8)
	trainAsOne(t, "small curve ring", 0.6)
	trainAsOne(t, "small tensor", 0.8)
}

// trainAsOne compares the losses of a job with one rank and with two: they differ by at most 1e-6, or 1e-6 of
// their size if that is above 1. The last is at most a part of the first.
func trainAsOne(t *testing.T, job string, part float64) {
	one := losses(t, runRanks(t, job, 1)[0])
	worst := 0.0
	for i, said := range runRanks(t, job, 2) {
		two := losses(t, said)
		if len(two) != len(one) {
			t.Fatalf("rank %d has %d losses, not %d: %s", i, len(two), len(one), said)
		}
		for k := range one {
			worst = max(worst, math.Abs(two[k]-one[k])/max(1, one[k]))
		}
	}
	t.Logf("%s: losses from %v to %v, which differ by %.2g at most", job, one[0], one[len(one)-1], worst)
	if worst > 1e-6 || one[len(one)-1] > part*one[0] {
		t.Errorf("one rank has the losses %v", one)
	}
}

var lossLine = regexp.MustCompile(`(?m)^loss (\S+)$`)

func losses(t *testing.T, said string) (out []float64) {
	t.Helper()
	for _, m := range lossLine.FindAllStringSubmatch(said, -1) {
		x, err := strconv.ParseFloat(m[1], 64)
		must(t, err)
		out = append(out, x)
	}
	if len(out) == 0 {
		t.Fatalf("no losses: %s", said)
	}
	return out
}
