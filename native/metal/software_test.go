//go:build cgo && linux

package metal_test

import (
	"testing"

	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/metal"
	"github.com/rlx-go/rlx/native/metal/software"
)

// What programs do besides computing, with kernels that are really run: inputs, outputs
// and states are where kernels look for them, the status word is read.
func TestProgramsOnASoftwareDevice(t *testing.T) {
	software.Install(t, true)
	t.Setenv(metal.CacheVariable, t.TempDir())
	t.Setenv("RLX_SOFTWARE_DELAY", "200")
	b := metal.New()
	t.Run("programs", func(t *testing.T) { backendtest.Programs(t, b) })
	t.Run("wrong input", func(t *testing.T) { backendtest.WrongInput(t, b) })
	t.Run("training", func(t *testing.T) { backendtest.Graphs(t, b) })
}
