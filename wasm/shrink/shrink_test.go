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

// program panics in ways that make the runtime read names and tables, continues after panics and
// switches of goroutines, and calls methods that only type tables refer to. It collects garbage on
// a deep stack and reports success.
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

// count is interrupted at each of its calls by a panic or a switch of goroutines.
func count(n int, c chan int) (sum int) {
	defer func() {
		c <- sum // after the panic: the runtime goes on where count returns
		runtime.Gosched()
		sum += 10000
	}()
	defer func() {
		if recover() != nil {
			c <- sum
			sum += 1000
		}
	}()
	for i := range n {
		c <- i
		sum += <-c
		if i%3 == 0 {
			runtime.Gosched()
		}
		sum += len(runtime.Version()) / 1000
	}
	var m map[string]int
	m["no"] = sum
	return -1
}

func echo(c chan int, n int) {
	for range n {
		v := <-c
		runtime.Gosched()
		c <- v
	}
	println("at the panic", <-c)
	println("behind it", <-c)
}

type stringer interface{ text() string }

type named struct{ name string }

func (n *named) text() string { return n.name }

func textOf(v any) string {
	if s, ok := v.(stringer); ok {
		return s.text()
	}
	return "none"
}

func main() {
	c := make(chan int)
	go echo(c, 10)
	println(count(10, c), textOf(&named{"named"}), textOf(3))
	var p *T
	var list []int
	println(catch(func() { println(getter(p).get()) }) != "", catch(func() { println(list[len(list)]) }))
	println(deep(10000, new([100]int)))
}
`

// fatal ends with an uncaught panic.
const fatal = `package main

func main() { panic("what went wrong") }
`

func TestShrunkProgramRunsAsBefore(t *testing.T) {
	module := build(t, program)
	before := run(t, module, 0)
	full, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	if err := shrinkFile(module); err != nil {
		t.Fatal(err)
	}
	after := run(t, module, 0)
	for _, line := range []string{"at the panic 45\n", "behind it 1045\n", "11045 named none\n", "10000\n"} {
		if after != before || !strings.Contains(after, line) {
			t.Errorf("the program prints %q, and %q when shrunk, want %q among it", before, after, line)
		}
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

func TestShrunkProgramPrintsPanicValue(t *testing.T) {
	module := build(t, fatal)
	if err := shrinkFile(module); err != nil {
		t.Fatal(err)
	}
	if out := run(t, module, 2); !strings.Contains(out, "panic: what went wrong\n") {
		t.Errorf("the program prints %q", out)
	}
}

// build returns the module of a program, with the flags of the page's modules, for which the standard library has been
// compiled.
func build(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	source, module := filepath.Join(dir, "main.go"), filepath.Join(dir, "main.wasm")
	if err := os.WriteFile(source, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "build", "-trimpath", "-gcflags=all=-l", "-gcflags=runtime/...=", "-gcflags=internal/runtime/...=", "-ldflags=-s -w", "-o", module, source)
	command.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return module
}

// run returns the output of a module, which must end with an exit code.
func run(t *testing.T, module string, code int) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("node", filepath.Join(strings.TrimSpace(string(root)), "lib/wasm/wasm_exec_node.js"), module)
	command.Env = append(os.Environ(), "GOMAXPROCS=1") // Node gives a module the variables; it has one thread
	out, err := command.CombinedOutput()
	if command.ProcessState == nil || command.ProcessState.ExitCode() != code {
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
