//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/launch"
	"github.com/rlx-go/rlx/native/cuda"
)

// dividedModels are shapes of decoders that several GPUs hold, by job.
var dividedModels = map[string]lm.Config{
	"llama 70B": {
		Architecture: "llama", Width: 8192, Hidden: 28672, Layers: 80, Heads: 64, KVHeads: 8, HeadSize: 128, Vocabulary: 128256, Context: 8192,
		Epsilon: 1e-5, Rope: &lm.Rope{Base: 500000, Size: 128}, Activation: nn.Silu, Gated: true,
	},
	"llama 8B": languageModels["llama_8B"],
	"llama small": {
		Architecture: "llama", Width: 16, Hidden: 32, Layers: 1, Heads: 4, KVHeads: 2, HeadSize: 4, Vocabulary: 32, Context: 8192,
		Epsilon: 1e-5, Rope: &lm.Rope{Base: 500000, Size: 4}, Activation: nn.Silu, Gated: true,
	},
}

// decoderShardings divide the heads, the features of the MLP and the words of a decoder of Llama's family,
// whose weights are [out, in], and its caches.
func decoderShardings(axis string) (out []parallel.Sharding) {
	for axes, names := range map[[2]string][]string{
		{axis}:     {"q_proj/weight", "k_proj/weight", "v_proj/weight", "gate_proj/weight", "up_proj/weight", "lm_head/weight"},
		{"", axis}: {"o_proj/weight", "down_proj/weight", "k_cache", "v_cache"},
	} {
		for _, name := range names {
			out = append(out, parallel.Sharding{Pattern: "**/" + name, Axes: axes[:]})
		}
	}
	return out
}

// decodeOfARank prints the tokens that a decoder in bf16, divided among the ranks, makes in a second, and
// what the GPUs would make that read their weights alone at 4.8 TB/s, an H200's rate.
func decodeOfARank(ctx context.Context, r *rank) error {
	begun := time.Now()
	g, err := lmGraph(dividedModels[r.job], nn.Storage{OutIn: true, DType: ir.BF16}, 1)
	if err != nil {
		return err
	}
	p := parallel.Partition{Mesh: []parallel.Axis{{Name: "data", Size: r.Size}}, Shardings: decoderShardings("data")}
	places, err := p.Placements(g)
	if err != nil {
		return err
	}
	g, report, err := p.Apply(g, places)
	if err != nil {
		return err
	}
	c, err := r.filled(ctx, g)
	if err != nil {
		return err
	}
	in := map[string]native.Tensor{"tokens": native.Zeros(ir.I32, 1, 1), "past": native.Int32s([]int32{lmPast}, 1), "table": lmTable()}
	bound, err := c.Bind(ctx, "step", in, nil)
	if err != nil {
		return err
	}
	if err := bound.Start(ctx); err != nil {
		return err
	}
	if err := cuda.Replay(c, "step", 2); err != nil {
		return err
	}
	first := time.Since(begun).Seconds()
	seconds, err := timed(c, 20)
	if err != nil {
		return err
	}
	bytes := 0.0
	for _, port := range g.Ports() {
		if port.Kind == ir.ParamPort && !strings.Contains(port.Name, "embed_tokens") {
			size, _ := port.Value.Shape().Size().Const()
			bytes += float64(size * port.Value.DType().Size())
		}
	}
	fmt.Printf("Several: %s decode bf16, %d GPUs: %.1f tokens/s, %.3f ms; reading %.1f GB at 4.8 TB/s takes %.3f ms; %d collectives; ready after %.1f s\n",
		r.job, r.Size, 1/seconds, 1e3*seconds, bytes/1e9, bytes/4.8e9, report.Collectives, first)
	return c.Close(ctx)
}

// filled compiles a graph as entry "step" and sets its parameters to random numbers.
func (r *rank) filled(ctx context.Context, g *ir.Graph) (native.Program, error) {
	fill, err := lmFill(g)
	if err != nil {
		return nil, err
	}
	mesh, err := collective.NewMesh(ctx, r.group, collective.Axis{Name: "data", Size: r.Size})
	if err != nil {
		return nil, err
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: g}, ir.Entry{Name: "fill", Graph: fill})
	if err != nil {
		return nil, err
	}
	p, err := r.backend.Compile(ctx, m, native.Options{Mesh: mesh})
	if err != nil {
		return nil, err
	}
	return p, cuda.Replay(p, "fill", 1)
}

