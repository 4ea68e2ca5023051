// Package driver binds the part of Metal that the backend native/metal uses: a device with
// its queue, memory shared by host and GPU, kernels compiled from source, and command lists
// that each become one command buffer. Start reading at device.go and list.go.
//
// The binding is Objective-C with manual reference counting, called through a table of C
// functions (binding.h). On a Mac it is linked into the program. On Linux, for tests, the
// environment variable RLX_METAL_LIBRARY names a library built from the same files over a
// software device (package software), which is loaded instead. So tests cover the order of
// calls and the reference counts of the shipping files, but not Metal itself; the binding
// has never run on Apple hardware.
//
// Objects are not safe for concurrent use, except a [Device].
package driver
