//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/cuda"
)

// timed returns the least seconds of a run of entry "step".
func timed(p native.Program, each int) (float64, error) {
	least := math.Inf(1)
	for range 5 {
		begun := time.Now()
		if err := cuda.Replay(p, "step", each); err != nil {
			return 0, err
		}
		least = min(least, time.Since(begun).Seconds()/float64(each))
	}
	return least, nil
}

// bandwidthOfARank prints the bus bandwidth of each collective by the formulas of nccl-tests
// (PERFORMANCE.md), at 1 and at 256 MiB of the larger of the two arrays. An entry makes several
// calls, each of an array of its own.
func bandwidthOfARank(ctx context.Context, r *rank) error {
	n, mesh := r.Size, ops.MeshAttrs{MeshAxis: "data", Devices: r.Size}
	ring := make([]int, n)
	next := make([]int, n)
	for i := range ring {
		ring[i], next[i] = i, (i+1)%n
	}
	part := float64(n-1) / float64(n)
	for _, c := range []struct {
		name   string
		factor float64 // of the bytes of the larger array
		parts  bool    // a rank sends a part
		call   func(b *ir.Builder, x ir.Value) ir.Value
	}{
		{"all_reduce", 2 * part, false, func(b *ir.Builder, x ir.Value) ir.Value { return ops.AllReduce(b, x, mesh, ops.AllReduceSum) }},
		{"all_gather", part, true, func(b *ir.Builder, x ir.Value) ir.Value { return ops.AllGather(b, x, mesh, 0) }},
		{"reduce_scatter", part, false, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceScatter(b, x, mesh, 0) }},
		{"all_to_all", part, false, func(b *ir.Builder, x ir.Value) ir.Value { return ops.AllToAll(b, x, mesh, 0, 0) }},
		{"permute", 1, false, func(b *ir.Builder, x ir.Value) ir.Value { return ops.CollectivePermute(b, x, mesh, ring, next) }},
		{"broadcast", 1, false, func(b *ir.Builder, x ir.Value) ir.Value { return ops.CollectiveBroadcast(b, x, mesh, 0) }},
	} {
		for _, bytes := range []int{1 << 20, 256 << 20} {
			const calls = 10
			rows := bytes / 4 / 1024
			if c.parts {
				rows /= n
			}
			g, err := ir.Build("bandwidth", func(b *ir.Builder) {
				for i := range calls {
					name := fmt.Sprint("x", i)
					x := b.State(name, ir.F32, ir.Dims(rows, 1024)...)
					b.SetState(name, x)
					b.Output(fmt.Sprint("y", i), c.call(b, x))
				}
			})
			if err != nil {
				return err
			}
			p, err := r.module(ctx, g)
			if err != nil {
				return err
			}
			seconds, err := timed(p, 10)
			if err != nil {
				return err
			}
			seconds /= calls
			fmt.Printf("Several: %s of %d MiB, %d GPUs: %.1f us, %.0f GB/s of bus bandwidth\n", c.name, bytes>>20, n, 1e6*seconds, float64(bytes)*c.factor/seconds/1e9)
			if err := p.Close(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// ringLoss is the loss of a layer of attention over a sequence whose rows are divided among the
// ranks: each row must find itself. Without attention to itself, by the mean of the rows before it, 16 rows
// have a loss of 1 − (1 + 1/2 + ... + 1/16)/16 = 0.79 at best, and 512 one of 0.99.
func ringLoss(rows, ranks int) (*ir.Graph, error) {
	const heads, size = 2, 8
	return ir.Build("ring", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(rows, heads*size)...)
		x = ops.Mul(b, x, ops.ConstLike(b, x, 10)) // of variance 1: draw's have 0.01
		var qkv [3]ir.Value
		for i, name := range []string{"q", "k", "v"} {
			y := ops.MatMul(b, x, b.Param(name, ir.F32, ir.Dims(heads*size, heads*size)...))
			qkv[i] = ops.Transpose(b, ops.Reshape(b, y, ir.Dims(rows, heads, size)...), 1, 0, 2)
		}
		y := parallel.RingAttention(b, qkv[0], qkv[1], qkv[2], ops.MeshAttrs{MeshAxis: "data", Devices: ranks}, ops.AttentionAttrs{Causal: true})
		y = ops.Reshape(b, ops.Transpose(b, y, 1, 0, 2), ir.Dims(rows, heads*size)...)
		e := ops.Sub(b, y, x)
		b.Output("loss", ops.Mean(b, ops.Mul(b, e, e), 0, 1))
	})
}

// ringOfARank prints how long attention over a long sequence takes with its derivative, in bf16,
// with the sequence divided among the ranks.
func ringOfARank(ctx context.Context, r *rank) error {
	const tokens, heads, size = 65536, 16, 128
	for _, order := range []string{"all", "causal", "causal, balanced"} {
		causal, attend := order != "all", parallel.RingAttention
		if order == "causal, balanced" {
			attend = parallel.BalancedRingAttention
		}
		g, err := ir.Build("attention", func(b *ir.Builder) {
			var x [3]ir.Value
			for i, name := range []string{"q", "k", "v"} {
				x[i] = b.Param(name, ir.BF16, ir.Dims(1, heads, tokens/r.Size, size)...)
			}
			b.Output("y", attend(b, x[0], x[1], x[2], ops.MeshAttrs{MeshAxis: "data", Devices: r.Size}, ops.AttentionAttrs{Causal: causal}))
		})
		if err == nil {
			g, err = autodiff.VJP(g)
		}
		if err != nil {
			return err
		}
		p, err := r.filled(ctx, g)
		if err != nil {
			return err
		}
		cotangent := native.Zeros(ir.BF16, 1, heads, tokens/r.Size, size)
		for i := range cotangent.Data {
			cotangent.Data[i] = []byte{0x9a, 0x3b}[i%2] // 0.0047
		}
		in := map[string]native.Tensor{}
		for _, port := range g.Ports() {
			if port.Kind == ir.InputPort {
				in[port.Name] = cotangent
			}
		}
		bound, err := p.Bind(ctx, "step", in, nil)
		if err != nil {
			return err
		}
		if err := bound.Start(ctx); err != nil {
			return err
		}
		seconds, err := timed(p, 3)
		if err != nil {
			return err
		}
		products := 7 * 2 * float64(tokens) * tokens * heads * size // 2 forward, 5 backward
		if causal {
			products /= 2
		}
		fmt.Printf("Several: attention of %d tokens, %s, forward and backward, %d GPUs: %.2f ms, %.0f TFLOP/s on each, planned %.0f MiB\n",
			tokens, order, r.Size, 1e3*seconds, products/seconds/float64(r.Size)/1e12, float64(cuda.PlannedBytes(p))/(1<<20))
		if err := p.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tensorOfARank prints the losses of a transformer whose heads and features are divided among the ranks,
// and for "sequence" the rows between its layers, too.
func tensorOfARank(ctx context.Context, job string) error {
	s, err := rlx.Open("cuda")
	if err != nil {
		return err
	}
	group, err := s.Group(ctx, collective.Options{Deadline: time.Minute})
	if err != nil {
		return err
	}
	batch, length, words, width := 8, 64, 256, 128
	if strings.HasPrefix(job, "small") {
		batch, length, words, width = 2, 4, 8, 8
	}
	loss, err := ir.Build("transformer", func(b *ir.Builder) {
		shape := ir.Dims(batch, length)
		x := nn.Embedding(b, b.Input("ids", ir.I32, shape...), words, width)
		x = nn.TransformerBlock(b, x, 2, nn.TransformerOptions{Causal: true, Attention: nn.AttentionOptions{Separate: true}})
		logits := nn.Linear(b, nn.LayerNorm(b, x), words)
		b.Output("loss", ops.Mean(b, ops.CrossEntropy(b, logits, b.Input("next", ir.I32, shape...))))
	})
	if err != nil {
		return err
	}
	o := rlx.Training{Optimizer: optim.AdamW{}, Rate: 3e-3}
	if group.Size() > 1 {
		mesh, err := collective.NewMesh(ctx, group, collective.Axis{Name: "model", Size: group.Size()})
		if err != nil {
			return err
		}
		shardings := parallel.Megatron("model")
		if strings.HasSuffix(job, "sequence") {
			for _, name := range []string{"ids", "next"} {
				shardings = append(shardings, parallel.Sharding{Pattern: name, Axes: []string{"", "model"}})
			}
		}
		o.Partition = &rlx.Partition{Mesh: mesh, Shardings: shardings}
	}
	trainer, err := s.Train(ctx, loss, o)
	if err != nil {
		return err
	}
	for step := range 20 {
		random := rand.New(rand.NewPCG(uint64(step), 5))
		ids, next := make([]int32, batch*length), make([]int32, batch*length)
		for i := range ids {
			ids[i] = random.Int32N(int32(words))
			next[i] = (ids[i]*3 + 1) % int32(words)
		}
		in := rlx.Inputs{"ids": native.Int32s(ids, batch, length), "next": native.Int32s(next, batch, length)}
		for name, x := range in {
			if in[name], err = trainer.Part(name, x); err != nil {
				return err
			}
		}
		if err := trainer.Step(ctx, in); err != nil {
			return err
		}
	}
	losses, err := trainer.Losses(ctx)
	if err != nil {
		return err
	}
	for _, x := range losses {
		fmt.Printf("loss %.9g\n", x)
	}
	if err := trainer.Program().Close(ctx); err != nil {
		return err
	}
	return group.Close()
}
