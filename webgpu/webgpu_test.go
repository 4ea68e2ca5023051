package webgpu_test

import (
	"os"
	"testing"

	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/webgpu"
)

// swiftShader describes the software GPU of Debian's Chromium to a Vulkan loader.
const swiftShader = "/usr/lib/chromium/vk_swiftshader_icd.json"

// TestMain has the tests use the software GPU that compiles shaders fastest where there is no GPU, as each
// kernel runs once or a few times: SwiftShader takes a third of the time of Mesa's lavapipe, on which programs
// of other packages run. Where it is missing, lavapipe compiles without optimisation and for short vectors.
// Variables that are set already stay. The Vulkan loader and its drivers read them when they are loaded.
func TestMain(m *testing.M) {
	quick := map[string]string{"VK_ADD_DRIVER_FILES": swiftShader, "VK_LOADER_DRIVERS_DISABLE": "lvp*"}
	if _, err := os.Stat(swiftShader); err != nil {
		quick = map[string]string{"GALLIVM_PERF": "nopt", "LP_NATIVE_VECTOR_WIDTH": "128"}
	}
	backendtest.SetUnset(quick)
	os.Exit(m.Run())
}

func TestBackend(t *testing.T) { backendtest.Run(t, webgpu.Backend()) }
