//go:build cgo

package main

import (
	"os"
	"testing"
)

// Without cgo the backend of WebGPU answers that it is not there.
func TestTableIsUpToDate(t *testing.T) {
	got, err := os.ReadFile("../../ir/ops/OPS.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != table() {
		t.Error("ir/ops/OPS.md differs from what the definitions and backends give: run 'make generate'")
	}
}
