package api_test

import (
	"flag"
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/api"
)

var update = flag.Bool("update", false, "write the golden files again")

const (
	root   = "../.."
	golden = "testdata"
)

// private are the names of folders whose packages are not promised: those below internal, and
// the programs of the demos and benchmarks.
var private = []string{"internal", "demo", "js"}

// notGo are the names of folders without packages of the module.
var notGo = []string{"testdata", "node_modules", "build"}

// public returns the folders of the packages that other modules may import, relative to the
// module's root.
func public(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(packages(t), func(pkg string) bool {
		return slices.ContainsFunc(strings.Split(pkg, "/"), func(name string) bool { return slices.Contains(private, name) })
	})
}

// packages returns the folders of all packages that are not commands, relative to the module's root.
func packages(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := d.Name()
		if path != root && (slices.Contains(notGo, name) || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if pkg, err := linux().ImportDir(path, 0); err == nil && pkg.Name != "main" {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			found = append(found, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// linux is the system whose files count, with cgo: it has all backends but Apple's, whose API
// is the same everywhere.
func linux() *build.Context {
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled = "linux", "amd64", true
	return &ctx
}

// fileOf names the golden file of a package.
func fileOf(pkg string) string {
	if pkg == "." {
		return "rlx.txt"
	}
	return strings.ReplaceAll(pkg, "/", "_") + ".txt"
}

// TestTheAPIIsAsPromised compares the exported API with the golden files. A difference is a
// change that users see: mention it in the CHANGELOG and run the test with -update.
func TestTheAPIIsAsPromised(t *testing.T) {
	want := map[string]bool{}
	for _, pkg := range public(t) {
		got, err := api.Print(linux(), filepath.Join(root, pkg))
		if err != nil {
			t.Fatal(err)
		}
		if got == "" {
			continue
		}
		name := filepath.Join(golden, fileOf(pkg))
		want[name] = true
		if *update {
			if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		old, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%s is a new public package: run go test ./internal/api -update, or put it below a folder named internal", pkg)
			continue
		}
		if string(old) != got {
			t.Errorf("the exported API of %s has changed: mention it in CHANGELOG.md and run go test ./internal/api -update\n%s", pkg, firstDifference(string(old), got))
		}
	}
	files, err := filepath.Glob(filepath.Join(golden, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if want[name] {
			continue
		}
		if *update {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Errorf("%s is of a package that is no longer public: mention it in CHANGELOG.md and run go test ./internal/api -update", name)
	}
}

// firstDifference shows the first line at which two texts differ.
func firstDifference(old, now string) string {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "-" + a[i] + "\n+" + b[i]
		}
	}
	return "one has more lines than the other"
}

// TestPrintOmitsUnexportedNames runs the printer on a test package.
func TestPrintOmitsUnexportedNames(t *testing.T) {
	dir := t.TempDir()
	const source = `package shapes

// Sides is documented, which does not show.
const Sides = 4

type Box struct {
	W, H  int
	inner int
}

type secret struct{}

func New(w, h int) *Box { return &Box{W: w, H: h} }

func (b *Box) Area() int { return b.W * b.H }
func (b *Box) hidden()   {}
`
	if err := os.WriteFile(filepath.Join(dir, "shapes.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := api.Print(linux(), dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = `const Sides = 4

type Box struct {
	W, H int
}

func New(w, h int) *Box

func (b *Box) Area() int

`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestPrintShowsAliasedInternalTypes checks that the members of an internal type that a public
// package exports by an alias are printed below the alias, and those of a public type are not.
func TestPrintShowsAliasedInternalTypes(t *testing.T) {
	dir := t.TempDir()
	for name, source := range map[string]string{
		"go.mod":               "module example.com/shapes\n",
		"shapes.go":            "package shapes\n\nimport (\n\t\"example.com/shapes/area\"\n\t\"example.com/shapes/internal/box\"\n)\n\ntype Box = box.Box\n\ntype Area = area.Area\n",
		"area/area.go":         "package area\n\ntype Area int\n\nfunc (a Area) Double() Area { return 2 * a }\n",
		"internal/box/box.go":  "package box\n\ntype Box struct {\n\tW, H int\n\tdepth int\n}\n\nfunc (b *Box) Area() int { return b.W * b.H }\nfunc (b *Box) hidden() {}\n",
		"internal/box/more.go": "package box\n\ntype Other int\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := api.Print(linux(), dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = `type Area = area.Area

type Box = box.Box

type Box struct {
	W, H int
}

func (b *Box) Area() int

`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestPackagesHaveExamples finds a package without an example, which pkg.go.dev shows first. Packages for tests need none.
func TestPackagesHaveExamples(t *testing.T) {
	for _, pkg := range public(t) {
		if strings.HasPrefix(pkg, "ir/irtest") || pkg == "native/backendtest" || pkg == "ir/ops/samples" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "\nfunc Example")
		}) {
			t.Errorf("%s has no example", pkg)
		}
	}
}
