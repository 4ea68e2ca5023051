// Package rlx runs and trains models that are written as graphs (package ir,
// package ir/ops) on the devices of this machine.
//
//	session, err := rlx.Open("") // the fastest device there is
//	trainer, err := session.Train(ctx, loss, rlx.Training{Optimizer: optim.Adam{}})
//	err = trainer.Run(ctx, 500, batch, nil)
//
// The CPU is always there. Other devices come with packages that a program
// imports for their effect:
//
//	import _ "github.com/rlx-go/rlx/webgpu" // needs cgo
package rlx
