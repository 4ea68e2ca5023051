//go:build cgo

package driver

/*
#cgo LDFLAGS: -framework Metal -framework Foundation -framework CoreGraphics
#include "binding.h"
*/
import "C"

// Software is whether this is not Metal itself.
const Software = false

// load returns the binding that is part of the program.
func load() (*C.rlx_metal, error) { return C.rlx_metal_binding(), nil }
