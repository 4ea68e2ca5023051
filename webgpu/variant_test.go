package webgpu_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/webgpu"
)

// TestVariants opens the device by each graphics API. Where there is a device on Linux, it is there
// by Vulkan; Metal and Direct3D 12 are not.
func TestVariants(t *testing.T) {
	backendtest.Require(t, webgpu.Name, webgpu.Backend().Probe())
	for _, api := range []string{"vulkan", "metal", "d3d12", "opengl"} {
		b, err := native.Lookup("webgpu:" + api)
		if err != nil || b.Name() != "webgpu:"+api {
			t.Fatalf("%s: %v, %v", api, b, err)
		}
		err = b.Probe()
		if err != nil && !errors.Is(err, native.ErrUnavailable) {
			t.Errorf("%s: %v", api, err)
		}
		if runtime.GOOS == "linux" && (err == nil) != (api == "vulkan") && api != "opengl" {
			t.Errorf("on Linux %s: %v", api, err)
		}
	}
	if _, err := native.Lookup("webgpu:glide"); !errors.Is(err, ir.ErrName) {
		t.Errorf("an unknown variant: %v", err)
	}
	if v := webgpu.Backend().(native.VariantDevice).Variants(); !slices.Contains(v, "vulkan") || !slices.IsSorted(v) {
		t.Errorf("variants %v", v)
	}
}
