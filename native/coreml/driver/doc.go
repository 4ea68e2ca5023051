// Package driver runs model packages by Core ML. Its binding is Objective-C with memory
// counted by hand: inputs are multi-arrays on memory of the caller, outputs come into
// memory of the caller too where Core ML takes it as a backing, and are copied from
// where Core ML has them, row by row as it pads them, where it does not.
//
// On Linux the same files are built against headers of the project's own and a Core ML
// in software, package software, which the environment variable [LibraryVariable]
// names; that is how they are tested. We have not run them on a Mac.
package driver
