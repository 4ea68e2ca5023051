// Package apple holds what stands in for Core ML's header and library on machines that
// have none: declarations of the part of Core ML that package driver uses, written from
// Apple's documentation, and a list of the symbols that it links. With them the binding
// is built as for a Mac, by package applecheck.
package apple

import "embed"

// Headers has the folder include with CoreML/CoreML.h, which is also what package software
// implements, and the folder lib with a text stub of the library.
//
//go:embed include lib
var Headers embed.FS
