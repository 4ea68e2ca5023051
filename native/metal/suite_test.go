//go:build cgo && linux

package metal_test

import (
	"testing"

	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/metal"
	"github.com/rlx-go/rlx/native/metal/software"
)

func TestSuite(t *testing.T) {
	software.Install(t, true)
	t.Setenv(metal.CacheVariable, t.TempDir())
	b := metal.New()
	t.Run("ops", func(t *testing.T) { backendtest.Ops(t, b) })
	t.Run("gradients", func(t *testing.T) { backendtest.Gradients(t, b) })
	t.Run("random", func(t *testing.T) { backendtest.Random(t, b) })
}
