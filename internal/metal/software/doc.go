// Package software provides a Metal device for tests without a Mac: Metal's protocols in
// Objective-C over GNUstep, linked with the files of package driver for Macs. Device memory
// is host memory; kernels are compiled by clang as C++ with a replacement of Metal's
// standard library and run as fibers, with bounds checks on buffers and arrays; a thread
// executes the command buffers. It reports violations of Metal's documentation and leaked
// objects.
package software
