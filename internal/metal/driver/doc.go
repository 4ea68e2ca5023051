// Package driver is Metal as package metal needs it: a device with its queue, memory
// that host and GPU share, kernels compiled from source, and lists of commands, each of
// which becomes one command buffer.
//
// The binding is Objective-C with references counted by hand, called through a table of C
// functions (binding.h). On a Mac it is part of the program. Elsewhere there is no Metal;
// on Linux, for tests, the environment variable RLX_METAL_LIBRARY names a library built
// of the very same files over a device in software (package software), which is then
// loaded in its place. What runs there are the shipping files, so the order of calls and
// the counting of references are tested; Metal itself is not, and the binding has never
// run on Apple hardware.
//
// Objects are not safe for use by several goroutines at once, but for a [Device].
package driver
