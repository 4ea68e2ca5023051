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

// settings lists the environment variables that control the device, without RLX_SOFTWARE_;
// tests set them after [Install].
var settings = []string{"LOG", "CLANG", "FLAGS", "FOLDER", "FAIL", "DELAY", "MEMORY", "FAMILY", "REFUSE", "BFLOAT", "RESIDENCY"}

// Install makes the software device the Metal device of the test. If kernels is set,
// kernels are compiled and run; otherwise they are only logged. Without clang or GNUstep
// the test fails. At its end it fails for calls that Metal's documentation forbids.
//
// Environment variables control it: RLX_SOFTWARE_MEMORY is its size in bytes;
// RLX_SOFTWARE_FAMILY its newest family, 0 for no device; RLX_SOFTWARE_REFUSE a text that
// its compiler rejects; RLX_SOFTWARE_BFLOAT 0 removes bfloat; RLX_SOFTWARE_RESIDENCY 0
// simulates a system before macOS 15, without residency sets. RLX_SOFTWARE_FAIL, "commit 8
// 3", makes the third commit end with error 8, and all later ones after an error for a
// removed device; it also accepts newHeap, threads for a pipeline that supports one thread,
// and width for one whose SIMD-groups have the error's number of threads.
// RLX_SOFTWARE_DELAY delays a command buffer by microseconds.
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

// Calls returns the logged calls, oldest first: "compile k_add", "pipeline k_add" or "found
// k_add", "newHeap 4096", "resident 2" with the number of heaps, "commit step", and on
// completion "run k_add 4 1 1" and "copy 16".
func (d *Device) Calls(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(d.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Forget clears the log, after reporting forbidden calls.
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

// Living returns the number of live Metal objects of this process, except devices and their
// queues.
func (d *Device) Living() int { return d.count("sw_living") }

// Encoded returns the number of encoder calls of this process: pipelines, buffers, bytes,
// dispatches, copies.
func (d *Device) Encoded() int { return d.count("sw_encoded") }

// count calls a function of the device, or returns -1 if it is not loaded.
func (d *Device) count(function string) int {
	path, name := C.CString(d.library), C.CString(function)
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(name))
	return int(C.count(path, name))
}
