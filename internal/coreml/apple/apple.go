// Package apple holds stand-ins for Core ML's header and library, for machines without them:
// declarations of the part of Core ML that package driver uses, written from Apple's documentation,
// and a list of the symbols that the library exports.
package apple

import "embed"

// Headers has the folder include with CoreML/CoreML.h, which is also what package software
// implements, and the folder lib with a text stub of the library.
//
//go:embed include lib
var Headers embed.FS
