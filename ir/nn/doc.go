// Package nn provides the layers of neural networks as functions over a builder. A layer adds ops
// and declares its parameters in its own scope; no object holds them:
//
//	loss, err := ir.Build("digits", func(b *ir.Builder) {
//		nn.Train(b)
//		h := b.Input("images", ir.F32, ir.Dims(64, 28, 28, 1)...)
//		for _, channels := range []int{32, 64} {
//			h = nn.MaxPool(b, ops.Relu(b, nn.Conv2d(b, h, channels, 3, nn.ConvOptions{Same: true})), 2)
//		}
//		h = nn.Dropout(b, ops.Relu(b, nn.Linear(b, ops.Flatten(b, h, 1), 128)), 0.5)
//		logits := nn.Linear(b, h, 10)
//		b.Output("loss", ops.CrossEntropyMean(b, logits, b.Input("labels", ir.I32, ir.N(64))))
//	})
//
// A model is a Go function of a builder and values; its parts are ordinary calls and loops.
//
// Sizes come from the input: [Linear] takes only the number of outputs. Axes that the shape of a
// parameter depends on must be constant; other axes may be symbolic.
//
// Parameters are named scope/weight, scope/bias and so on, as in PyTorch. The scope is the option
// Name, or the kind of layer and its count in the open scope: "conv0", "conv1", "linear0". [In]
// opens a scope, [Tie] returns a parameter by its name, [Shared] calls a function again with the
// same parameters.
//
// Each parameter declares its initialisation, by default PyTorch's ([ir.PortOptions], [Draw]).
// Training and rlx.InitGraph draw the values from the seed and the parameter's name.
//
// [Train] and [Infer] set the mode of [Dropout] and [BatchNorm]. Call a model function once for the
// training step, after Train, and once for each other entry, after Infer; entries of one module
// share parameters by name. There is no default mode: a layer that depends on it refuses to guess.
// [Key] is the random stream of a graph, [Cache] holds the past of sequences that are computed a
// few positions at a time, [Frozen] and [LoRA] are for fine-tuning.
//
// The last argument of a layer is an optional struct whose zero value has the documented defaults.
// Errors are recorded in the builder with the layer's scope and the caller's line; after an error
// layers return the zero Value. The file to read first is layer.go.
package nn
