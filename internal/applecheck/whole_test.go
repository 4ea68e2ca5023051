package applecheck_test

import (
	"crypto/sha256"
	"debug/macho"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/applecheck"
	coreml "github.com/rlx-go/rlx/internal/coreml/apple"
	metal "github.com/rlx-go/rlx/internal/metal/apple"
	"github.com/rlx-go/rlx/native/backendtest"
)

// zigVariable is the environment variable that names zig, whose C compiler has the headers
// and the linker for macOS.
const zigVariable = "RLX_ZIG"

// zigTargets are macOS 12, the oldest that Go 1.26 is for, by Go's name of the processor.
var zigTargets = map[string]string{"arm64": "aarch64-macos.12.0", "amd64": "x86_64-macos.12.0"}

// bindings are the packages whose C code the processor's headers and calling convention concern. The rest is
// Go, which other tests type-check for macOS and run on both processors.
var bindings = []string{"../metal/driver", "../coreml/driver", "github.com/cogentcore/webgpu/wgpu"}

// TestProgramOfAllBackendsBuildsForMacOS has the go command build and link, with cgo, one
// program that imports every backend, and compile the bindings for the other processor.
func TestProgramOfAllBackendsBuildsForMacOS(t *testing.T) {
	zig, err := findZig()
	backendtest.Require(t, "zig", err)
	if err != nil {
		return
	}
	sdk, err := writeSDK()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("arm64", func(t *testing.T) {
		file := buildWhole(t, zig, sdk)
		checkLibraries(t, file)
		checkSymbols(t, file)
	})
	t.Run("amd64", func(t *testing.T) { goBuild(t, zig, sdk, "amd64", bindings...) })
}

func findZig() (string, error) {
	zig := os.Getenv(zigVariable)
	if zig == "" {
		return "", errors.New(zigVariable + " does not name it: make test-darwin installs it")
	}
	_, err := os.Stat(zig)
	return zig, err
}

// writeSDK writes the headers and stubs where the linker looks for frameworks. The name of the
// folder identifies its contents, since the go command caches by name.
func writeSDK() (dir string, err error) {
	files, sum := map[string][]byte{}, sha256.New()
	for _, from := range []fs.FS{applecheck.System, metal.Headers, coreml.Headers} {
		err = errors.Join(err, fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if to := placeInSDK(name); to != "" {
				files[to], err = fs.ReadFile(from, name)
				fmt.Fprintf(sum, "%s %d ", to, len(files[to]))
				sum.Write(files[to])
			}
			return err
		}))
	}
	dir = filepath.Join(os.TempDir(), fmt.Sprintf("rlx-apple-sdk-%x", sum.Sum(nil)[:8]))
	for name, text := range files {
		to := filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755))
		err = errors.Join(err, os.WriteFile(to, text, 0o644))
	}
	return dir, err
}

// placeInSDK returns where a file of a binding's headers goes, "" for what zig has itself:
// the headers of C, and all of libSystem.
func placeInSDK(name string) string {
	folder, file := path.Split(name)
	switch stub, isStub := strings.CutSuffix(file, ".tbd"); {
	case folder == "sdk/" || stub == "libSystem":
		return ""
	case isStub && strings.HasPrefix(stub, "lib"):
		return path.Join("lib", file)
	case isStub:
		return path.Join("frameworks", stub+".framework", file)
	}
	return path.Join("include", path.Base(folder), file)
}

// buildWhole builds the program for arm64.
func buildWhole(t *testing.T, zig, sdk string) *macho.File {
	t.Helper()
	program := filepath.Join(t.TempDir(), "whole")
	goBuild(t, zig, sdk, "arm64", "-ldflags=-w", "-o", program, "./whole") // without DWARF, which Apple's tools strip
	file, err := macho.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// goBuild runs "go build" for macOS, of which the go command and the linker must have nothing to say. It does not
// optimise, as nothing runs, which takes two thirds of the time, and collects garbage less often, as the Makefile's
// builds do.
func goBuild(t *testing.T, zig, sdk, processor string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"build", "-gcflags=all=-N -l"}, args...)...)
	cmd.Env = append(os.Environ(), "GOGC=400", "GOOS=darwin", "GOARCH="+processor, "CGO_ENABLED=1",
		fmt.Sprintf("CC=%s cc -target %s -isystem %s/include -F%s/frameworks -L%s/lib", zig, zigTargets[processor], sdk, sdk, sdk))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

func checkLibraries(t *testing.T, file *macho.File) {
	t.Helper()
	if file.Cpu != macho.CpuArm64 || file.Type != macho.TypeExec {
		t.Errorf("a %v for %v", file.Type, file.Cpu)
	}
	libraries, err := file.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Metal.framework", "CoreML.framework", "Foundation.framework", "CoreGraphics.framework", "libobjc", "libSystem"} {
		if !slices.ContainsFunc(libraries, func(l string) bool { return strings.Contains(l, want) }) {
			t.Errorf("not linked with %s: %v", want, libraries)
		}
	}
}

// checkSymbols looks for the symbols of each backend: defined in the program, or imported from the
// system.
func checkSymbols(t *testing.T, file *macho.File) {
	t.Helper()
	defined := map[string]bool{}
	for _, s := range file.Symtab.Syms {
		defined[s.Name] = s.Sect > 0
	}
	asked, err := file.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, inside := range []string{"_rlx_metal_binding", "_rlx_coreml_binding", "_wgpuCreateInstance"} {
		if !defined[inside] {
			t.Errorf("%s is not in the program", inside)
		}
	}
	for _, outside := range []string{"_MTLCreateSystemDefaultDevice", "_OBJC_CLASS_$_MLModel", "_OBJC_CLASS_$_MTLHeapDescriptor", "_objc_msgSend"} {
		if !slices.Contains(asked, outside) {
			t.Errorf("%s is not asked of the system", outside)
		}
	}
	for _, backend := range []string{"native/cpu", "native/metal", "native/coreml", "native/cuda", "webgpu"} {
		if name := "github.com/rlx-go/rlx/" + backend; !slices.ContainsFunc(file.Symtab.Syms, func(s macho.Symbol) bool {
			return strings.HasPrefix(s.Name, "_"+name+".") || strings.HasPrefix(s.Name, name+".")
		}) {
			t.Errorf("%s is not in the program", name)
		}
	}
}
