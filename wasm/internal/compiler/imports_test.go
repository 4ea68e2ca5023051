package compiler

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Each of these packages would add more to the page's module than the compiler uses of it: see
// package format.
func TestModuleDoesNotImportLargePackages(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "../..")
	list.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	for _, large := range []string{"fmt", "os", "time", "syscall/js", "regexp", "encoding/json", "math/big"} {
		if slices.Contains(deps, large) {
			t.Errorf("the module imports %s", large)
		}
	}
}
