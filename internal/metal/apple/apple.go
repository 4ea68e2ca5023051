// Package apple provides stand-ins for Metal's header and library: declarations of the part
// of Metal that package driver uses, written from Apple's documentation, and a list of the
// symbols that it links. Package applecheck builds the binding for macOS with them.
package apple

import "embed"

// Headers holds the folder include with Metal/Metal.h, which package software implements,
// and the folder lib with a text stub of the library.
//
//go:embed include lib
var Headers embed.FS
