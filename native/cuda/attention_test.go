//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cuda"
)

// attends are the shapes of attention on the device: [heads, queries, length] and
// [heads of keys, keys, length].
var attends = []struct {
	name string
	q, k []int
	mask []int
	ops.AttentionAttrs
}{
	{"whole blocks", []int{4, 512, 64}, []int{4, 512, 64}, nil, ops.AttentionAttrs{Scale: 0.125}},
	{"causal", []int{2, 2, 640, 64}, []int{2, 2, 640, 64}, nil, ops.AttentionAttrs{Scale: 0.1, Causal: true}},
	{"parts of blocks", []int{3, 331, 128}, []int{3, 517, 128}, nil, ops.AttentionAttrs{Scale: 0.1, Causal: true}},
	{"shared heads", []int{6, 300, 96}, []int{2, 200, 96}, nil, ops.AttentionAttrs{Scale: 0.1, Causal: true}},
	{"a mask, a cap", []int{4, 300, 32}, []int{4, 300, 32}, []int{300, 300}, ops.AttentionAttrs{Scale: 0.2, Softcap: 3}},
	{"length 40", []int{4, 300, 40}, []int{4, 333, 40}, nil, ops.AttentionAttrs{Scale: 0.15}},
	{"length 20, a mask that heads share", []int{8, 90, 20}, []int{8, 70, 20}, []int{90, 70}, ops.AttentionAttrs{Scale: 0.2, Causal: true}},
}

// Attention by warp-group multiply-adds, and its cotangents, equal the reference implementation in
// double precision on the same operands, up to the rounding of weights and results.
func TestGPUAttendsByWarpGroups(t *testing.T) {
	b := gpu(t)
	if !strings.Contains(b.Info().Description, "compute capability 9.0") {
		backendtest.Require(t, "wgmma", errors.New("multiply-adds of warp groups are of compute capability 9.0"))
	}
	attendOnGPU(t, b)
}

// The same by warps that multiply by themselves, as on devices without warp groups.
func TestGPUAttendsByWarps(t *testing.T) {
	gpu(t)
	attendOnGPU(t, cuda.ByWarps())
}

func attendOnGPU(t *testing.T, b native.Backend) {
	for _, c := range attends {
		types := []ir.DType{ir.BF16, ir.F16, ir.F32}
		if c.q[len(c.q)-1] > 64 {
			types = types[:2] // longer ones of f32 go by plain registers
		}
		for _, d := range types {
			t.Run(c.name+" "+d.String(), func(t *testing.T) {
				g, err := ir.Build("attention", func(b *ir.Builder) {
					q, k := b.Input("q", d, ir.Dims(c.q...)...), b.Input("k", d, ir.Dims(c.k...)...)
					v, dout := b.Input("v", d, ir.Dims(c.k...)...), b.Input("dout", d, ir.Dims(c.q...)...)
					var mask ir.Value
					if c.mask != nil {
						mask = b.Input("mask", d, ir.Dims(c.mask...)...)
					}
					out, lse := ops.AttentionForward(b, q, k, v, mask, c.AttentionAttrs)
					delta := ops.ReduceSum(b, ops.Convert(b, ops.Mul(b, out, dout), ir.F32), -1)
					b.Output("out", out)
					b.Output("lse", lse)
					for i, x := range ops.AttentionBackward(b, ops.AttentionOperands{Q: q, K: k, V: v, Mask: mask}, ops.AttentionResiduals{LSE: lse, Delta: delta, DOut: dout}, c.AttentionAttrs) {
						b.Output(fmt.Sprint("cotangent", i), x)
					}
				})
				must(t, err)
				checkOnGPU(t, b, g)
			})
		}
	}
}

// checkOnGPU compares the outputs of a graph for random inputs, with tensor cores.
func checkOnGPU(t *testing.T, b native.Backend, g *ir.Graph) {
	p := compileWith(t, b, g, native.Options{TF32: true})
	if !multiplies(p) {
		t.Fatal("no multiply-adds")
	}
	compareOutputs(t, p, g)
}

