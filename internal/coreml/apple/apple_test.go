package apple_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/applecheck"
	"github.com/rlx-go/rlx/internal/coreml/apple"
)

// TestTheBindingBuildsForMacs compiles and links the shipping Objective-C, and compares its uses of
// Core ML with testdata/selectors.txt.
func TestTheBindingBuildsForMacs(t *testing.T) {
	applecheck.Run(t, applecheck.Binding{Sources: "../driver/*_darwin.m", Headers: apple.Headers, Framework: "CoreML", Since: "12.0"})
}
