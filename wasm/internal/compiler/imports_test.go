package compiler

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Each of these packages would add more to a page's modules than they use of it: see package format. What imports ONNX models
// has the files of package io/fs, which imports time.
func TestModulesDoNotImportLargePackages(t *testing.T) {
	for module, files := range map[string]bool{"../..": false, "../../sizes": false, "../../onnx": true} {
		list := exec.Command("go", "list", "-deps", module)
		list.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		large := []string{"fmt", "os", "regexp", "encoding/json", "math/big"}
		if !files {
			large = append(large, "time", "syscall/js")
		}
		for _, name := range large {
			if slices.Contains(strings.Fields(string(out)), name) {
				t.Errorf("%s imports %s", module, name)
			}
		}
	}
}
