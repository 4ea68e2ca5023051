// Package software provides a Metal device for tests without a Mac: Metal's protocols in
// Objective-C over GNUstep, linked with the files of package driver for Macs. Device memory
// is host memory; kernels are compiled by clang as C++ with a replacement of Metal's
// standard library and run as fibers, with bounds checks on buffers and arrays; a thread
// executes the command buffers. It reports violations of Metal's documentation and leaked
// objects.
//
// Above it are package driver and the backend native/metal, which run as on a Mac; its input are their
// calls and the text of kernels, its output is what memory holds after them, and a log. Start reading at
// software.go, which installs the device for a test; build.go compiles it from the folder lib.
package software
