// Package clang compiles generated CUDA C++ without a GPU or a CUDA toolkit, and checks generated MSL
// without Apple's compiler, so that tests know that a compiler accepts every kernel. The file to read
// first is check.go.
//
// Clang checks the source, or compiles it to PTX, for compute capability 9.0. The embedded device.h
// declares what NVRTC declares implicitly (built-in variables, barriers, shuffles, atomics,
// device math); an undeclared name is an error, as in NVRTC.
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

// SourceName is the name of the source in compiler messages.
const SourceName = "kernel.cu"

// ErrNoCompiler means that no clang with a CUDA front end and a PTX back end was found.
// Tests treat it as a failure.
var ErrNoCompiler = errors.New("no clang for CUDA: install clang-19 or set RLX_CLANG")

// CompileError reports a source that the compiler refuses.
type CompileError struct {
	// Output is the compiler's output, with line numbers of the source.
	Output string
}

func (e *CompileError) Error() string { return "check: " + strings.TrimSpace(e.Output) }

// arguments selects device code without a toolkit. Reads of unset variables and missing
// returns are errors, since NVRTC does not report them.
var arguments = []string{
	"-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_90", "-nocudainc", "-nocudalib",
	"--cuda-feature=+ptx80", "-std=c++17", "-fno-caret-diagnostics", "-Wno-unknown-cuda-version",
	"-Werror=uninitialized", "-Werror=return-type", "-",
}

// Compiler returns the path of the clang for [Compile]: $RLX_CLANG, or the oldest release
// from 19 on. The error wraps [ErrNoCompiler].
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

// Compile compiles CUDA C++ to PTX for sm_90. The error is a [*CompileError] for a bad
// source and wraps [ErrNoCompiler] if there is no compiler. It is safe for concurrent use.
func Compile(source string) (ptx string, err error) {
	return run(source, "-O2", "-S", "-o", "-")
}

// Check runs the front end only, which reports all errors of [Compile] in a third of its time.
func Check(source string) error {
	_, err := run(source, "-fsyntax-only")
	return err
}

// run runs clang on CUDA C++ and returns its output.
func run(source string, action ...string) (string, error) {
	return runOn(deviceHeader, SourceName, source, append(action, arguments...))
}

// runOn runs clang on a header and a source, called name in messages, and returns its output.
func runOn(header, name, source string, arguments []string) (string, error) {
	path, err := Compiler()
	if err != nil {
		return "", err
	}
	var out, messages bytes.Buffer
	cmd := exec.Command(path, arguments...)
	cmd.Stdin = strings.NewReader(header + "\n#line 1 \"" + name + "\"\n" + source)
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return "", &CompileError{Output: messages.String()}
		}
		return "", fmt.Errorf("run %s: %w", path, err)
	}
	return out.String(), nil
}
