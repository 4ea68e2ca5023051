package train

import (
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/native/coreml"
)

// Path is the way a step is computed.
type Path int

// The paths.
const (
	// Gradient: loss and gradients by Core ML, the update by the host.
	Gradient Path = iota
	// Fused: the update is part of the model.
	Fused
)

// String returns the path in lower case.
func (p Path) String() string {
	if p == Fused {
		return "fused"
	}
	return "gradient"
}

// Eligibility reports whether Core ML itself, by MLUpdateTask, can train a model.
type Eligibility struct {
	UpdateTask bool
	Reason     string // why not
}

// Eligible returns the eligibility of the models that this package writes.
func Eligible() Eligibility {
	return Eligibility{Reason: "MLUpdateTask updates neural networks that are marked updatable; this is an ML program, which has no such mark"}
}

// Options steer a trainer.
type Options struct {
	// Loss is the output to minimise, "loss" if empty.
	Loss string
	// Optimizer is the update rule, Adam if nil.
	Optimizer optim.Optimizer
	// Rate is the learning rate, 0.001 if 0.
	Rate float64
	// Fuse makes the update part of the model where that can be; see
	// [Trainer.FusedActive].
	Fuse bool
	// Half computes loss and gradients in fp16, with a loss scale. The update stays
	// on the host.
	Half bool
	// Opset is the set of operations of the model, which determines the oldest system that runs it;
	// 0 means CoreML8. See [Trainer.Resident] too.
	Opset coreml.Opset
	// Units are the processors that Core ML may use. By default they are all, but where the
	// parameters are states ([Trainer.Resident]) the CPU and the GPU: see
	// [coreml.DefaultUnits].
	Units coreml.Units
}

// Report describes a step.
type Report struct {
	Loss float64
	// Path is the way the step was computed, and Eligibility why not by MLUpdateTask.
	Path        Path
	Eligibility Eligibility
	// Skipped reports that gradients in f16 were not finite: the loss scale was halved and nothing
	// else changed.
	Skipped bool
}
