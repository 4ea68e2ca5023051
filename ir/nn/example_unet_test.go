package nn_test

import (
	"context"
	"fmt"
	"math"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// unet returns as many channels as x has, f32[batch, side, side, channels]: it halves the side at
// each depth, doubles it on the way up and concatenates features of the same size.
func unet(b *ir.Builder, x ir.Value, channels ...int) ir.Value {
	double := func(x ir.Value, channels int) ir.Value {
		for range 2 {
			x = nn.Conv2d(b, x, channels, 3, nn.ConvOptions{Same: true})
			x = ops.Silu(b, nn.GroupNorm(b, x, 4))
		}
		return x
	}
	in, _ := x.Dim(-1).Const()
	var skips []ir.Value
	for _, c := range channels {
		x = double(x, c)
		skips = append(skips, x)
		x = nn.MaxPool(b, x, 2)
	}
	x = double(x, 2*channels[len(channels)-1])
	for i := len(channels) - 1; i >= 0; i-- {
		x = nn.ConvTranspose2d(b, x, channels[i], 2, nn.ConvOptions{Stride: []int{2}})
		x = double(ops.Concatenate(b, -1, skips[i], x), channels[i])
	}
	return nn.Conv2d(b, x, in, 1)
}

// A U-Net learns to remove noise.
func Example_unet() {
	ctx := context.Background()
	loss := must(ir.Build("unet", func(b *ir.Builder) {
		clean := b.Input("clean", ir.F32, ir.Dims(4, 16, 16, 1)...)
		noise := ops.Normal(b, nn.Key(b, "noise"), ir.F32, clean.Shape()...)
		noisy := ops.Add(b, clean, ops.Mul(b, noise, ops.Const(b, ir.F32, 0.5)))
		b.Output("loss", ops.MSE(b, unet(b, noisy, 8, 16), clean, ops.LossMean))
	}))
	session := must(rlx.Open("cpu"))
	trainer := must(session.Train(ctx, loss, rlx.Training{Seed: 1, Rate: 0.003}))
	check(trainer.Run(ctx, 60, func(step int) error {
		clean, err := trainer.Input("clean").Float32s()
		for i := range clean {
			picture, row, col := float64(4*step+i/256), float64(i/16%16-8), float64(i%16-8)
			clean[i] = float32(math.Tanh(math.Hypot(row, col) - 3 - 3*math.Sin(picture)))
		}
		return err
	}, nil))
	losses := must(trainer.Losses(ctx))
	fmt.Println(losses[0] > 0.5, losses[len(losses)-1] < 0.1)
	// Output: true true
}
