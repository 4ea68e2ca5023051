package layers_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir/irtest/layers"
)

// TestLayersAreBuilt builds the step of each layer, whose name no other has.
func TestLayersAreBuilt(t *testing.T) {
	names := map[string]bool{}
	for _, l := range layers.All() {
		if _, err := l.Step(); err != nil {
			t.Errorf("%s: %v", l.Name, err)
		}
		if names[l.Name] {
			t.Errorf("two layers are %q", l.Name)
		}
		names[l.Name] = true
	}
}
