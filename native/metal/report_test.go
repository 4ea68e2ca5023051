//go:build linux

package metal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stand-ins for what apple.sh calls on a Mac. That of Go records its arguments, and
// fails for the suite of Core ML.
var standIns = map[string]string{
	"uname":   "echo Darwin",
	"sw_vers": "echo ProductVersion: 15.0",
	"sysctl":  "echo Apple M1",
	"xcrun":   "echo 15.0",
	"clang":   "exit 0",
	"python3": "exit 1", // no MLX
	"go":      `echo "$@" >> "$NOTES"; case "$*" in *TestBackend*) echo "--- FAIL: TestBackend"; exit 1;; esac`,
}

// TestTheReportForAMac runs apple.sh over stand-ins: the tests that it names exist, and a
// step that fails is reported at the end and does not stop the others.
func TestTheReportForAMac(t *testing.T) {
	dir := t.TempDir()
	for name, script := range standIns {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	notes, folder := filepath.Join(dir, "notes"), filepath.Join(dir, "report")
	cmd := exec.Command("bash", "apple.sh", folder)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "NOTES="+notes)
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("with a step that fails it ends with %v:\n%s", err, out)
	}
	report, err := os.ReadFile(filepath.Join(folder, "report.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, summary, _ := strings.Cut(string(report), "== summary\n")
	for _, want := range []string{
		"passed: conformance: ops, gradients", "passed: digits", "passed: speed\n", "passed: speed of MLX",
		"FAILED (exit 1): Core ML: conformance", "passed: Core ML: digits", "passed: Core ML: where operations run",
	} {
		if !strings.Contains(summary, want) {
			t.Errorf("the summary has not %q:\n%s", want, summary)
		}
	}
	if !strings.Contains(string(report), "has no MLX here") {
		t.Error("the report does not say that there is no MLX")
	}
	asked, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	checkTestsAreThere(t, string(asked))
}

// pattern matches the names of tests or benchmarks in a call of go test: ^A$ or ^A(B|C)$.
var pattern = regexp.MustCompile(`\^(\w+)(?:\(([\w|]+)\))?\$`)

// checkTestsAreThere looks for the tests of calls of go test in the files of their packages.
func checkTestsAreThere(t *testing.T, calls string) {
	t.Helper()
	found := 0
	for call := range strings.Lines(calls) {
		words := strings.Fields(call)
		for _, m := range pattern.FindAllStringSubmatch(call, -1) {
			for end := range strings.SplitSeq(m[2], "|") {
				found++
				if !hasTest(t, words[len(words)-1], m[1]+end) {
					t.Errorf("%s: there is no %s", strings.TrimSpace(call), m[1]+end)
				}
			}
		}
	}
	if found < 9 {
		t.Errorf("%d tests are asked for", found)
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "func "+name+"(")
	})
}
