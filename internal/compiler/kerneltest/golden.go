package kerneltest

import (
	"os"
	"path/filepath"
	"testing"
)

// Golden compares a text with a file of testdata. If update is set, the -update flag of the
// test, it writes the file first.
func Golden(t testing.TB, name, got string, update bool) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has changed: run go test -update and read the difference\n%s", file, got)
	}
}
