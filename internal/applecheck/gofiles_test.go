package applecheck

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rlx-go/rlx"

// TestDarwinFilesTypeCheckTogether type-checks the packages that a Mac compiles with cgo, and
// their tests: vet cannot, as cgo for macOS needs Apple's headers. C code is
// skipped; the files that call it are compiled on Linux too.
func TestDarwinFilesTypeCheckTogether(t *testing.T) {
	findStandardLibrary(t)
	c := newChecker(t)
	seen := map[string]bool{}
	for _, path := range []string{"internal/metal/driver", "native/metal", "internal/coreml/driver", "native/coreml"} {
		for _, name := range c.check(path) {
			seen[path+"/"+name] = true
		}
	}
	for _, file := range []string{
		"internal/metal/driver/load_darwin.go", "internal/coreml/driver/load_darwin.go", "native/metal/gpu_test.go",
		"internal/coreml/driver/main_darwin_test.go", "native/coreml/main_darwin_test.go", "native/coreml/report_test.go",
	} {
		if !seen[file] {
			t.Errorf("%s is not among the files", file)
		}
	}
}

// checker imports packages as built on a Mac with cgo. The standard library is that of macOS
// without cgo.
type checker struct {
	t        *testing.T
	context  build.Context
	files    *token.FileSet
	standard types.Importer
	done     map[string]*types.Package
}

func newChecker(t *testing.T) *checker {
	c := &checker{t: t, context: build.Default, files: token.NewFileSet(), done: map[string]*types.Package{}}
	c.context.GOOS, c.context.GOARCH, c.context.CgoEnabled = "darwin", "arm64", true
	c.standard = importer.ForCompiler(c.files, "source", nil)
	return c
}

// findStandardLibrary sets the path of the standard library in go/build, which a test built with
// -trimpath does not know.
func findStandardLibrary(t *testing.T) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	build.Default.GOROOT = strings.TrimSpace(string(root))
	build.Default.GOOS, build.Default.CgoEnabled = "darwin", false // package syscall differs
}

// Import returns a package, of this module from its files.
func (c *checker) Import(path string) (*types.Package, error) {
	inside, ours := strings.CutPrefix(path, module)
	if !ours {
		return c.standard.Import(path)
	}
	if c.done[path] == nil {
		p := c.find(strings.TrimPrefix(inside, "/"))
		c.done[path] = c.types(path, p, slices.Concat(p.GoFiles, p.CgoFiles))
	}
	return c.done[path], nil
}

// check type-checks a package with its tests, and returns the names of the files.
func (c *checker) check(path string) []string {
	p := c.find(path)
	inside := slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles)
	c.done[module+"/"+path] = c.types(module+"/"+path, p, inside)
	if len(p.XTestGoFiles) > 0 {
		c.types(module+"/"+path+"_test", p, p.XTestGoFiles)
	}
	return append(inside, p.XTestGoFiles...)
}

func (c *checker) find(path string) *build.Package {
	c.t.Helper()
	p, err := c.context.ImportDir(filepath.Join("..", "..", path), 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *checker) types(path string, p *build.Package, names []string) *types.Package {
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			c.t.Fatal(err)
		}
		files = append(files, f)
	}
	config := types.Config{Importer: c, FakeImportC: true, Error: func(err error) {
		if !strings.Contains(err.Error(), "invalid type") { // one of C
			c.t.Error(err)
		}
	}}
	out, _ := config.Check(path, c.files, files, nil)
	return out
}
