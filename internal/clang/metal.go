package clang

import (
	_ "embed"
	"strings"
)

//go:embed metal.h
var metalHeader string

// metalArguments run the front end only, on Metal as C++ for OpenCL, which has the same address spaces.
// Uninitialised variables and missing returns are errors: Apple's compiler may be stricter than clang.
var metalArguments = []string{
	"-x", "clcpp", "-cl-std=CLC++2021", "-target", "spir64", "-fsyntax-only", "-Xclang", "-finclude-default-header",
	"-fno-caret-diagnostics", "-Wno-unknown-attributes", "-Werror=uninitialized", "-Werror=return-type", "-",
}

// CheckMetal checks MSL without Apple's compiler. The embedded metal.h declares Metal's library. The
// error is a [*CompileError] for a bad source and wraps [ErrNoCompiler] if there is no compiler.
func CheckMetal(source string) error {
	source = strings.ReplaceAll(source, "#include <metal_stdlib>", "")
	_, err := runOn(metalHeader, "kernel.metal", source, metalArguments)
	return err
}
