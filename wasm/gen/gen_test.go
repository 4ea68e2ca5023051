package main

import (
	"os"
	"testing"
)

func TestGeneratedFileIsUpToDate(t *testing.T) {
	got, err := os.ReadFile("../../js/src/graph/ops.gen.ts")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != generate() {
		t.Error("js/src/graph/ops.gen.ts differs from what the definitions give: run 'make generate'")
	}
}
