package coreml_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

// A layer with its weights becomes an .mlpackage, on any system.
func Example() {
	g, err := ir.Build("layer", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(1, 3)...)
		y := ops.Linear(b, x, b.Param("w", ir.F32, ir.Dims(3, 2)...), b.Param("b", ir.F32, ir.N(2)))
		b.Output("y", ops.Relu(b, y))
	})
	if err != nil {
		log.Fatal(err)
	}
	m, err := ir.NewModule("layer", ir.Entry{Name: "eval", Graph: g})
	if err != nil {
		log.Fatal(err)
	}
	p, err := coreml.New(m, coreml.Options{
		Opset: coreml.CoreML6, Half: true, // for iOS 16 and macOS 13, and the Neural Engine
		Weights: map[string]native.Tensor{
			"w": native.Float32s([]float32{1, 2, 3, 4, 5, 6}, 3, 2), "b": native.Float32s([]float32{0, -1}),
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "layer.mlpackage")
	if err := p.Write(path); err != nil {
		log.Fatal(err)
	}
	if p, err = coreml.Read(path); err != nil {
		log.Fatal(err)
	}
	for _, op := range p.Program.Functions[0].Ops {
		if op.Kind != "const" {
			fmt.Println(op.Kind, op.Type)
		}
	}
	for _, f := range coreml.Lint(p) {
		fmt.Println(f.Rule+",", "slow there:", f.Slow)
	}
	// Output:
	// cast fp16[1,3]
	// matmul fp16[1,2]
	// add fp16[1,2]
	// relu fp16[1,2]
	// cast fp32[1,2]
	// identity fp32[1,2]
	// product, slow there: true
}
