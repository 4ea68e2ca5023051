//go:build cgo

package driver

/*
#cgo CFLAGS: -fobjc-exceptions
#cgo LDFLAGS: -framework CoreML -framework Foundation
#include "binding.h"
*/
import "C"

// binding returns the functions that are part of the program.
func binding() (*C.rlx_coreml, error) { return C.rlx_coreml_binding(), nil }
