package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestASectionIsReplaced(t *testing.T) {
	const old = "# Measurements\n\n## CPU\n\nolder\n\n## Sizes\n\nkept\n"
	tests := []struct{ section, want string }{
		{"CPU", "# Measurements\n\n## CPU\n\ntoday\n\n```text\n1 ms\n```\n\n## Sizes\n\nkept\n"},
		{"Sizes", "# Measurements\n\n## CPU\n\nolder\n\n## Sizes\n\ntoday\n\n```text\n1 ms\n```\n"},
		{"GPU", old + "\n## GPU\n\ntoday\n\n```text\n1 ms\n```\n"},
	}
	for _, tt := range tests {
		file := filepath.Join(t.TempDir(), "results.md")
		if err := os.WriteFile(file, []byte(old), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := record(file, tt.section, "today", "\n1 ms\n"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != tt.want {
			t.Errorf("%s:\n%s", tt.section, got)
		}
	}
}

func TestBenchmarkWithoutOutputIsNotRecorded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.md")
	if err := os.WriteFile(file, []byte("## CPU\n\nolder\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := record(file, "CPU", "today", " \n"); err == nil {
		t.Error("recorded")
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "## CPU\n\nolder\n" {
		t.Errorf("%q, %v", got, err)
	}
}
