// Package applecheck builds Objective-C bindings for macOS on other systems and checks the
// methods and constants that they use against a list of documented names, for tests. It
// declares the part of Foundation and C that the bindings use, written from Apple's
// documentation, with text stubs of libraries; each binding provides the same for its
// framework.
//
// Its input is a [Binding]: the drivers of Metal and of Core ML have one in a test. Start reading at
// applecheck.go; selectors.go reads the methods from the library that was built, outside.go compares them to
// lists of others than Apple.
package applecheck

import (
	"debug/macho"
	"embed"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/clang"
)

// System holds the folder sdk with headers and the folder lib with text stubs.
//
//go:embed sdk lib
var System embed.FS

// architectures lists the architectures of macOS by their names in Apple's tools.
var architectures = []string{"arm64", "x86_64"}

// Binding is the Objective-C of a package that calls one of Apple's frameworks.
type Binding struct {
	// Sources is a pattern of file names.
	Sources string
	// Headers holds the folder include with the framework's header, such as Metal/Metal.h,
	// and the folder lib with its text stub.
	Headers fs.FS
	// Framework is the name of the framework, as in "Metal".
	Framework string
	// Since is the oldest supported macOS, as in "11.0".
	Since string
}

// Run builds the binding for all architectures of macOS and compares the methods that it
// sends to testdata/selectors.txt, which has a method and the page of Apple's documentation
// on each line. It fails for unlisted methods, listed methods that are not sent, and unused
// declarations of the header. With -update it rewrites the list. Methods and constants are
// also checked against testdata/outside.txt.
func Run(t *testing.T, b Binding) {
	for _, architecture := range architectures {
		t.Run(architecture, func(t *testing.T) {
			file := b.library(t, architecture)
			libraries, err := file.ImportedLibraries()
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{b.Framework + ".framework", "Foundation.framework", "libobjc", "libSystem"} {
				if !slices.ContainsFunc(libraries, func(l string) bool { return strings.Contains(l, want) }) {
					t.Errorf("not linked with %s: %v", want, libraries)
				}
			}
			checkSelectors(t, selectors(t, file))
		})
	}
	t.Run("declarations are used", func(t *testing.T) { b.checkDeclarations(t) })
	t.Run("others know the same", func(t *testing.T) {
		o := readOutside(t)
		o.checkMethods(t, documented(t))
		b.checkConstants(t, o)
	})
}

// library builds and opens the binding as a library.
func (b Binding) library(t *testing.T, architecture string) *macho.File {
	t.Helper()
	dir := t.TempDir()
	clang := b.unpack(t, dir)
	sources, err := filepath.Glob(b.Sources)
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources: ", err)
	}
	var objects []string
	for _, source := range sources {
		objects = append(objects, b.compile(t, clang, dir, architecture, source))
	}
	stubs, err := filepath.Glob(filepath.Join(dir, "lib", "*.tbd"))
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(dir, "binding.dylib")
	run(t, strings.Replace(clang, "clang", "ld64.lld", 1), slices.Concat(
		[]string{"-arch", architecture, "-platform_version", "macos", b.Since, "15.0", "-dylib", "-o", library}, objects, stubs)...)
	file, err := macho.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// unpack writes headers and stubs to a folder, and returns the compiler.
func (b Binding) unpack(t *testing.T, dir string) (compiler string) {
	t.Helper()
	compiler, err := clang.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range []fs.FS{System, b.Headers} {
		if err := os.CopyFS(dir, files); err != nil {
			t.Fatal(err)
		}
	}
	return compiler
}

// compile compiles a source with the headers of a folder to an object there.
func (b Binding) compile(t *testing.T, clang, dir, architecture, source string) (object string) {
	t.Helper()
	object = filepath.Join(dir, filepath.Base(source)+".o")
	run(t, clang, "-target", architecture+"-apple-macos"+b.Since, "-nostdlibinc", "-isystem", filepath.Join(dir, "sdk"), "-isystem", filepath.Join(dir, "include"),
		"-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-fblocks", "-fobjc-exceptions", "-O2", "-c", source, "-o", object)
	return object
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
