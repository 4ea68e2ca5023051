// Package check compiles generated MSL on a machine without Apple's compiler: clang takes
// it as C++ for OpenCL, whose address spaces are Metal's, with what Metal's library has
// declared in an embedded header.
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

// arguments select a check of meaning alone. Shadowed names and values that are lost in a
// conversion are errors too: Apple's compiler may be stricter than clang.
var arguments = []string{
	"-x", "clcpp", "-cl-std=CLC++2021", "-target", "spir64", "-fsyntax-only", "-Xclang", "-finclude-default-header",
	"-fno-caret-diagnostics", "-Wno-unknown-attributes", "-Werror=uninitialized", "-Werror=return-type", "-",
}

// Compile checks a source. The error is a *clang.CompileError of package cuda/check for a
// bad source, and wraps its ErrNoCompiler where there is no clang.
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
		return fmt.Errorf("check: run %s: %w", path, err)
	}
	return nil
}
