// Package apple holds what stands in for Apple's headers and libraries on machines that
// have none: declarations of the part of Metal and Foundation that package driver uses,
// written from Apple's documentation, and lists of the symbols that it links. With them
// the binding is built as for a Mac, but for the last step.
package apple

import "embed"

// Headers has the folder include with Metal/Metal.h, which is also what package software
// implements; the folder sdk with as much of Foundation and C; and the folder lib with
// text stubs of libraries.
//
//go:embed include sdk lib
var Headers embed.FS