// compareOutputs compares the outputs of a graph's program for random inputs with the reference.
func compareOutputs(t *testing.T, p native.Program, g *ir.Graph) {
	rng := rand.New(rand.NewPCG(1, 2))
	in, arrays := map[string]native.Tensor{}, map[string]*ir.Array{}
	for _, port := range g.Ports() {
		dims, _ := port.Value.Shape().Ints()
		a := ir.NewArray(port.Value.DType(), dims...)
		for i := range a.F {
			a.F[i] = rng.NormFloat64()
		}
		a.Round()
		arrays[port.Name], in[port.Name] = a, native.Tensor{DType: a.DType, Dims: dims, Data: a.Bytes()}
	}
	want, err := ir.Eval(g, arrays, ir.EvalOptions{Reference: true})
	must(t, err)
	out := map[string]native.Tensor{}
	for i, o := range g.Outputs() {
		out[o.Name] = native.Zeros(want[i].DType, want[i].Dims...)
	}
	bound, err := p.Bind(context.Background(), "step", in, out)
	must(t, err)
	must(t, bound.Start(context.Background()))
	must(t, bound.Wait(context.Background()))
	for i, o := range g.Outputs() {
		got, err := out[o.Name].Array()
		must(t, err)
		greatest, worst := 0.0, 0.0
		for j := range want[i].Len() {
			greatest = max(greatest, math.Abs(want[i].Float(j)))
			if diff := math.Abs(got.Float(j) - want[i].Float(j)); !(diff <= worst) {
				worst = diff
			}
		}
		// Weights and results keep 8 bits in bf16: sums of many roundings stay below 4 times that.
		if bound := greatest / 64; !(worst <= bound) {
			t.Errorf("%s differs by %g, over %g", o.Name, worst, bound)
		}
	}
}

// BenchmarkAttention times attention of 16,384 tokens in 16 heads, forward and with its derivative.
// Rates count nominal operations: 2.5 times those of the forward pass for the derivative, even if
// some are recomputed, and half under a causal mask. f32 uses TF32 products.
func BenchmarkAttention(b *testing.B) { benchmarkAttention(b, gpu(b), timedAttention) }

// BenchmarkAttentionByWarps times some of it by warps that multiply by themselves.
func BenchmarkAttentionByWarps(b *testing.B) {
	gpu(b)
	benchmarkAttention(b, cuda.ByWarps(), []attentionSize{
		{2048, 64, true, ir.BF16},
		{2048, 128, true, ir.BF16},
		{2048, 64, true, ir.F32},
	})
}

// attentionSize is a size of attention that is timed.
type attentionSize struct {
	context, length int
	causal          bool
	dtype           ir.DType
}

var timedAttention = []attentionSize{
	{1024, 64, true, ir.BF16},
	{2048, 64, true, ir.BF16},
	{4096, 64, true, ir.BF16},
	{2048, 64, true, ir.F16},
	{2048, 64, false, ir.BF16},
	{1024, 128, true, ir.BF16},
	{2048, 128, true, ir.BF16},
	{4096, 128, true, ir.BF16},
	{2048, 128, false, ir.BF16},
	{1024, 64, true, ir.F32},
	{2048, 64, true, ir.F32},
	{2048, 64, false, ir.F32},
}

func benchmarkAttention(b *testing.B, d native.Backend, sizes []attentionSize) {
	const heads, tokens = 16, 16384
	for _, c := range sizes {
		for _, backward := range []bool{false, true} {
			name := fmt.Sprintf("%d/%d/causal=%t/%s/backward=%t", c.context, c.length, c.causal, c.dtype, backward)
			b.Run(name, func(b *testing.B) {
				dims := ir.Dims(tokens/c.context, heads, c.context, c.length)
				g, err := ir.Build("attention", func(b *ir.Builder) {
					param := func(name string) ir.Value { return b.Param(name, c.dtype, dims...) }
					q, k, v, a := param("q"), param("k"), param("v"), ops.AttentionAttrs{Scale: 0.125, Causal: c.causal}
					if !backward {
						out, lse := ops.AttentionForward(b, q, k, v, ir.Value{}, a)
						b.Output("out", out)
						b.Output("lse", lse)
						return
					}
					row := func(name string) ir.Value { return b.Param(name, ir.F32, dims[:3]...) }
					for i, x := range ops.AttentionBackward(b, ops.AttentionOperands{Q: q, K: k, V: v}, ops.AttentionResiduals{LSE: row("rows"), Delta: row("delta"), DOut: param("dout")}, a) {
						b.Output(fmt.Sprint("cotangent", i), x)
					}
				})
				must(b, err)
				p := compileWith(b, d, g, native.Options{TF32: true})
				begin(b, p, g, 1)
				must(b, cuda.Replay(p, "step", 3))
				b.ResetTimer()
				must(b, cuda.Replay(p, "step", b.N))
				operations := 4 * float64(tokens) * heads * float64(c.context) * float64(c.length)
				if c.causal {
					operations /= 2
				}
				if backward {
					operations *= 2.5
				}
				b.ReportMetric(float64(cuda.Launches(p)), "launches")
				b.ReportMetric(operations*float64(b.N)/b.Elapsed().Seconds()/1e12, "TFLOP/s")
			})
		}
	}
}
