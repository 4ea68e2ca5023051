package rlx_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/safetensors"
)

// A network learns the exclusive or.
func Example() {
	ctx := context.Background()
	loss, err := ir.Build("xor", func(b *ir.Builder) {
		x, labels := b.Input("x", ir.F32, ir.Dims(4, 2)...), b.Input("labels", ir.I32, ir.N(4))
		h := ops.Tanh(b, ops.Linear(b, x, b.Param("w1", ir.F32, ir.Dims(2, 8)...), b.Param("b1", ir.F32, ir.N(8))))
		logits := ops.Linear(b, h, b.Param("w2", ir.F32, ir.Dims(8, 2)...), b.Param("b2", ir.F32, ir.N(2)))
		b.Output("loss", ops.CrossEntropyMean(b, logits, labels))
	})
	if err != nil {
		log.Fatal(err)
	}
	session, err := rlx.Open("cpu") // "" for the fastest device
	if err != nil {
		log.Fatal(err)
	}
	trainer, err := session.Train(ctx, loss, rlx.Training{Rate: 0.05, Seed: 1}) // Adam
	if err != nil {
		log.Fatal(err)
	}
	batch := rlx.Inputs{"x": rlx.Float32s([]float32{0, 0, 0, 1, 1, 0, 1, 1}, 4, 2), "labels": rlx.Int32s([]int32{0, 1, 1, 0})}
	for range 200 {
		if err := trainer.Step(ctx, batch); err != nil {
			log.Fatal(err)
		}
	}
	losses, err := trainer.Losses(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("loss below 0.01: %t\n", losses[199] < 0.01)
	// Output: loss below 0.01: true
}

// Entries of a module share their parameters by name.
func ExampleSession_Compile() {
	ctx := context.Background()
	double, err := ir.Build("double", func(b *ir.Builder) {
		b.Output("y", ops.Mul(b, b.Input("x", ir.F32, ir.N(3)), b.Param("factor", ir.F32)))
	})
	if err != nil {
		log.Fatal(err)
	}
	module, err := ir.NewModule("example", ir.Entry{Name: "double", Graph: double})
	if err != nil {
		log.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	program, err := session.Compile(ctx, module)
	if err != nil {
		log.Fatal(err)
	}
	defer program.Close(ctx)
	if err := program.Set(ctx, "factor", rlx.Float32(2)); err != nil {
		log.Fatal(err)
	}
	out, err := program.Call(ctx, "double", rlx.Inputs{"x": rlx.Float32s([]float32{1, 2, 3})})
	if err != nil {
		log.Fatal(err)
	}
	y, err := out["y"].Float32s()
	fmt.Println(y, err)
	// Output: [2 4 6] <nil>
}

// A size that is a symbol stays open: each call chooses it, and results have it. Calls of like sizes
// share a compiled program, which Prepare makes ahead.
func ExampleProgram_Prepare() {
	ctx := context.Background()
	model, err := ir.Build("scale", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("rows"), ir.N(2))
		y := ops.MatMul(b, x, b.Param("w", ir.F32, ir.Dims(2, 1)...))
		b.Output("y", y)
		b.Output("mean", ops.Mean(b, y))
	})
	if err != nil {
		log.Fatal(err)
	}
	module, err := ir.NewModule("scale", ir.Entry{Name: "infer", Graph: model})
	if err != nil {
		log.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	program, err := session.CompileWith(ctx, module, rlx.CompileOptions{Sizes: map[string]rlx.Size{"rows": {Max: 64}}})
	if err != nil {
		log.Fatal(err)
	}
	defer program.Close(ctx)
	if err := program.Set(ctx, "w", rlx.Float32s([]float32{10, 1}, 2, 1)); err != nil {
		log.Fatal(err)
	}
	if err := program.Prepare(ctx, "infer", map[string]int{"rows": 4}); err != nil {
		log.Fatal(err)
	}
	for _, rows := range []int{1, 3} {
		x := rlx.Float32s([]float32{1, 2, 3, 4, 5, 6}[:2*rows], rows, 2)
		out, err := program.Call(ctx, "infer", rlx.Inputs{"x": x})
		if err != nil {
			log.Fatal(err)
		}
		y, err := out["y"].Float32s()
		if err != nil {
			log.Fatal(err)
		}
		mean, err := out["mean"].Float32s()
		fmt.Println(y, mean, err)
	}
	// Output:
	// [12] [12] <nil>
	// [12 34 56] [34] <nil>
}

// A program for inference loads the trained parameters from a file.
func ExampleTrainer_Params() {
	ctx := context.Background()
	line := func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Add(b, ops.Mul(b, x, b.Param("slope", ir.F32)), b.Param("offset", ir.F32))
	}
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		y := line(b, b.Input("x", ir.F32, ir.N(4)))
		b.Output("loss", ops.MSE(b, y, b.Input("y", ir.F32, ir.N(4)), ops.LossMean))
	})
	if err != nil {
		log.Fatal(err)
	}
	infer, err := ir.Build("infer", func(b *ir.Builder) { b.Output("y", line(b, b.Input("x", ir.F32))) })
	if err != nil {
		log.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	trainer, err := session.Train(ctx, loss, rlx.Training{Rate: 0.1})
	if err != nil {
		log.Fatal(err)
	}
	points := rlx.Inputs{"x": rlx.Float32s([]float32{-1, 0, 1, 2}), "y": rlx.Float32s([]float32{-1, 1, 3, 5})}
	for range 500 {
		if err := trainer.Step(ctx, points); err != nil {
			log.Fatal(err)
		}
	}
	weights, err := trainer.Params(ctx)
	if err != nil {
		log.Fatal(err)
	}
	file := filepath.Join(os.TempDir(), "line.safetensors")
	defer os.Remove(file)
	if err := safetensors.WriteFile(file, weights, nil); err != nil {
		log.Fatal(err)
	}

	module, err := ir.NewModule("line", ir.Entry{Name: "infer", Graph: infer})
	if err != nil {
		log.Fatal(err)
	}
	program, err := session.Compile(ctx, module)
	if err != nil {
		log.Fatal(err)
	}
	defer program.Close(ctx)
	if weights, _, err = safetensors.ReadFile(file); err != nil {
		log.Fatal(err)
	}
	if err := program.Load(ctx, weights); err != nil {
		log.Fatal(err)
	}
	out, err := program.Call(ctx, "infer", rlx.Inputs{"x": rlx.Float32(10)})
	if err != nil {
		log.Fatal(err)
	}
	y, err := out["y"].Float32s()
	fmt.Printf("%.2f %v\n", y, err)
	// Output: [21.00] <nil>
}

func ExampleProgram_Batcher() {
	ctx := context.Background()
	double, err := ir.Build("double", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("batch"), ir.N(2))
		b.Output("y", ops.Add(b, x, x))
	})
	if err != nil {
		log.Fatal(err)
	}
	module, err := ir.NewModule("double", ir.Entry{Name: "infer", Graph: double})
	if err != nil {
		log.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close(ctx)
	program, err := session.Compile(ctx, module)
	if err != nil {
		log.Fatal(err)
	}
	batcher, err := program.Batcher("infer", rlx.BatcherOptions{Max: 64})
	if err != nil {
		log.Fatal(err)
	}
	var users sync.WaitGroup
	answers := make([][]float32, 3)
	for i := range answers {
		users.Go(func() { // such as the handler of a request
			x := rlx.Float32s([]float32{float32(i), 10}, 1, 2)
			if out, err := batcher.Call(ctx, rlx.Inputs{"x": x}); err == nil {
				answers[i], _ = out["y"].Float32s()
			}
		})
	}
	users.Wait()
	fmt.Println(answers)
	// Output:
	// [[0 20] [2 20] [4 20]]
}
