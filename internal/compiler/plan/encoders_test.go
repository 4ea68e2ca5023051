package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/models"
	"github.com/rlx-go/rlx/ir/nn"
)

// TestEncodersReachTheMemoryFloor plans pretrained encoders at their sizes for an H200 in bf16: their launches, and
// how long memory traffic and latency take, are in testdata/encoders.txt.
func TestEncodersReachTheMemoryFloor(t *testing.T) {
	var table strings.Builder
	for _, e := range []struct {
		name, config string
		f            func(b *ir.Builder, c models.Config) ir.Value
	}{
		{"bert-base, 8 × 128", `{"model_type": "bert"}`, ofTokens(8, 128)},
		{"modernbert-base, 8 × 512", `{"model_type": "modernbert"}`, ofTokens(8, 512)},
		{"vit-base, 8 images", `{"model_type": "vit"}`, func(b *ir.Builder, c models.Config) ir.Value {
			return models.ImageEncoder(b, *c.Image, b.Input("pixels", ir.F32, ir.Dims(8, 3, 224, 224)...))
		}},
	} {
		c, err := models.ReadConfig(strings.NewReader(e.config))
		if err != nil {
			t.Fatal(err)
		}
		g, err := ir.Build("encode", func(b *ir.Builder) {
			nn.Infer(b)
			nn.Stored(b, func(string) nn.Storage { return nn.Storage{OutIn: true, DType: ir.BF16} }, func() { b.Output("hidden", e.f(b, c)) })
		})
		if err == nil {
			g, err = passes.Mixed(g, ir.BF16)
		}
		if err != nil {
			t.Fatal(err)
		}
		m, err := ir.NewModule("encoder", ir.Entry{Name: "encode", Graph: g})
		if err != nil {
			t.Fatal(err)
		}
		target := hopper()
		launches, _, err := plan.Launches(m, target, cudacpp.Printer{})
		if err != nil {
			t.Fatal(err)
		}
		time, floor := 0., 0.
		for _, l := range launches {
			time += l.Work.Time(target.Profile())
			floor += target.Profile().Launch + l.Work.Bytes/target.Profile().Bandwidth()
		}
		if time > 1.1*floor {
			t.Errorf("%s: %.0f µs, and %.0f at the least", e.name, time/1e3, floor/1e3)
		}
		fmt.Fprintf(&table, "%-28s %4d launches %8.0f µs, floor %8.0f\n", e.name, len(launches), time/1e3, floor/1e3)
	}
	kerneltest.Golden(t, "encoders.txt", table.String(), *update)
}

// ofTokens returns an encoder of texts with padding.
func ofTokens(batch, time int) func(b *ir.Builder, c models.Config) ir.Value {
	return func(b *ir.Builder, c models.Config) ir.Value {
		size := ir.Dims(batch, time)
		return models.TextEncoder(b, *c.Text, b.Input("tokens", ir.I32, size...), models.TextOptions{Mask: b.Input("mask", ir.I32, size...)})
	}
}
