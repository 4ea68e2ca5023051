// Package check compiles generated CUDA C++ on a machine with neither a GPU nor the
// CUDA toolkit, so that every kernel a test prints is known to be one a compiler takes.
//
// Clang turns the source into PTX for compute capability 9.0. What NVRTC would declare
// on its own (built-in variables, barriers, shuffles, atomics, device math) comes from
// the embedded device.h; a name that is not there is an error, as it is for NVRTC.
package clang

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

//go:embed device.h
var deviceHeader string

// SourceName is the file name by which compiler messages call the source.
const SourceName = "kernel.cu"

// ErrNoCompiler says that no clang with a CUDA front end and a PTX back end was found.
// A test treats it as a failure: kernels nobody compiled are not tested.
var ErrNoCompiler = errors.New("check: no clang for CUDA here (install clang-19, or name one in $RLX_CLANG)")

// CompileError is a source that the compiler refuses.
type CompileError struct {
	// Output is what the compiler wrote, lines counted from the source's first.
	Output string
}

func (e *CompileError) Error() string { return "check: " + strings.TrimSpace(e.Output) }

// arguments selects device code only and no toolkit. Reading a variable that may be
// unset and leaving a function without its value are errors, since NVRTC is silent there.
var arguments = []string{
	"-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_90", "-nocudainc", "-nocudalib",
	"--cuda-feature=+ptx80", "-std=c++17", "-O2", "-S", "-o", "-", "-fno-caret-diagnostics", "-Wno-unknown-cuda-version",
	"-Werror=uninitialized", "-Werror=return-type", "-",
}

// Compiler gives the path of the clang that [Compile] runs: $RLX_CLANG if that is set,
// otherwise the oldest release from 19 on. The error wraps [ErrNoCompiler].
func Compiler() (string, error) { return findCompiler() }

var findCompiler = sync.OnceValues(func() (string, error) {
	names := []string{"clang-19", "clang-20", "clang-21", "clang-22", "clang"}
	if name := os.Getenv("RLX_CLANG"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoCompiler
})

// Compile compiles CUDA C++ source, as NVRTC is given it, to PTX text for sm_90. The
// error is a [*CompileError] for a bad source and wraps [ErrNoCompiler] where there is
// no compiler. Compile may be called from several goroutines.
func Compile(source string) (ptx string, err error) {
	path, err := Compiler()
	if err != nil {
		return "", err
	}
	var out, messages bytes.Buffer
	cmd := exec.Command(path, arguments...)
	cmd.Stdin = strings.NewReader(deviceHeader + "\n#line 1 \"" + SourceName + "\"\n" + source)
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return "", &CompileError{Output: messages.String()}
		}
		return "", fmt.Errorf("check: run %s: %w", path, err)
	}
	return out.String(), nil
}
