//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/irtest/families"
	"github.com/rlx-go/rlx/ir/irtest/layers"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// stepPrecisions are those of the products of training steps. What bf16 leaves in f32 is multiplied in TF32, as in
// PyTorch with autocast and allow_tf32, which bench/family_peers.py sets.
var stepPrecisions = []struct {
	name string
	half ir.DType // of products, where they are not of f32
	o    native.Options
}{{"bf16", ir.BF16, native.Options{TF32: true}}, {"tf32", 0, native.Options{TF32: true}}, {"f32", 0, native.Options{}}}

// familyPrecisions are the numbers of stepPrecisions that models of package families are timed in: the first two, or with
// RLX_BENCH_F32 the last, for comparison with WebGPU.
func familyPrecisions() (from, to int) {
	if os.Getenv("RLX_BENCH_F32") != "" {
		return 2, 3
	}
	return 0, 2
}

// BenchmarkResNets times training steps by SGD with momentum of ResNets at the size of ImageNet,
// which bench/peers.py has too, with the batch that the device has. Verbose, it prints the
// time of each kernel.
func BenchmarkResNets(b *testing.B) {
	d := gpu(b)
	for _, f := range []struct {
		name string
		net  irtest.ResNet
	}{{"resnet18", irtest.ResNet18}, {"resnet50", irtest.ResNet50}} {
		for _, c := range stepPrecisions {
			b.Run(f.name+"/"+c.name, func(b *testing.B) {
				g, err := f.net.Loss()
				must(b, err)
				g, err = optim.Step(g, "loss", optim.SGD{Momentum: 0.9}, optim.Options{Schedule: optim.Constant(1e-3)})
				must(b, err)
				took := timeStep(b, d, mixed(b, g, c.half), c.o, func(string) int { return f.net.Classes })
				b.ReportMetric(float64(f.net.Batch)/took.Seconds(), "images/s")
			})
		}
	}
}

// familyTimes is by how much the batches of package families are multiplied, in
// bench/family_peers.py, too.
func familyTimes(b *testing.B) int {
	value := os.Getenv("RLX_BENCH_TIMES")
	if value == "" {
		return 8
	}
	times, err := strconv.Atoi(value)
	must(b, err)
	return times
}

// BenchmarkFamilies times training steps by AdamW of the models of package families, and reports
// the memory of their plans. Verbose, it prints the time of each kernel.
func BenchmarkFamilies(b *testing.B) { timeFamilies(b, families.All, familyTimes(b)) }

// BenchmarkModels is BenchmarkFamilies of the models at the sizes of their papers.
func BenchmarkModels(b *testing.B) { timeFamilies(b, families.Models, 1) }

// BenchmarkFurther is BenchmarkFamilies of models of further kinds.
func BenchmarkFurther(b *testing.B) { timeFamilies(b, families.Further, familyTimes(b)) }

// BenchmarkUnusual is BenchmarkFamilies of models of unusual structure.
func BenchmarkUnusual(b *testing.B) { timeFamilies(b, families.Unusual, familyTimes(b)) }

// BenchmarkLayers times training steps of the layers of package layers in bf16 or, with RLX_BENCH_F32, in f32; with
// RLX_BENCH_FORWARD their losses alone. Verbose, it prints the time of each kernel, of which bench/lost.py lists the slow ones.
func BenchmarkLayers(b *testing.B) {
	d := gpu(b)
	from, _ := familyPrecisions()
	c, build := stepPrecisions[from], layers.Layer.Step
	if os.Getenv("RLX_BENCH_FORWARD") != "" {
		build = layers.Layer.Loss
	}
	for _, l := range layers.All() {
		b.Run(strings.ReplaceAll(l.Name, " ", "_"), func(b *testing.B) {
			g, err := build(l)
			must(b, err)
			timeStep(b, d, mixed(b, g, c.half), c.o, func(string) int { return l.Below })
		})
	}
}

// BenchmarkForward times the losses of the same models without their gradients, in the batches of a server, one or a
// few examples, unless RLX_BENCH_TIMES has another multiple of the batches of package families.
func BenchmarkForward(b *testing.B) {
	small := slices.Clone(families.ModelsOfCPU)
	for i := range small {
		small[i].Name = "small " + small[i].Name
	}
	times := 1
	if os.Getenv("RLX_BENCH_TIMES") != "" {
		times = familyTimes(b)
	}
	timeGraphs(b, slices.Concat(small, families.Every()), times, families.Family.Loss)
}

func timeFamilies(b *testing.B, list []families.Family, times int) {
	timeGraphs(b, list, times, families.Family.Step)
}

// timeGraphs times the graphs that f makes of models.
func timeGraphs(b *testing.B, list []families.Family, times int, f func(families.Family, int) (*ir.Graph, map[string]int, error)) {
	d := gpu(b)
	from, to := familyPrecisions()
	for _, model := range list {
		for _, c := range stepPrecisions[from:to] {
			b.Run(strings.ReplaceAll(model.Name, " ", "_")+"/"+c.name, func(b *testing.B) {
				g, below, err := f(model, times)
				must(b, err)
				timeStep(b, d, mixed(b, g, c.half), c.o, func(name string) int { return below[name] })
			})
		}
	}
}

// mixed is a training step with products in half precision, or unchanged.
func mixed(b *testing.B, g *ir.Graph, half ir.DType) *ir.Graph {
	if half != 0 {
		var err error
		g, err = passes.Mixed(g, half)
		must(b, err)
	}
	return g
}

// timeStep reports and returns the time of a step: the median of five groups of ten.
func timeStep(b *testing.B, d native.Backend, g *ir.Graph, o native.Options, below func(name string) int) time.Duration {
	const groups, each = 5, 10
	ctx := context.Background()
	p := compileWith(b, d, g, o)
	bound, err := p.Bind(ctx, "step", beginBelow(b, p, g, below), nil)
	must(b, err)
	for range 3 {
		must(b, bound.Start(ctx))
	}
	must(b, cuda.Replay(p, "step", each))
	var took []time.Duration
	for range groups {
		begun := time.Now()
		must(b, cuda.Replay(p, "step", each))
		took = append(took, time.Since(begun)/each)
	}
	slices.Sort(took)
	median := took[groups/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median.Seconds()*1e3, "ms")
	b.ReportMetric(float64(cuda.PlannedBytes(p))/(1<<20), "planned-MiB")
	b.ReportMetric(float64(cuda.Launches(p)), "launches")
	if testing.Verbose() {
		writeProfile(b, p)
	}
	return median
}
