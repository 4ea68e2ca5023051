package nn_test

import (
	"fmt"
	"log"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// A network for images of digits, with the parameters that its layers declare.
func Example() {
	loss, err := ir.Build("digits", func(b *ir.Builder) {
		nn.Train(b)
		h := b.Input("images", ir.F32, ir.Dims(64, 28, 28, 1)...)
		for _, channels := range []int{32, 64} {
			h = nn.MaxPool(b, ops.Relu(b, nn.Conv2d(b, h, channels, 3, nn.ConvOptions{Same: true})), 2)
		}
		h = nn.Dropout(b, ops.Relu(b, nn.Linear(b, ops.Flatten(b, h, 1), 128)), 0.5)
		logits := nn.Linear(b, h, 10)
		b.Output("loss", ops.CrossEntropyMean(b, logits, b.Input("labels", ir.I32, ir.N(64))))
	})
	check(err)
	for _, p := range loss.Ports() {
		if p.Kind == ir.ParamPort {
			fmt.Println(p.Name, p.Value.Type())
		}
	}
	// Output:
	// conv0/weight f32[3,3,1,32]
	// conv0/bias f32[32]
	// conv1/weight f32[3,3,32,64]
	// conv1/bias f32[64]
	// linear0/weight f32[3136,128]
	// linear0/bias f32[128]
	// linear1/weight f32[128,10]
	// linear1/bias f32[10]
}

// check ends an example at an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// must returns x unless there is an error.
func must[T any](x T, err error) T {
	check(err)
	return x
}
