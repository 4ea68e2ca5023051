// Package check compiles generated MSL without Apple's compiler: clang compiles it as C++
// for OpenCL, which has the same address spaces, with an embedded header that declares
// Metal's library. Its input is a source, its output a compile error or nil; read
// [Compile] first.
package check

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	cuda "github.com/rlx-go/rlx/internal/clang"
)

//go:embed metal.h
var header string

// SourceName is the file name by which compiler messages call the source.
const SourceName = "kernel.metal"

// arguments run the front end only. Uninitialised variables and missing returns are
// errors: Apple's compiler may be stricter than clang.
var arguments = []string{
	"-x", "clcpp", "-cl-std=CLC++2021", "-target", "spir64", "-fsyntax-only", "-Xclang", "-finclude-default-header",
	"-fno-caret-diagnostics", "-Wno-unknown-attributes", "-Werror=uninitialized", "-Werror=return-type", "-",
}

// Compile checks a source. The error is a *clang.CompileError for a
// bad source, and wraps clang.ErrNoCompiler if there is no clang.
func Compile(source string) error {
	path, err := cuda.Compiler()
	if err != nil {
		return err
	}
	var messages bytes.Buffer
	cmd := exec.Command(path, arguments...)
	source = strings.ReplaceAll(source, "#include <metal_stdlib>", "")
	cmd.Stdin = strings.NewReader(header + "\n#line 1 \"" + SourceName + "\"\n" + source)
	cmd.Stderr = &messages
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return &cuda.CompileError{Output: messages.String()}
		}
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}
