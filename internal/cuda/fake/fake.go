// Package fake provides a fake CUDA driver, NVRTC, cuBLASLt, cuSOLVER and NCCL for tests without a GPU: C
// libraries, built with gcc, which package driver finds through its search. Device
// memory is host memory, streams run synchronously, graphs are lists of calls; kernels are
// compiled by clang and run as fibers. All calls are logged.
package fake

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/internal/cuda/driver"
)

//go:embed lib
var sources embed.FS

// GPU is an installed fake.
type GPU struct {
	// Dir holds the libraries, for [driver.PathVariable].
	Dir string
	log string
}

// Libraries builds the driver and an NVRTC of each given major version into a folder.
func Libraries(t testing.TB, dir string, compilers ...int) {
	t.Helper()
	compile(t, t.TempDir(), "driver.c", filepath.Join(dir, "libcuda.so.1"))
	for _, major := range compilers {
		Compiler(t, dir, major, 0)
	}
}

// Compiler builds an NVRTC of a version into a folder.
func Compiler(t testing.TB, dir string, major, minor int) {
	t.Helper()
	compile(t, t.TempDir(), "nvrtc.c", filepath.Join(dir, fmt.Sprintf("libnvrtc.so.%d", major)), fmt.Sprintf("-DVERSION=%q", fmt.Sprintf("%d.%d", major, minor)))
}

// Products adds a cuBLASLt of a major version to a folder with a driver.
// RLX_FAKE_PRODUCTS controls it: "none" removes all algorithms, "none 6 5 7" those of products
// of 6×7 and 7×5, "later 6 5 7" makes these fail when computed, "bias" removes those with a
// bias; a number is the status of all products.
func Products(t testing.TB, dir string, major int) {
	t.Helper()
	t.Setenv("RLX_FAKE_PRODUCTS", "")
	compile(t, t.TempDir(), "blas.c", filepath.Join(dir, fmt.Sprintf("libcublasLt.so.%d", major)), filepath.Join(dir, "libcuda.so.1"))
}

// Solver adds a cuSOLVER for a major version of CUDA to a folder with a driver. RLX_FAKE_SOLVER controls it: a
// number is the status of all factorisations, "large" makes them ask for a workspace of 1 TiB.
func Solver(t testing.TB, dir string, major int) {
	t.Helper()
	t.Setenv("RLX_FAKE_SOLVER", "")
	compile(t, t.TempDir(), "solver.c", filepath.Join(dir, fmt.Sprintf("libcusolver.so.%d", major-1)), filepath.Join(dir, "libcuda.so.1"), "-lm")
}

// Collectives adds an NCCL to a folder with a driver, for processes that share it; each has a device
// of its own, and arrays have up to 1 MiB. RLX_FAKE_NCCL is the code of an asynchronous error after
// the first call.
func Collectives(t testing.TB, dir string) {
	t.Helper()
	t.Setenv("RLX_FAKE_NCCL", "")
	compile(t, t.TempDir(), "nccl.c", filepath.Join(dir, "libnccl.so.2"), filepath.Join(dir, "libcuda.so.1"))
}

// built holds the bytes of the libraries that this process has built, by source and arguments.
var built sync.Map

// compile builds a library from a source, with additional compiler arguments. What it has built
// before it writes again, since each test that installs a GPU has files of its own.
func compile(t testing.TB, src, from, to string, more ...string) {
	t.Helper()
	key := strings.Join(append([]string{from}, more...), " ")
	if library, ok := built.Load(key); ok {
		if err := os.WriteFile(to, library.([]byte), 0o755); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range []string{"fake.h", from} {
		text, err := sources.ReadFile("lib/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(src, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"-O1", "-w", "-shared", "-fPIC", "-o", to, filepath.Join(src, from), "-ldl"}, more...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", to, err, out)
	}
	library, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	built.Store(key, library)
}

// Install builds the fake libraries and makes them the GPU of the test. If kernels is set,
// kernels are compiled and run, which needs clang; otherwise launches are only logged.
//
// Environment variables control it: RLX_FAKE_VERSION is the driver's version, 13000 by
// default; RLX_FAKE_NVRTC NVRTC's, "12.4"; RLX_FAKE_DEVICES the number of devices;
// RLX_FAKE_MEMORY the bytes of each; RLX_FAKE_CAPABILITY the compute capability, 90 by
// default. RLX_FAKE_FAIL, "cuMemAlloc 2 3", makes the third call of a name fail with code 2,
// and all further calls from code 700 on. RLX_FAKE_DELAY is the number of queries before an
// event is done, RLX_FAKE_REFUSE a text that NVRTC rejects. If RLX_FAKE_NO_PTX is not empty,
// the driver rejects PTX.
func Install(t testing.TB, kernels bool) *GPU {
	t.Helper()
	dir := t.TempDir()
	Libraries(t, dir, 13)
	t.Setenv(driver.PathVariable, dir)
	t.Setenv(cubin.Variable, filepath.Join(dir, "cache"))
	g := &GPU{Dir: dir, log: filepath.Join(dir, "log")}
	t.Setenv("RLX_FAKE_LOG", g.log)
	for _, name := range []string{"VERSION", "DEVICES", "MEMORY", "FAIL", "DELAY", "NVRTC", "CLANG", "REFUSE", "CAPABILITY", "NO_PTX"} {
		t.Setenv("RLX_FAKE_"+name, "")
	}
	if !kernels {
		return g
	}
	clang, err := clang.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	prelude, err := sources.ReadFile("lib/prelude.h")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "prelude.h")
	if err := os.WriteFile(path, prelude, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RLX_FAKE_CLANG", clang)
	t.Setenv("RLX_FAKE_PRELUDE", path)
	t.Setenv("RLX_FAKE_OBJECTS", objects(t, clang, prelude))
	return g
}

// objects returns the temporary folder of kernels compiled from one prelude, which all tests share:
// most compile kernels that others have compiled.
func objects(t testing.TB, clang string, prelude []byte) string {
	t.Helper()
	nvrtc, err := sources.ReadFile("lib/nvrtc.c") // which writes the kernels' sources
	if err != nil {
		t.Fatal(err)
	}
	driver, err := sources.ReadFile("lib/driver.c") // which has the compiler's flags
	if err != nil {
		t.Fatal(err)
	}
	key := sha256.Sum256(slices.Concat([]byte(clang), prelude, nvrtc, driver))
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("rlx-fake-cuda-%x", key[:8]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Calls returns the calls logged since the last time, oldest first.
func (g *GPU) Calls(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(g.log)
	if err == nil {
		err = os.Truncate(g.log, 0)
	}
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
