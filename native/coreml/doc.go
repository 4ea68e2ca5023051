// Package coreml writes graphs as Core ML models, on any system, and runs them on macOS and
// iOS.
//
// As the backend "coreml" it runs modules with Core ML of macOS 15 or iOS 18; see
// [Backend]. Models for apps are made explicitly:
//
// [New] compiles a module to a model package, an .mlpackage: each entry is a function of an
// ML program, parameters are its weights or inputs, and states are states of Core ML if
// supported. Ops that MIL, the language of ML programs, lacks are typed errors before
// anything is written; [Support] returns how a node is computed, and [Lint] what keeps a
// model off the Neural Engine.
//
// [Load], [LoadSizes] and [LoadEntries] load functions of a package and report
// where Core ML would run it. Functions with states run on the CPU and the GPU by default,
// see [DefaultUnits]. Compiled packages are cached, in
// the folder that RLX_COREML_CACHE names in the environment.
//
// In internal/coreml, package mil has programs and their files, forms the lowering of each op
// to MIL, driver the binding of the framework. Start reading at new.go and function.go.
//
// `make test-coreml` checks the types and values of models against coremltools. Core ML
// itself has not yet compiled or run a model of this package, for lack of a Mac.
package coreml
