package coreml

import (
	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/internal/coreml/mil"
)

// Package is a model package: an ML program, whose functions are the entries of a module, and
// its metadata. Its method Write(dir) writes it to a folder that does not exist yet.
type Package = mil.Package

// PackageError is an error of a package: the function and the operation at fault, and a reason
// of one of the kinds of package ir or of kind [ErrPackage].
type PackageError = mil.Error

// ErrPackage is the kind of errors of packages whose files are damaged or contradict each other.
var ErrPackage = mil.ErrPackage

// Read reads the package in a folder and validates it. Errors are [*PackageError]s, of kind
// [ErrPackage] if its files are damaged, or those of the file system.
func Read(dir string) (*Package, error) { return mil.Read(dir) }

// Opset is a set of operations of ML programs, named by the Core ML that introduced it.
type Opset = mil.Opset

// The sets of operations and the oldest systems that run them.
const (
	CoreML5 = mil.CoreML5 // iOS 15, macOS 12
	CoreML6 = mil.CoreML6 // iOS 16, macOS 13
	CoreML7 = mil.CoreML7 // iOS 17, macOS 14
	CoreML8 = mil.CoreML8 // iOS 18, macOS 15
	CoreML9 = mil.CoreML9 // iOS 26, macOS 26
)

// Runtime loads functions of packages: [Open] returns Core ML.
type Runtime = driver.Runtime

// Open opens Core ML. The error is of kind [native.ErrUnavailable] and names what is missing.
func Open() (Runtime, error) { return driver.Open() }

// System describes a Core ML: its version and processors.
type System = driver.System

// Units are the processors that Core ML may use.
type Units = driver.Units

// The units, as in MLComputeUnits. DefaultUnits are all, but CPUAndGPU for a function with states
// of Core ML, some of which the Neural Engine does not run.
const (
	DefaultUnits       = driver.DefaultUnits
	AllUnits           = driver.AllUnits
	CPUOnly            = driver.CPUOnly
	CPUAndGPU          = driver.CPUAndGPU
	CPUAndNeuralEngine = driver.CPUAndNeuralEngine
)

// Placement is Core ML's plan for an operation: the processor that runs it, those that could, and
// its share of the function's time.
type Placement = driver.Placement

// Processor is a kind of processor.
type Processor = driver.Processor

// The processors. NoProcessor is for operations that do not run, such as constants.
const (
	NoProcessor  = driver.NoProcessor
	CPU          = driver.CPU
	GPU          = driver.GPU
	NeuralEngine = driver.NeuralEngine
)
