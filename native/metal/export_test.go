//go:build cgo && (darwin || linux)

package metal

import "github.com/rlx-go/rlx/native"

// New returns a backend with a device of its own.
func New() native.Backend { return &backend{} }
