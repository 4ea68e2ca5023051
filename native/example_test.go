package native_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	_ "github.com/rlx-go/rlx/native/cpu"
)

// A bound entry is run many times without allocating.
func Example() {
	ctx := context.Background()
	g, err := ir.Build("square", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(3))
		b.Output("y", ops.Mul(b, x, x))
	})
	if err != nil {
		log.Fatal(err)
	}
	m, err := ir.NewModule("example", ir.Entry{Name: "square", Graph: g})
	if err != nil {
		log.Fatal(err)
	}
	backend, err := native.Lookup("cpu")
	if err != nil {
		log.Fatal(err)
	}
	p, err := backend.Compile(ctx, m, native.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close(ctx)
	x, y := []float32{1, 2, 3}, make([]float32, 3)
	bound, err := p.Bind(ctx, "square",
		map[string]native.Tensor{"x": native.Float32s(x)}, map[string]native.Tensor{"y": native.Float32s(y)})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		if err := bound.Start(ctx); err != nil {
			log.Fatal(err)
		}
		if err := bound.Wait(ctx); err != nil {
			log.Fatal(err)
		}
		fmt.Println(y)
		copy(x, y)
	}
	// Output:
	// [1 4 9]
	// [1 16 81]
}
