package cpu_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

func ExampleBackend() {
	ctx := context.Background()
	g, err := ir.Build("mean", func(b *ir.Builder) {
		b.Output("mean", ops.Mean(b, b.Input("x", ir.F64, ir.Dims(2, 3)...), 1))
	})
	if err != nil {
		log.Fatal(err)
	}
	m, err := ir.NewModule("example", ir.Entry{Name: "mean", Graph: g})
	if err != nil {
		log.Fatal(err)
	}
	p, err := cpu.Backend().Compile(ctx, m, native.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close(ctx)
	run, err := p.Run(ctx, "mean", map[string]native.Tensor{"x": native.Float64s([]float64{1, 2, 3, 4, 5, 6}, 2, 3)})
	if err != nil {
		log.Fatal(err)
	}
	out, err := run.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out["mean"].Float64s())
	// Output: [2 5] <nil>
}
