// Package train trains models on Core ML.
//
// Core ML's own way of training, MLUpdateTask, is for neural networks of the old
// format; an ML program cannot be updated by it, and [Eligible] says so. So the
// gradient is a model of its own, and what follows it is one of two ways, which
// every step reports ([Report.Path]):
//
//   - [Gradient]: Core ML computes loss and gradients, and the host updates the
//     parameters, by any optimiser of package optim, on the CPU of rlx.
//   - [Fused]: the update is part of the model, for SGD, Adam and AdamW. What the
//     optimiser keeps goes in and out with the parameters, in f32: states of Core ML
//     hold fp16, in which training does not converge.
//
// With Half the gradients are computed in f16, with an automatic loss scale, and parameters stay
// f32 on the host. Core ML then holds them as states, which are set again only after an update: see
// [Trainer.Resident].
//
// It is above package coreml, which writes and runs the models: a graph with a loss and initial values go
// in, the parameters after some steps come out. Start reading at trainer.go; gradient.go and update.go are
// the two ways.
package train
