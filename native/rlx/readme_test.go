package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheModelOfTheREADMERuns runs the lines of README about model.txt, on the CPU.
func TestTheModelOfTheREADMERuns(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	model := regexp.MustCompile(`(?s)cat > model\.txt <<'END'\n(.*?)END\n`).FindSubmatch(text)
	if model == nil {
		t.Fatal("README writes no model.txt")
	}
	folder := t.TempDir()
	file, picture := filepath.Join(folder, "model.txt"), filepath.Join(folder, "a.svg")
	if err := os.WriteFile(file, model[1], 0o600); err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^rlx (.* ?model\.txt.*?) *#`).FindAllSubmatch(text, -1)
	if len(lines) != 3 {
		t.Fatalf("README has %d lines about model.txt, want 3", len(lines))
	}
	for _, line := range lines {
		args := strings.Fields(strings.NewReplacer("model.txt", file, "a.svg", picture).Replace(string(line[1])))
		if args[0] == "bench" {
			args = append(args, "-device", "cpu", "-time", "1ms")
		}
		if code, _, stderr := call(t, "", args...); code != 0 {
			t.Errorf("%q ends with %d: %s", line[1], code, stderr)
		}
	}
	if _, err := os.Stat(picture); err != nil {
		t.Error(err)
	}
}
