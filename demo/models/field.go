package models

import (
	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

const (
	// FieldSide is the height and width of the picture that the field of the home page learns.
	FieldSide = 64
	// FieldBatch is the number of points in a step of it.
	FieldBatch = 1024
)

// Names of the field's inputs and outputs.
const (
	Points  = "points"  // f32[batch,2], positions from 0 to 1: x, y
	Colors  = "colors"  // f32[batch,3], red, green and blue from 0 to 1
	Picture = "picture" // f32[side·side,3], row by row
)

// FieldModule returns the module of the home page: a network from a position to its colour. Its
// entries share their state: init (seed), step (Points, Colors and lr), and whole, which returns
// the Picture of all positions.
func FieldModule() (*ir.Module, error) {
	loss, err := ir.Build("field", func(b *ir.Builder) {
		guess := field(b, b.Input(Points, ir.F32, ir.Dims(FieldBatch, 2)...))
		off := ops.Sub(b, guess, b.Input(Colors, ir.F32, ir.Dims(FieldBatch, 3)...))
		b.Output(Loss, ops.Mean(b, ops.Square(b, off)))
	})
	if err != nil {
		return nil, err
	}
	whole, err := ir.Build("field_whole", func(b *ir.Builder) {
		axis := func(i int) ir.Value {
			at := ops.Iota(b, ir.F32, i, ir.Dims(FieldSide, FieldSide)...)
			middle := ops.Div(b, ops.Add(b, at, ops.Const(b, ir.F32, 0.5)), ops.Const(b, ir.F32, FieldSide))
			return ops.Reshape(b, middle, ir.N(FieldSide*FieldSide), ir.N(1))
		}
		b.Output(Picture, field(b, ops.Concatenate(b, 1, axis(1), axis(0))))
	})
	if err != nil {
		return nil, err
	}
	entries, err := rlx.Training{Eval: []ir.Entry{{Name: "whole", Graph: whole}}}.Entries(loss)
	if err != nil {
		return nil, err
	}
	return ir.NewModule("field", entries...)
}

// field adds the network: random Fourier features of a position (Tancik et al., 2020), two layers
// of ReLUs, and a colour.
func field(b *ir.Builder, places ir.Value) ir.Value {
	const waves, width = 48, 64
	directions := b.ParamWith("directions", ir.PortOptions{Initial: nn.Normal(0, 16), Frozen: true}, ir.F32, ir.Dims(2, waves)...)
	angles := ops.MatMul(b, places, directions)
	h := ops.Concatenate(b, 1, ops.Sin(b, angles), ops.Cos(b, angles))
	for range 2 {
		h = ops.Relu(b, nn.Linear(b, h, width, nn.LinearOptions{Init: nn.HeNormal()}))
	}
	return ops.Sigmoid(b, nn.Linear(b, h, 3))
}
