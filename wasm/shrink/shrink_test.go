package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program panics in ways the runtime looks at names and tables for, collects
// garbage on a deep stack, and says that all went well.
const program = `package main

import "runtime"

type T struct{ n int }

func (t T) get() int { return t.n }

type getter interface{ get() int }

func catch(f func()) (msg string) {
	defer func() { msg = recover().(error).Error() }()
	f()
	return ""
}

//go:noinline
func deep(n int, p *[100]int) int {
	if n == 0 {
		runtime.GC()
		return p[7]
	}
	q := new([100]int)
	q[7] = p[7] + 1
	return deep(n-1, q)
}

func main() {
	var p *T
	var list []int
	println(catch(func() { println(getter(p).get()) }) != "", catch(func() { println(list[len(list)]) }))
	println(deep(10000, new([100]int)))
}
`

func TestShrunkProgramRunsAsBefore(t *testing.T) {
	dir := t.TempDir()
	source, module := filepath.Join(dir, "main.go"), filepath.Join(dir, "main.wasm")
	if err := os.WriteFile(source, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-gcflags=all=-l", "-ldflags=-s -w", "-o", module, source)
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before, after := run(t, module), ""
	full, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	if err := shrinkFile(module); err != nil {
		t.Fatal(err)
	}
	after = run(t, module)
	if after != before || !strings.Contains(after, "10000\n") {
		t.Errorf("the program prints %q, and %q when shrunk", before, after)
	}
	small, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(small, []byte("main.deep")) || !bytes.Contains(full, []byte("main.deep")) {
		t.Error("the names of functions are still there")
	}
	if again, err := shrink(small); err != nil || !bytes.Equal(again, small) {
		t.Errorf("shrinking twice changes the module again (%v)", err)
	}
}

func run(t *testing.T, module string) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("node", filepath.Join(strings.TrimSpace(string(root)), "lib/wasm/wasm_exec_node.js"), module).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestDamagedModulesAreErrors(t *testing.T) {
	header := "\x00asm\x01\x00\x00\x00"
	for name, module := range map[string]string{
		"empty":             "",
		"no data":           header + "\x01\x01\x00",
		"section too long":  header + "\x0b\x7f\x01",
		"no segment":        header + "\x0b\x01\x01",
		"passive segment":   header + "\x0b\x04\x01\x01\x01x",
		"segment too long":  header + "\x0b\x07\x01\x00\x41\x00\x0b\x09x",
		"negative offset":   header + "\x0b\x07\x01\x00\x41\x7f\x0b\x01x",
		"without functions": header + "\x0b\x07\x01\x00\x41\x00\x0b\x01x",
		"damaged table":     header + "\x0b\x50\x01\x00\x41\x00\x0b\x4a" + magic + strings.Repeat("\xff", 66),
	} {
		if out, err := shrink([]byte(module)); err == nil || out != nil {
			t.Errorf("%s: no error", name)
		} else if errors.Is(err, errDamaged) != (name != "without functions" && name != "damaged table") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
