//go:build cgo && linux && (amd64 || arm64)

package driver_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/cuda/fake"
)

func TestLibrariesHaveOneMajorVersion(t *testing.T) {
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
		d, err := open()
		must(t, err)
		if filepath.Base(d.Compiler.Path) != c.want {
			t.Errorf("a driver of %s with NVRTC %v takes %s, not %s", c.driver, c.compilers, d.Compiler.Path, c.want)
		}
	}
}

// open opens the first device.
func open() (*driver.Device, error) {
	l, err := driver.Load()
	if err != nil {
		return nil, err
	}
	return l.Open(0)
}

// Kernels for a GPU are compiled by an NVRTC that supports it, anywhere in the search; else by
// the driver, from PTX of a compiler that is not newer; else it is refused with the reason.
func TestCompilerSupportsTheGPU(t *testing.T) {
	gpu := fake.Install(t, false)
	alone := t.TempDir()
	fake.Libraries(t, alone)
	folders := map[string]string{}
	for _, v := range [][2]int{{12, 0}, {12, 4}, {12, 8}, {12, 9}, {13, 0}} {
		dir := t.TempDir()
		fake.Compiler(t, dir, v[0], v[1])
		folders[fmt.Sprintf("%d.%d", v[0], v[1])] = dir
	}
	for _, c := range []struct {
		capability, driver, compilers string
		version, architecture, refuse string
	}{
		{"90", "13000", "12.0 13.0", "13.0", "sm_90", ""},
		{"90", "12080", "13.0 12.4 12.8", "12.4", "sm_90", ""}, // the first of its major version
		{"70", "13000", "13.0 12.4", "12.4", "sm_70", ""},
		{"100", "12080", "12.4 12.8", "12.8", "sm_100", ""},
		{"103", "13000", "12.0 12.9", "12.9", "sm_103", ""},
		{"89", "12000", "12.9", "12.9", "sm_89", ""}, // cubins of a later minor version are taken
		{"120", "12080", "12.4", "12.4", "compute_90", ""},
		{"121", "13000", "12.0 12.4 12.8", "12.8", "compute_120", ""},
		{"121", "12090", "12.4 12.0", "12.4", "compute_90", ""},
		{"130", "14000", "12.9 13.0", "13.0", "compute_121", ""},
		{"120", "12030", "12.4", "", "", "NVRTC 12.4 (DIR/libnvrtc.so.12) compiles for compute capability 5.0 to 9.0, and its PTX is too new for a driver of CUDA 12.3: install NVRTC 12.8 to 12.9, of a CUDA toolkit or by Python's package nvidia-cuda-nvrtc-cu12, or set RLX_CUDA_PATH"},
		{"70", "13000", "13.0", "", "", "Fake GPU 0 of compute capability 7.0 under a driver for CUDA 13.0: NVRTC 13.0 (DIR/libnvrtc.so.13) compiles for compute capability 7.5 to 12.1: install NVRTC 12.0 to 12.9, of a CUDA toolkit or by Python's package nvidia-cuda-nvrtc-cu12, or set"},
		{"75", "13000", "", "", "", "NVRTC is missing: install NVRTC 12.0 or later, of a CUDA toolkit or by Python's package nvidia-cuda-nvrtc, or set"},
		{"110", "12090", "", "", "", "install NVRTC 13.0 or later, and a driver for its version of CUDA"},
		{"130", "13000", "", "", "", "install the newest NVRTC, of a CUDA toolkit or by Python's package nvidia-cuda-nvrtc, and a driver"},
		{"61", "12090", "12.9", "", "", "Fake GPU 0 has compute capability 6.1; 7.0 or later is required"},
	} {
		t.Run(fmt.Sprintf("%s under %s with %s", c.capability, c.driver, c.compilers), func(t *testing.T) {
			path := alone
			last := ""
			for _, v := range strings.Fields(c.compilers) {
				last = folders[v]
				path += ":" + last
			}
			t.Setenv(driver.PathVariable, path)
			t.Setenv("RLX_FAKE_VERSION", c.driver)
			t.Setenv("RLX_FAKE_CAPABILITY", c.capability)
			gpu.Calls(t)
			d, err := open()
			if c.refuse != "" {
				if want := strings.ReplaceAll(c.refuse, "DIR", last); !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
				if slices.Contains(gpu.Calls(t), "cuDevicePrimaryCtxRetain") {
					t.Error("a GPU that is refused has a context")
				}
				return
			}
			must(t, err)
			if v, a := d.Compiler.Version, d.Compiler.Code.Architecture(false); v != c.version || a != c.architecture {
				t.Errorf("NVRTC %s compiles for %s, not %s for %s", v, a, c.version, c.architecture)
			}
			code, err := d.Compiler.Compile(driver.FillSource, d.Compiler.Code, "--gpu-architecture="+c.architecture)
			must(t, err)
			m, err := d.LoadModule(code)
			must(t, err)
			must(t, m.Unload())
		})
	}
}

func TestMissingDriverErrorNamesTheReason(t *testing.T) {
	fake.Install(t, false)
	alone, useless := t.TempDir(), t.TempDir()
	fake.Libraries(t, alone)
	must(t, os.WriteFile(filepath.Join(useless, "empty.c"), []byte("int nothing;"), 0o644))
	must(t, exec.Command("gcc", "-shared", "-o", filepath.Join(useless, "libcuda.so.1"), filepath.Join(useless, "empty.c")).Run())
	for name, c := range map[string]struct{ variable, value, want string }{
		"an old driver":            {"RLX_FAKE_VERSION", "11080", "supports CUDA 11.8; 12.0 or later is required"},
		"no device":                {"RLX_FAKE_FAIL", "cuInit 100 1", "cuInit: CUDA_ERROR_NO_DEVICE (100)"},
		"no NVRTC":                 {driver.PathVariable, alone, "install NVRTC 12.0 or later, of a CUDA toolkit or by Python's package nvidia-cuda-nvrtc"},
		"an NVRTC that is too new": {"RLX_FAKE_VERSION", "12080", "under a driver for CUDA 12.8: NVRTC is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			if _, err := open(); !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
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
