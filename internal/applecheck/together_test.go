package applecheck_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// external matches the definition of a C function that other files can call.
var external = regexp.MustCompile(`(?m)^(?:[a-z_]+[ *]+)+(rlx_\w+)\([^;{]*\) \{`)

// TestBindingsDefineDistinctSymbols checks that a program can link the bindings of Metal and
// Core ML together: no function is defined in both.
func TestBindingsDefineDistinctSymbols(t *testing.T) {
	home := map[string]string{}
	for _, folder := range []string{"../metal/driver", "../coreml/driver"} {
		files, err := filepath.Glob(filepath.Join(folder, "*_darwin.m"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no binding: %v", folder, err)
		}
		found := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range external.FindAllStringSubmatch(string(text), -1) {
				if strings.HasPrefix(m[0], "static ") {
					continue
				}
				found++
				if other := home[m[1]]; other != "" {
					t.Errorf("%s defines %s, and so does %s", file, m[1], other)
				}
				home[m[1]] = file
			}
		}
		if found == 0 {
			t.Errorf("no function is found in %s", folder)
		}
	}
}

// accepted are compiler flags that the go command allows in a package and a binding may need
// (security.go of cmd/go); others are an "invalid flag".
var accepted = regexp.MustCompile(`^-([DIOW].*|std=.*|f(no-)?objc-arc|f(no-)?blocks)$`)

func TestGoAcceptsTheFlagsOfTheBindings(t *testing.T) {
	for _, file := range []string{"../metal/driver/load_darwin.go", "../coreml/driver/load_darwin.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			flags, asked := strings.CutPrefix(strings.TrimSpace(line), "#cgo CFLAGS:")
			for _, flag := range strings.Fields(flags) {
				if asked && !accepted.MatchString(flag) {
					t.Errorf("%s asks for %s, which the go command refuses", file, flag)
				}
			}
		}
	}
}

// TestMetalLinksCoreGraphics checks that programs link the framework without which
// MTLCreateSystemDefaultDevice finds no device in one without a window.
func TestMetalLinksCoreGraphics(t *testing.T) {
	text, err := os.ReadFile("../metal/driver/load_darwin.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "-framework CoreGraphics") {
		t.Error("load_darwin.go does not link CoreGraphics")
	}
}
