//go:build cgo && linux && (amd64 || arm64)

package driver_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/native/cuda/driver"
	"github.com/rlx-go/rlx/native/cuda/fake"
)

func TestOneMajorVersionForAllLibraries(t *testing.T) {
	fake.Install(t, false)
	for _, c := range []struct {
		driver    string
		compilers []int
		want      string
	}{
		{"13000", []int{12, 13}, "libnvrtc.so.13"},
		{"13000", []int{12}, "libnvrtc.so.12"},
		{"12040", []int{12, 13}, "libnvrtc.so.12"},
		{"14010", []int{12, 13}, "libnvrtc.so.13"},
	} {
		dir := t.TempDir()
		fake.Libraries(t, dir, c.compilers...)
		t.Setenv(driver.PathVariable, dir)
		t.Setenv("RLX_FAKE_VERSION", c.driver)
		l, err := driver.Load()
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(l.CompilerPath) != c.want {
			t.Errorf("a driver of %s with NVRTC %v takes %s, not %s", c.driver, c.compilers, l.CompilerPath, c.want)
		}
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	fake.Install(t, false)
	alone, useless := t.TempDir(), t.TempDir()
	fake.Libraries(t, alone)
	must(t, os.WriteFile(filepath.Join(useless, "empty.c"), []byte("int nothing;"), 0o644))
	must(t, exec.Command("gcc", "-shared", "-o", filepath.Join(useless, "libcuda.so.1"), filepath.Join(useless, "empty.c")).Run())
	for name, c := range map[string]struct{ variable, value, want string }{
		"an old driver":            {"RLX_FAKE_VERSION", "11080", "supports CUDA 11.8, and this program needs 12.0 or later"},
		"no device":                {"RLX_FAKE_FAIL", "cuInit 100 1", "cuInit: CUDA_ERROR_NO_DEVICE (100)"},
		"no NVRTC":                 {driver.PathVariable, alone, "install a CUDA toolkit of version 12 to 13 or the Python package nvidia-cuda-nvrtc"},
		"an NVRTC that is too new": {"RLX_FAKE_VERSION", "12080", "no NVRTC for a driver of CUDA 12.8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			if _, err := driver.Load(); !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	t.Run("a driver without functions", func(t *testing.T) {
		t.Setenv(driver.PathVariable, useless)
		_, err := driver.Load()
		if err == nil {
			t.Skip("this machine has another driver")
		}
		if !strings.Contains(err.Error(), "lacks cuInit") {
			t.Errorf("error %v", err)
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
