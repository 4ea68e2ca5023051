package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/api"
)

// TestErrorMessages compares the texts of all errors with a golden file, so that they can be read as
// a whole. A message names the operand, what was given, then what is required.
func TestErrorMessages(t *testing.T) {
	var got strings.Builder
	for _, pkg := range packages(t) {
		text, err := api.Errors(linux(), filepath.Join(root, pkg))
		if err != nil {
			t.Fatal(err)
		}
		if text != "" {
			fmt.Fprintf(&got, "# %s\n%s\n", pkg, text)
		}
	}
	const name = "testdata/errors.golden"
	if *update {
		if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the texts of errors have changed: read them, and run go test ./internal/api -update\n%s", firstDifference(got.String(), string(want)))
	}
}
