// Package apple holds stand-ins for Core ML's header and library, for machines without them:
// declarations of the part of Core ML that package driver uses, written from Apple's documentation,
// and a list of the symbols that it links. Package applecheck builds the binding with them as for a
// Mac.
package apple

import "embed"

// Headers has the folder include with CoreML/CoreML.h, which package software implements, and the folder lib with a text stub of the library.
//
//go:embed include lib
var Headers embed.FS
