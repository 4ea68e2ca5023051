package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planted is a module with mistakes, some of which are mistakes for one of the systems alone.
var planted = map[string]string{
	"go.mod": "module planted\n\ngo 1.26\n",
	"a/a.go": `package a

import "fmt"

func Logf(format string, args ...any) { fmt.Printf(format, args...) }
`,
	"a/a_test.go": `package a

import "testing"

func TestA(t *testing.T) {
	n := 3
	t.Errorf("%d", n<<40)
}
`,
	"b/b.go": "package b\n",
	"b/b_windows.go": `package b

import "planted/a"

func F() { a.Logf("%d", "x") }
`,
	"b/b_darwin_test.go": `package b_test

func f() int { return "x" }
`,
}

func TestPlantedMistakesAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range planted {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for system, want := range map[string]string{
		"linux/386":     "a_test.go:7:17: n (32 bits) too small for shift of 40",
		"windows/amd64": `b_windows.go:5:20: planted/a.Logf format %d has arg "x" of wrong type string`,
		"darwin/arm64":  `b_darwin_test.go:3:23: cannot use "x" (untyped string constant) as int value in return statement`,
		"linux/amd64":   "",
	} {
		var out bytes.Buffer
		found, err := vetFor(&out, system, []string{"./..."})
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(out.String(), "\n")
		if found != (want != "") || want == "" && lines > 0 || want != "" && lines != 1 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %q, want one line with %q", system, out.String(), want)
		}
	}
}
