//go:build cgo

package driver

/*
#cgo LDFLAGS: -framework Metal -framework Foundation -framework CoreGraphics
#include "binding.h"
*/
import "C"

// Software reports whether the device is a stand-in for Metal.
const Software = false

// load returns the linked binding.
func load() (*C.rlx_metal, error) { return C.rlx_metal_binding(), nil }
