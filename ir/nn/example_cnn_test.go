package nn_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// cnn returns the scores of the classes of images, f32[batch, height, width, channels].
func cnn(b *ir.Builder, h ir.Value, classes int) ir.Value {
	for _, channels := range []int{16, 32} {
		h = nn.Conv2d(b, h, channels, 3, nn.ConvOptions{Same: true})
		h = nn.MaxPool(b, ops.Relu(b, nn.BatchNorm(b, h)), 2)
	}
	return nn.Linear(b, nn.Dropout(b, ops.Flatten(b, h, 1), 0.1), classes)
}

// A convolutional network learns to distinguish vertical from horizontal bars.
func Example_cnn() {
	loss := must(ir.Build("cnn", func(b *ir.Builder) {
		nn.Train(b)
		logits := cnn(b, b.Input("images", ir.F32, ir.Dims(16, 8, 8, 1)...), 2)
		b.Output("loss", ops.CrossEntropyMean(b, logits, b.Input("labels", ir.I32, ir.N(16))))
	}))
	session := must(rlx.Open("cpu"))
	trainer := must(session.Train(context.Background(), loss, rlx.Training{Seed: 1}))
	check(trainer.Run(context.Background(), 60, func(int) error { return bars(trainer) }, nil))
	losses := must(trainer.Losses(context.Background()))
	fmt.Println(losses[0] > 0.5, losses[len(losses)-1] < 0.2)
	// Output: true true
}

var random = rand.New(rand.NewPCG(1, 2))

// bars writes a batch of images with a bar each, and whether it is level.
func bars(t *rlx.Trainer) error {
	images, err := t.Input("images").Float32s()
	if err != nil {
		return err
	}
	labels, err := t.Input("labels").Int32s()
	if err != nil {
		return err
	}
	clear(images)
	for i := range labels {
		labels[i] = int32(i % 2)
		first, step := random.IntN(8), 8
		if labels[i] == 1 {
			first, step = 8*first, 1
		}
		for k := range 8 {
			images[64*i+first+step*k] = 1
		}
	}
	return nil
}
