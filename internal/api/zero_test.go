package api_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// devices are packages whose functions need a device or other processes, not called by [TestNothingPanics].
var devices = []string{"ir/scalar", "ir/scalar/plain", "ir/loop", "ir/routine", "native/cuda", "native/metal", "native/coreml", "native/coreml/train", "native/collective/mpi", "native/collective/nccl", "native/collective/launch", "native/backendtest", "webgpu"}

// TestNothingPanics calls every exported function and method with nil, zero and absurd arguments, in a program that
// is written here: package zero says how.
func TestNothingPanics(t *testing.T) {
	var imports, funcs, types strings.Builder
	for i, pkg := range public(t) {
		if slices.Contains(devices, pkg) || strings.HasPrefix(pkg, "wasm") || strings.Contains(pkg, "irtest") {
			continue
		}
		listed := surface(t, pkg)
		if len(listed.funcs)+len(listed.types) == 0 {
			continue
		}
		fmt.Fprintf(&imports, "\tp%d %q\n", i, filepath.ToSlash(filepath.Join("github.com/rlx-go/rlx", pkg)))
		for _, name := range listed.funcs {
			fmt.Fprintf(&funcs, "\t{%q, p%d.%s},\n", listed.name+"."+name, i, name)
		}
		for _, name := range listed.types {
			fmt.Fprintf(&types, "\t{%q, (*p%d.%s)(nil)},\n", listed.name+"."+name, i, name)
		}
	}
	text := "package main\n\nimport (\n\t\"fmt\"\n\t\"github.com/rlx-go/rlx/internal/api/zero\"\n" + imports.String() + ")\n\n" +
		"func main() {\n\tfor _, line := range zero.Run(funcs, types) {\n\t\tfmt.Println(line)\n\t}\n}\n\n" +
		"var funcs = []zero.Func{\n" + funcs.String() + "}\n\nvar types = []zero.Type{\n" + types.String() + "}\n"
	out, err := run(t, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out != "" {
		t.Error(out)
	}
}

type listing struct {
	name         string
	funcs, types []string
}

// surface lists the exported functions and types without type parameters of a package.
func surface(t *testing.T, pkg string) listing {
	t.Helper()
	dir := filepath.Join(root, pkg)
	found, err := linux().ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.Concat(found.GoFiles, found.CgoFiles) {
		file, err := parser.ParseFile(set, filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(set, files, found.ImportPath)
	if err != nil {
		t.Fatal(err)
	}
	out := listing{name: found.Name}
	add := func(funcs []*doc.Func) {
		for _, f := range funcs {
			if f.Decl.Type.TypeParams == nil {
				out.funcs = append(out.funcs, f.Name)
			}
		}
	}
	add(p.Funcs)
	for _, typ := range p.Types {
		add(typ.Funcs)
		for _, spec := range typ.Decl.Specs {
			s := spec.(*ast.TypeSpec)
			if _, ok := s.Type.(*ast.InterfaceType); !ok && s.Name.Name == typ.Name && s.TypeParams == nil {
				out.types = append(out.types, typ.Name)
			}
		}
	}
	return out
}

// run runs a program of the module that is not stored, and returns what it prints.
func run(t *testing.T, text string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	main, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	whole, err := filepath.Abs(filepath.Join("zero", "run", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{whole: main}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{main: []byte(text), overlay: replaced} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "zero")
	build := exec.Command("go", "build", "-overlay", overlay, "-o", program, "./zero/run")
	if out, err := build.CombinedOutput(); err != nil {
		return string(out), err
	}
	c := exec.Command(program)
	c.Dir = t.TempDir()
	out, err := c.CombinedOutput()
	return string(out), err
}
