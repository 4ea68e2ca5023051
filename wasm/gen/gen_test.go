package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
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

// TestPagesSupportEveryTypeOfWebGPU compares the types that pages declare with the table of
// support.
func TestPagesSupportEveryTypeOfWebGPU(t *testing.T) {
	const file = "js/src/values/dtype.ts"
	source, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dtype.All() {
		if d.On(dtype.WGSL) == dtype.Unsupported {
			continue
		}
		for what, word := range map[string]string{"DType": "'" + d.String() + "'", "makers": " " + d.String() + ": "} {
			if !strings.Contains(string(source), word) {
				t.Errorf("%s is not among %s of %s", d, what, file)
			}
		}
	}
}
