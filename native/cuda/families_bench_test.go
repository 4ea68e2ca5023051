//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// families are models of other kinds than language models, whose training steps by SGD with
// momentum bench/peers.py has too.
var families = []struct {
	name    string
	images  int // of a batch
	classes int
	loss    func() (*ir.Graph, error)
}{
	{"resnet18", irtest.ResNet18.Batch, irtest.ResNet18.Classes, irtest.ResNet18.Loss},
	{"resnet50", irtest.ResNet50.Batch, irtest.ResNet50.Classes, irtest.ResNet50.Loss},
}

// familyStep is a training step whose products are of half, or of f32.
func familyStep(loss func() (*ir.Graph, error), half ir.DType) (*ir.Graph, error) {
	g, err := loss()
	if err != nil {
		return nil, err
	}
	g, err = optim.Step(g, "loss", optim.SGD{Momentum: 0.9}, optim.Options{Schedule: optim.Constant(1e-3)})
	if err != nil || half == 0 {
		return g, err
	}
	return passes.Mixed(g, half)
}

// BenchmarkFamilies times training steps with the batch that the device has. Verbose, it
// prints the time of each kernel.
func BenchmarkFamilies(b *testing.B) {
	d, ctx := gpu(b), context.Background()
	for _, f := range families {
		for _, c := range []struct {
			name string
			half ir.DType
			o    native.Options
		}{{"bf16", ir.BF16, native.Options{}}, {"tf32", 0, native.Options{TF32: true}}, {"f32", 0, native.Options{}}} {
			b.Run(f.name+"/"+c.name, func(b *testing.B) {
				g, err := familyStep(f.loss, c.half)
				must(b, err)
				p := compileWith(b, d, g, c.o)
				bound, err := p.Bind(ctx, "step", begin(b, p, g, f.classes), nil)
				must(b, err)
				for range 3 {
					must(b, bound.Start(ctx))
				}
				_, err = p.Get(ctx, p.Persistent()[0].Name)
				must(b, err)
				b.ResetTimer()
				must(b, cuda.Replay(p, "step", b.N))
				b.StopTimer()
				b.ReportMetric(float64(cuda.Launches(p)), "launches")
				b.ReportMetric(float64(f.images)*float64(b.N)/b.Elapsed().Seconds(), "images/s")
				if testing.Verbose() {
					writeProfile(b, p)
				}
			})
		}
	}
}
