package apple_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/applecheck"
	"github.com/rlx-go/rlx/internal/metal/apple"
)

// TestTheBindingBuildsForMacs compiles and links the shipping Objective-C, and compares its uses of
// Metal with testdata/selectors.txt.
func TestTheBindingBuildsForMacs(t *testing.T) {
	applecheck.Run(t, applecheck.Binding{Sources: "../driver/*_darwin.m", Headers: apple.Headers, Framework: "Metal", Since: "11.0"})
}
