package driver

import (
	"errors"
	"fmt"

	"github.com/rlx-go/rlx/native"
)

// CacheVariable is the environment variable for the folder of compiled models.
const CacheVariable = "RLX_COREML_CACHE"

// Units are the processors that Core ML may use.
type Units int

// The units. DefaultUnits are all, except for a function with states of Core ML, which runs on the
// CPU and the GPU: the Neural Engine does not run functions with states whose axis is no multiple
// of 32 (apple/coremltools #2631), nor some others with states (#2553). AllUnits includes the
// Neural Engine for these, too. The others are those of MLComputeUnits.
const (
	DefaultUnits Units = iota
	AllUnits
	CPUOnly
	CPUAndGPU
	CPUAndNeuralEngine
)

// For returns the units of a function with or without states, resolving DefaultUnits.
func (u Units) For(states bool) Units {
	switch {
	case u != DefaultUnits:
		return u
	case states:
		return CPUAndGPU
	}
	return AllUnits
}

// Runtime loads model packages: Core ML, or a stand-in for tests.
type Runtime interface {
	// System describes the system, or names what is missing for models of CoreML8: an error
	// of kind [native.ErrUnavailable].
	System() (System, error)
	// Load makes a function of a package ready to run. Errors are those of the
	// system; the package was validated before. What the system compiles of it may be
	// kept for the next time, see [CacheVariable].
	Load(dir, function string, units Units) (Loaded, error)
}

// System describes a Core ML.
type System struct {
	// Description is the version of the system and its processors.
	Description string
	// Software is set for a stand-in.
	Software bool
}

// Loaded is a loaded function, not safe for concurrent use.
type Loaded interface {
	// Predict runs the function on the values of its inputs and puts its results into
	// the memory of out, by the names and with the types that the package has; all of
	// them must be there. What is in out after an error is undefined. States of Core
	// ML keep their values from run to run; they begin as zeros.
	Predict(in, out map[string]native.Tensor) error
	// SetState sets a state of Core ML to the values of t, and State copies its values to t; name
	// and type are those of the package. No run may be in progress.
	SetState(name string, t native.Tensor) error
	State(name string, t native.Tensor) error
	// Plan returns where each operation would run. The error is of kind
	// [native.ErrUnavailable] on systems without plans.
	Plan() ([]Placement, error)
	// Close releases the function.
	Close() error
}

// Processor is a kind of processor that Core ML places operations on.
type Processor int

// The processors; NoProcessor is for operations that are not run, such as constants.
const (
	NoProcessor Processor = iota
	CPU
	GPU
	NeuralEngine
)

// String returns "CPU", "GPU", "Neural Engine" or "none".
func (p Processor) String() string {
	if p < NoProcessor || p > NeuralEngine {
		return fmt.Sprintf("Processor(%d)", int(p))
	}
	return [...]string{"none", "CPU", "GPU", "Neural Engine"}[p]
}

// Placement is Core ML's plan for an operation.
type Placement struct {
	Kind string // of the operation, as in "matmul"
	Name string // of its result
	// Preferred is the processor chosen, and Supported lists the possible ones.
	Preferred Processor
	Supported []Processor
	// Cost is its share of the function's time, from 0 to 1, as estimated by Core ML;
	// negative if unknown.
	Cost float64
}

// Backend is the name of the backend, for errors.
const Backend = "coreml"

// unavailable returns an error that names what is missing.
func unavailable(why string) error {
	return &native.Error{Backend: Backend, Call: "open", Kind: native.ErrUnavailable, Err: errors.New(why)}
}
