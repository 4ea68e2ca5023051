//go:build cgo

package driver

/*
#cgo LDFLAGS: -framework CoreML -framework Foundation
#include "binding.h"
*/
import "C"

// standIn reports whether this is not Core ML itself.
const standIn = false

// binding returns the functions that are part of the program.
func binding() (*C.rlx_coreml, error) { return C.rlx_coreml_binding(), nil }
