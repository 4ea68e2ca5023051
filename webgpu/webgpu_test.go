package webgpu_test

import (
	"os"
	"testing"

	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/webgpu"
)

// TestMain has Mesa's software GPU compile shaders quickly, unless the environment says otherwise: each
// kernel runs once or a few times, so that LLVM's optimisation and its code for wide vectors take longer
// than they save. The driver reads the variables when it is loaded.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"GALLIVM_PERF": "nopt", "LP_NATIVE_VECTOR_WIDTH": "128"} {
		if os.Getenv(name) == "" {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

func TestBackend(t *testing.T) { backendtest.Run(t, webgpu.Backend()) }
