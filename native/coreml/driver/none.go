//go:build !cgo || !(darwin || linux)

package driver

import "github.com/rlx-go/rlx/native/coreml"

// Runtime returns Core ML, or an error of kind [native.ErrUnavailable] that says what
// is missing.
func Runtime() (coreml.Runtime, error) {
	return nil, unavailable("Core ML is there on Apple's systems, for programs that are built with cgo")
}
