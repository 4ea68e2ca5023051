// Package nn has the layers of neural networks as functions over a builder. A layer adds ops and
// declares its parameters in a scope of its own; there is no object that holds them:
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
// Sizes come from the input: [Linear] is given the number of outputs alone. They are numbers where
// the shape of a parameter needs one; other axes may be symbolic.
//
// Parameters are named scope/weight, scope/bias and so on, in PyTorch's words. The scope is the
// option Name or else the kind of layer and the number of those before it in the open scope:
// "conv0", "conv1", "linear0". [In] opens a scope, [Tie] returns a parameter by its name, [Shared]
// calls a function again with the same parameters.
//
// Each parameter declares how it starts, by default as in PyTorch ([ir.PortOptions], [Draw]);
// training and rlx.InitGraph draw the values from the seed and the parameter's name.
//
// [Train] and [Infer] say what [Dropout] and [BatchNorm] compute. A model function is called once
// for the training step, after Train, and once for each other entry, after Infer; entries of one
// module share parameters by name. There is no default: a layer that differs between the two
// refuses to guess. [Key] is the random stream of a graph, [Cache] the memory of sequences that are
// computed a few positions at a time, [Frozen] and [LoRA] are for fine-tuning.
//
// The last argument of a layer is an optional struct whose zero value has the documented defaults.
// Errors are recorded in the builder with the layer's scope and the caller's line; after an error
// layers return the zero Value. The file to read first is layer.go.
package nn
