package webgpu_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/onnxcase"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/webgpu"
)

var update = flag.Bool("update", false, "run all of onnx's node tests and write their table")

const (
	nodesTable = "../ir/format/onnx/NODES-WEBGPU.md"
	// nodesStep is the distance of the cases that are run without -update: all take minutes.
	nodesStep = 50
)

// TestNodes runs a part of the node tests of the onnx package, which `make test-onnx` writes to a folder. What becomes of
// each is what the table of all has.
func TestNodes(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(os.Getenv("RLX_ONNX"), "*"))
	if err == nil && (len(folders) == 0 || os.Getenv("RLX_ONNX") == "") {
		err = errors.New("$RLX_ONNX names no folder of cases: make test-onnx does")
	}
	backendtest.Require(t, "onnx", err)
	backendtest.Require(t, webgpu.Name, webgpu.Backend().Probe())
	if *update {
		writeNodes(t, folders)
		return
	}
	text, err := os.ReadFile(nodesTable)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(folders); i += nodesStep {
		name := filepath.Base(folders[i])
		err := runNode(t.Context(), folders[i])
		row := rowOf(name, err)
		if stored := strings.Contains(string(text), "| `"+name+"` |"); stored != (err != nil) || err != nil && !strings.Contains(string(text), row) {
			t.Errorf("%s: %v, which is not what the table has: run with -update", name, err)
		}
	}
}

// runNode runs a case, with i32 in place of i64 where numbers fit, and compares the results.
func runNode(ctx context.Context, folder string) error {
	c, err := onnxcase.Load(folder)
	if err != nil {
		return err
	}
	m, fixed, err := c.Import(true)
	if err != nil {
		return err
	}
	weights, err := onnxcase.Weights(m)
	if err != nil {
		return err
	}
	results, err := c.Run(ctx, webgpu.Backend(), m.Graph, weights, fixed)
	if err != nil {
		return err
	}
	return c.Check(results, true)
}

// rowOf is the row of a case that fails.
func rowOf(name string, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("| `%s` | %s |\n", name, onnxcase.Reason(err))
}

// writeNodes runs all cases and writes the table.
func writeNodes(t *testing.T, folders []string) {
	pass, rows := 0, ""
	for _, folder := range folders {
		err := runNode(t.Context(), folder)
		if err == nil {
			pass++
		}
		rows += rowOf(filepath.Base(folder), err)
	}
	text := fmt.Sprintf(`<!-- Written by go test ./webgpu -run Nodes -update. DO NOT EDIT. -->

# The node tests of onnx %s on WebGPU

%d of %d pass on WebGPU (wgpu on a software device), %.1f %%, imported with Options.Narrow: i32 stands for i64 where numbers fit. Inputs that
decide about shapes are fixed at import. These fail:

| case | reason |
|---|---|
%s`, onnxcase.Version, pass, len(folders), 100*float64(pass)/float64(len(folders)), rows)
	if err := os.WriteFile(nodesTable, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
