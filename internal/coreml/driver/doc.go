// Package driver runs model packages with Core ML. The binding is Objective-C with manual reference
// counting. Inputs are multi-arrays on the caller's memory. Outputs are written to the caller's
// memory if Core ML accepts it as a backing, or copied row by row from padded memory of Core ML.
// Start reading at driver.go and load.go.
//
// Compiled packages are cached in the user's cache folder, or in the folder named by the
// environment variable [CacheVariable], keyed by content and system version. If the cache
// is not writable or an entry does not load, the package is compiled again.
//
// On Linux, for tests, the same files are built against the project's own headers and a
// software Core ML (package software), named by the environment variable [LibraryVariable].
// They have not run on a Mac.
package driver
