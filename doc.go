// Package rlx runs and trains models that are written as graphs (package ir,
// package ir/ops) on the devices of this machine.
//
//	session, err := rlx.Open("") // the fastest device there is
//	trainer, err := session.Train(ctx, loss, rlx.Training{Optimizer: optim.Adam{}})
//	for range 500 {
//		err = trainer.Step(ctx, rlx.Inputs{"x": x, "labels": labels})
//	}
//	err = trainer.SaveFile(ctx, "model.safetensors")
//
// A trainer owns what it trains: parameters, the optimiser's states, the losses.
// Its program runs the other entries, as those that measure, on the same
// parameters.
//
// The CPU is always there. Other devices come with packages that a program
// imports for their effect; all need cgo, and none needs its device, a driver or a
// toolkit to build:
//
//	import (
//		_ "github.com/rlx-go/rlx/native/coreml" // "coreml": macOS
//		_ "github.com/rlx-go/rlx/native/cuda"   // "cuda", "cuda:1": NVIDIA GPUs on Linux
//		_ "github.com/rlx-go/rlx/native/metal"  // "metal": macOS
//		_ "github.com/rlx-go/rlx/webgpu"        // "webgpu": what Vulkan, Metal and Direct3D reach
//	)
//
// [Devices] lists them with the reason why one cannot be used.
package rlx
