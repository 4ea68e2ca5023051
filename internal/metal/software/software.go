//go:build cgo && linux

package software

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

static long count(const char *path, const char *what) {
	void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	long (*count)(void) = library ? (long (*)(void))dlsym(library, what) : 0;
	return count ? count() : -1;
}
*/
import "C"

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/internal/metal/driver"
)

// Device is an installed software device.
type Device struct {
	library string
	log     string
}

// settings are the names of the environment variables that steer the device, without
// RLX_SOFTWARE_; tests set them after [Install].
var settings = []string{"LOG", "CLANG", "FLAGS", "FOLDER", "FAIL", "DELAY", "MEMORY", "FAMILY", "REFUSE", "BFLOAT", "RESIDENCY"}

// Install makes the software device Metal's of this test. With kernels they are compiled
// and run; otherwise they are noted only. Without clang or GNUstep the test fails. At its
// end it fails for calls that Metal's documentation forbids.
//
// Environment variables steer it: RLX_SOFTWARE_MEMORY is how many bytes it has;
// RLX_SOFTWARE_FAMILY the newest family that it is of, 0 for no device at all; RLX_SOFTWARE_REFUSE a text that its
// compiler takes for an error; RLX_SOFTWARE_BFLOAT 0 for one that has no bfloat;
// RLX_SOFTWARE_RESIDENCY 0 for a system before macOS 15, without residency sets. RLX_SOFTWARE_FAIL, "commit 8 3", lets the third commit end
// with error 8, for good from an error that tells of a device that is removed; there are
// also newHeap, threads for a pipeline that is good for one thread, and width for one whose
// SIMD-groups have as many threads as the error's number. RLX_SOFTWARE_DELAY is how
// many microseconds a command buffer waits.
func Install(t testing.TB, kernels bool) *Device {
	t.Helper()
	b, err := build()
	if err != nil {
		t.Fatalf("the software device (make deps installs what it needs): %v", err)
	}
	for _, name := range settings {
		t.Setenv("RLX_SOFTWARE_"+name, "")
	}
	dir := t.TempDir()
	d := &Device{library: b.library, log: filepath.Join(dir, "log")}
	t.Setenv(driver.LibraryVariable, b.library)
	t.Setenv("RLX_SOFTWARE_LOG", d.log)
	if kernels {
		t.Setenv("RLX_SOFTWARE_CLANG", b.clang)
		t.Setenv("RLX_SOFTWARE_FLAGS", strings.Join(b.kernelFlags, " "))
		t.Setenv("RLX_SOFTWARE_FOLDER", dir)
	}
	t.Cleanup(func() {
		for _, call := range d.Calls(t) {
			if strings.HasPrefix(call, "violation: ") {
				t.Error(call)
			}
		}
	})
	return d
}

// Calls returns what the device was asked for so far, oldest first: "compile k_add",
// "pipeline k_add" or "found k_add", "newHeap 4096", "resident 2" for as many heaps, "commit
// step", and when they are done "run k_add 4 1 1" and "copy 16".
func (d *Device) Calls(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(d.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Forget empties the list of calls. Calls of which Metal's documentation forbids one are
// told before.
func (d *Device) Forget(t testing.TB) {
	t.Helper()
	for _, call := range d.Calls(t) {
		if strings.HasPrefix(call, "violation: ") {
			t.Error(call)
		}
	}
	if err := os.Truncate(d.log, 0); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// Living returns how many of Metal's objects there are in this process that were not given
// back, besides devices and their queues.
func (d *Device) Living() int { return d.count("sw_living") }

// Encoded returns how often encoders were told something in this process: a pipeline, a
// buffer, bytes, a dispatch, a copy.
func (d *Device) Encoded() int { return d.count("sw_encoded") }

// count calls a function of the device, -1 where it was not loaded yet.
func (d *Device) count(function string) int {
	path, name := C.CString(d.library), C.CString(function)
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(name))
	return int(C.count(path, name))
}
