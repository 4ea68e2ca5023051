package ops_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesOfPackage asserts that the package's documentation lists every file, that none is
// longer than 900 lines, and that files of samples are named by a group of families.
func TestFilesOfPackage(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"doc": true}
	for _, word := range strings.FieldsFunc(string(doc), func(r rune) bool { return strings.ContainsRune(" \n,.;:()/", r) }) {
		listed[word], listed["linalg"+word] = true, true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("samples/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, more...) {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".go"), "_js")
		if strings.HasSuffix(name, "_test") {
			continue
		}
		if kernel := strings.HasPrefix(name, "linalg_") && strings.HasSuffix(name, "_kernel"); !listed[name] && !kernel {
			t.Errorf("doc.go does not list %s", file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 900 {
			t.Errorf("%s has %d lines, more than 900", file, n)
		}
	}
}
