//go:build cgo && (darwin || linux)

package coreml_test

import (
	"testing"

	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/coreml"
)

// TestBackend runs the suite that all backends pass: on Linux by the stand-in for Core
// ML, on a Mac by Core ML itself.
func TestBackend(t *testing.T) { backendtest.Run(t, coreml.Backend()) }
