// Package coreml writes graphs as Core ML models, on any system, and runs them on
// Apple's.
//
// As a backend, "coreml", it runs modules like any other device where Core ML is that of
// macOS 15 or iOS 18; see [Backend]. Models for apps are made by hand:
//
// [New] turns a module into a model package, an .mlpackage: every entry is a
// function of an ML program, parameters are its weights or its inputs, and states
// are states of Core ML where it has them. What MIL, the language of such
// programs, cannot say is a typed error before anything is written;
// [Support] tells how a node would be computed, and [Lint] what would keep a
// model off the Neural Engine.
//
// [Load], [LoadSizes] and [LoadEntries] make what a package holds ready to run, by package
// driver, and tell where Core ML would run it. Functions with states run on the CPU and the
// GPU unless others are asked for, see [driver.DefaultUnits]. What Core ML compiles of a package is kept in a cache,
// see [driver.CacheVariable].
//
// Below it, package mil has programs and their files, and package forms says what
// each op is in MIL.
//
// What is written is held to the types and the values of coremltools, Apple's
// own reader, by `make test-coreml`. No model written by this package has been
// compiled or run by Core ML itself yet: that takes a Mac.
package coreml