// TestADividedDecoderSumsTwiceALayer: a decoder's heads, caches and features are divided, and all kernels that
// one GPU has stay.
func TestADividedDecoderSumsTwiceALayer(t *testing.T) {
	c := dividedModels["llama small"]
	c.Layers = 3
	g, err := lmGraph(c, nn.Storage{OutIn: true, DType: ir.BF16}, 1)
	must(t, err)
	p := parallel.Partition{Mesh: []parallel.Axis{{Name: "data", Size: 2}}, Shardings: decoderShardings("data")}
	places, err := p.Placements(g)
	must(t, err)
	divided, report, err := p.Apply(g, places)
	must(t, err)
	const logits = 1 // gathered for the next token
	if want := 2*c.Layers + logits; report.Collectives != want {
		t.Errorf("%d collectives, not %d:\n%s", report.Collectives, want, &report)
	}
	if n := strings.Count(divided.String(), "cached_attention("); n != c.Layers {
		t.Errorf("%d cached attentions in %d layers", n, c.Layers)
	}
}

// TestBlocksOfParametersCompileForHopper: weights and biases of a layer are parts of one gathered array,
// which a product reads as both.
func TestBlocksOfParametersCompileForHopper(t *testing.T) {
	target := cuda.Target()
	target.Device = hardware.H200()
	target.Mma, target.TensorMaps, target.MmaBytes, target.Multiprocessors, target.Collectives = true, true, 227<<10, 132, true
	r := &rank{Run: launch.Run{Size: 2}, job: "curve params"}
	model := curveModel
	model.Batch /= r.Size
	g, err := r.dataParallel(model.Loss, 3e-3, 0)
	must(t, err)
	m, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: g})
	must(t, err)
	_, err = plan.Compile(m, target, cudacpp.Printer{})
	must(t, err)
}

// largeGPTs are models whose states no GPU holds alone, by job.
var largeGPTs = map[string]irtest.GPT{
	"7B params": {Vocab: 50304, Context: 1024, Width: 4096, Heads: 32, Blocks: 32, Batch: 4, Packed: true, Tanh: true, Tied: true},
}

// largeOfARank prints the tokens of all ranks in a second, and the memory of a GPU, where parameters,
// gradients and states of AdamW are divided (ZeRO 3), in bf16 with sums and states in f32.
func largeOfARank(ctx context.Context, r *rank) error {
	begun := time.Now()
	model := largeGPTs[r.job]
	g, err := r.dataParallel(model.Loss, 1e-5, ir.BF16)
	if err != nil {
		return err
	}
	p, err := r.filled(ctx, g)
	if err != nil {
		return err
	}
	in := map[string]native.Tensor{"ids": native.Zeros(ir.I32, model.Batch, model.Context), "next": native.Zeros(ir.I32, model.Batch, model.Context)}
	bound, err := p.Bind(ctx, "step", in, nil)
	if err != nil {
		return err
	}
	if err := bound.Start(ctx); err != nil {
		return err
	}
	if err := cuda.Replay(p, "step", 2); err != nil {
		return err
	}
	first := time.Since(begun).Seconds()
	seconds, err := timed(p, 2)
	if err != nil {
		return err
	}
	taken, err := cuda.TakenBytes(r.backend)
	if err != nil {
		return err
	}
	fmt.Printf("Several: %s, GPT of width %d and %d blocks, %d GPUs: %.0f tokens/s, step %.1f ms, %.1f GiB of each GPU's memory, planned %.1f GiB, ready after %.1f s\n",
		os.Getenv(rankVariable), model.Width, model.Blocks, r.Size, float64(r.Size*model.Batch*model.Context)/seconds, 1e3*seconds,
		float64(taken)/(1<<30), float64(cuda.PlannedBytes(p))/(1<<30), first)
	return p.Close(ctx)
}
