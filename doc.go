// Package rlx compiles, runs and trains models on the devices of this machine. A model is a graph
// built with packages ir and ir/ops.
//
//	session, err := rlx.Open("") // the fastest usable device
//	trainer, err := session.Train(ctx, loss, rlx.Training{Optimizer: optim.Adam{}})
//	for range 500 {
//		err = trainer.Step(ctx, rlx.Inputs{"x": x, "labels": labels})
//	}
//	err = trainer.SaveFile(ctx, "model.safetensors")
//
// [Fit] is a loop with data, evaluations, early stop and checkpoints; package ir/nn has layers.
// [Program.LoadWith] loads weights of other names, layouts and element types, as those of PyTorch.
//
// A [Session] is an open device. It compiles the entries of an [ir.Module] into a [Program], which
// owns the memory of parameters and states. A [Trainer] repeats the training step of a program; the
// other entries of the program, such as an evaluation, read the same parameters. The file to read
// first is session.go.
//
// Symbolic sizes ([ir.Sym]) stay open in a program: each call sets them by the shapes of its
// inputs, and results have the sizes that follow. See [CompileOptions.Sizes] and [Program.Prepare].
// [Program.Batcher] joins the calls of many goroutines into batches.
//
// The CPU is always available. To add other devices, a program imports their packages for the side
// effect. They need cgo, but no driver, toolkit or device at build time:
//
//	import (
//		_ "github.com/rlx-go/rlx/native/coreml" // "coreml": macOS
//		_ "github.com/rlx-go/rlx/native/cuda"   // "cuda", "cuda:1": NVIDIA GPUs on Linux
//		_ "github.com/rlx-go/rlx/native/metal"  // "metal": macOS
//		_ "github.com/rlx-go/rlx/webgpu"        // "webgpu": Vulkan, Metal or Direct3D
//	)
//
// [Devices] lists them, with the reason if one is not usable.
package rlx
