package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// writeFirst writes the graphs of the losses that first.mjs trains, as text: its measurement starts
// with compiling them.
func writeFirst(folder string) error {
	model, err := irtest.GPT{Vocab: 65, Context: 16, Width: 32, Heads: 4, Blocks: 1, Batch: 16}.Loss()
	if err != nil {
		return err
	}
	equation, err := equation(64, 24)
	if err != nil {
		return err
	}
	graphs := map[string]*ir.Graph{"lm": model, "equation": equation}
	for _, c := range models {
		if graphs[fmt.Sprintf("gpt-%d-%d", c.Blocks, c.Width)], err = c.Loss(); err != nil {
			return err
		}
	}
	for name, g := range graphs {
		if err := os.WriteFile(filepath.Join(folder, "first-"+name+".txt"), []byte(g.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// equation is the loss of a network u of two hidden layers trained to solve u‴ + u = cos x at some
// points x: the mean square of the residual.
func equation(points, width int) (*ir.Graph, error) {
	u, err := ir.Build("u", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(points, 1)...)
		layer := func(n string, x ir.Value, from, to int) ir.Value {
			return ops.Linear(b, x, b.Param("w"+n, ir.F32, ir.Dims(from, to)...), b.Param("b"+n, ir.F32, ir.N(to)))
		}
		h := ops.Tanh(b, layer("1", x, 1, width))
		h = ops.Tanh(b, layer("2", h, width, width))
		b.Output("u", layer("3", h, width, 1))
	})
	if err != nil {
		return nil, err
	}
	third, err := autodiff.Directional(u, "u", "x", 3)
	if err != nil {
		return nil, err
	}
	return ir.Build("equation", func(b *ir.Builder) {
		var in []ir.Value
		var x ir.Value
		for _, p := range third.Ports() {
			switch {
			case p.Name == "x":
				x = b.CopyPort(p)
				in = append(in, x)
			case p.Kind == ir.ParamPort:
				in = append(in, b.CopyPort(p))
			default: // the directions
				in = append(in, ops.OnesLike(b, x))
			}
		}
		out := b.Splice(third, in)
		left := ops.Sub(b, ops.Add(b, out[len(out)-1], out[0]), ops.Cos(b, x))
		b.Output("loss", ops.Mean(b, ops.Square(b, left)))
	})
}
