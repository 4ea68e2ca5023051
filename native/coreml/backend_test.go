//go:build cgo && (darwin || linux)

package coreml_test

import (
	"testing"

	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/coreml"
)

// TestBackend runs the suite that all backends pass: on Linux by the stand-in for Core
// ML, whose objects are counted, on a Mac by Core ML itself.
func TestBackend(t *testing.T) {
	before := alive()
	backendtest.Run(t, coreml.Backend())
	if now := alive(); now != before {
		t.Errorf("%d objects of Core ML are alive, %d were before", now, before)
	}
}
