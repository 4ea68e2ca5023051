// Package driver runs model packages by Core ML. Its binding is Objective-C with memory
// counted by hand: inputs are multi-arrays on memory of the caller, outputs come into
// memory of the caller too where Core ML takes it as a backing, and are copied from
// where Core ML has them, row by row as it pads them, where it does not.
//
// What Core ML compiles of a package is kept in a folder of the user's cache, or the one
// that the environment variable [CacheVariable] names, by what the package holds and the
// version of the system. Where that cannot be written to, or an entry cannot be loaded, the
// package is compiled again.
//
// On Linux the same files are built against headers of the project's own and a Core ML
// in software, package software, which the environment variable [LibraryVariable]
// names; that is how they are tested. We have not run them on a Mac.
package driver
