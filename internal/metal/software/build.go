//go:build cgo && linux

package software

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/metal/apple"
	"github.com/rlx-go/rlx/internal/metal/driver"
)

//go:embed lib
var sources embed.FS

// built is the device, built as a library.
type built struct {
	library, clang string
	kernelFlags    []string // for kernels
}

// deviceFlags are the compiler flags of the device. GCC's Objective-C runtime, for which
// Debian builds GNUstep, has no automatic reference counting.
var deviceFlags = []string{
	"-shared", "-fPIC", "-O1", "-Wall", "-Werror=objc-method-access", "-fobjc-runtime=gcc", "-fblocks", "-fobjc-exceptions",
	"-fconstant-string-class=NSConstantString", "-I/usr/include/GNUstep",
}

// deviceLibraries lists the runtime of blocks first: GNUstep's own function that copies
// blocks does not work.
var deviceLibraries = []string{"-lBlocksRuntime", "-lgnustep-base", "-lobjc", "-lpthread"}

// kernelFlags are the compiler flags of kernels. Undefined behaviour of C++ becomes a call
// of the device. Optimisation would take longer than running the kernel.
var kernelFlags = []string{
	"-O0", "-w", "-shared", "-fPIC", "-nostdlib", "-ffp-contract=on",
	"-fsanitize=array-bounds,signed-integer-overflow,shift,integer-divide-by-zero,float-cast-overflow",
}

// build returns the device, cached in a temporary folder by a hash of its sources.
var build = sync.OnceValues(func() (*built, error) {
	clang, err := clang.Compiler()
	if err != nil {
		return nil, err
	}
	files, key, err := allFiles()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(os.TempDir(), "rlx-software-metal-"+key)
	b := &built{
		library: filepath.Join(dir, "device.so"), clang: clang,
		kernelFlags: append([]string{"-I" + filepath.Join(dir, "lib"), "-include", "metal_stdlib"}, kernelFlags...),
	}
	if _, err := os.Stat(dir); err == nil {
		return b, nil
	}
	made, err := os.MkdirTemp("", "rlx-software-metal-")
	if err != nil {
		return nil, err
	}
	if err := write(made, files); err != nil {
		return nil, err
	}
	if err := compile(clang, made, files); err != nil {
		return nil, errors.Join(err, os.RemoveAll(made))
	}
	if err := os.Rename(made, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return b, os.RemoveAll(made) // another process was faster
	}
	return b, nil
})

// allFiles returns the sources of the device by path, and their hash.
func allFiles() (files map[string][]byte, key string, err error) {
	files, sum := map[string][]byte{}, sha256.New()
	for _, from := range []embed.FS{sources, apple.Headers, driver.Sources} {
		err = errors.Join(err, fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files[path], err = from.ReadFile(path)
			fmt.Fprintf(sum, "%s %d ", path, len(files[path]))
			sum.Write(files[path])
			return err
		}))
	}
	fmt.Fprint(sum, deviceFlags, deviceLibraries, kernelFlags)
	return files, fmt.Sprintf("%x", sum.Sum(nil)[:8]), err
}

func write(dir string, files map[string][]byte) error {
	for path, text := range files {
		to := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compile builds the library in a folder.
func compile(clang, dir string, files map[string][]byte) error {
	args := append([]string{"-o", "device.so", "-Ilib", "-Iinclude", "-I."}, deviceFlags...)
	headers, err := filepath.Glob("/usr/lib/gcc/*/*/include/objc/objc.h")
	if err != nil || len(headers) == 0 {
		return errors.New("the headers of GCC's Objective-C runtime are missing")
	}
	args = append(args, "-I"+filepath.Dir(filepath.Dir(headers[len(headers)-1])))
	for path := range files {
		if ext := filepath.Ext(path); ext == ".m" || ext == ".c" {
			args = append(args, path)
		}
	}
	return run(dir, clang, append(args, deviceLibraries...)...)
}

func run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
