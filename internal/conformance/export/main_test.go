package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
	"github.com/rlx-go/rlx/ir/irtest/families"
)

// The models of networks and families are, byte by byte, those that onnxruntime computed the expected results
// of: check.py has written their hashes. After a change of what is exported, run it again.
func TestModelsAreThoseThatAgreed(t *testing.T) {
	text, err := os.ReadFile("accepted.txt")
	if err != nil {
		t.Fatal(err)
	}
	accepted := map[string]string{}
	for line := range strings.Lines(string(text)) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		accepted[name] = hash
	}
	graphs := map[string]*ir.Graph{}
	for _, n := range networks {
		if graphs[n.name], err = n.graph(); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range families.All {
		if graphs[f.Name], _, err = f.Loss(1); err != nil {
			t.Fatal(err)
		}
	}
	for name, g := range graphs {
		m, err := onnx.Export(g, onnx.ExportOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var file bytes.Buffer
		if err := m.Write(&file); err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(file.Bytes()); hex.EncodeToString(sum[:]) != accepted[name] {
			t.Errorf("%s: the model is not the one that onnxruntime computed", name)
		}
	}
}
