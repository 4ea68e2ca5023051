// Package software is a Metal device for tests on machines that are no Macs: Metal's
// protocols in Objective-C, over GNUstep, linked with the very files of package driver
// that are for Macs. Device memory is host memory; kernels are compiled by clang as C++
// with a header that stands in for Metal's library, and run as fibers, with their buffers
// and arrays watched; command buffers are executed by a thread of their own. What Metal's
// documentation forbids, and objects that are not given back, are told.
package software
