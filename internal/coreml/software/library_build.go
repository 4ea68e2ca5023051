//go:build cgo && linux

package software

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/coreml/apple"
	"github.com/rlx-go/rlx/internal/coreml/driver"
)

//go:embed lib
var sources embed.FS

// flags build for GCC's Objective-C runtime, the one of GNUstep on Debian, which has no automatic
// reference counting.
var flags = []string{
	"-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wno-unused-private-field", "-fobjc-runtime=gcc", "-fblocks", "-fobjc-exceptions",
	"-fconstant-string-class=NSConstantString", "-I/usr/include/GNUstep", "-Ilib", "-Iinclude", "-I.",
}

// libraries has the runtime of blocks before GNUstep, which has a function of the same
// name that does not copy blocks.
var libraries = []string{"-lBlocksRuntime", "-lgnustep-base", "-lobjc"}

// build writes the sources of the binding and of this package into a directory and
// makes a library of them.
func build(dir string) (string, error) {
	clang, err := clang.Compiler()
	if err != nil {
		return "", err
	}
	headers, err := filepath.Glob("/usr/lib/gcc/*/*/include/objc/objc.h")
	if err != nil || len(headers) == 0 {
		return "", errors.New("the headers of GCC's Objective-C runtime are missing: install gobjc")
	}
	for _, from := range []embed.FS{sources, apple.Headers, driver.Sources} {
		err := fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
			to := filepath.Join(dir, path)
			if err != nil || d.IsDir() {
				return errors.Join(err, os.MkdirAll(to, 0o755))
			}
			text, err := from.ReadFile(path)
			return errors.Join(err, os.WriteFile(to, text, 0o644))
		})
		if err != nil {
			return "", err
		}
	}
	library := filepath.Join(dir, "coreml.so")
	args := append([]string{"-o", library, "-I" + filepath.Dir(filepath.Dir(headers[len(headers)-1]))}, flags...)
	for _, pattern := range []string{"lib/*.m", "*.m"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", err
		}
		args = append(args, found...)
	}
	cmd := exec.Command(clang, append(args, libraries...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", clang, strings.Join(cmd.Args[1:], " "), err, out)
	}
	return library, nil
}
