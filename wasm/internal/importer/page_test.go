package importer_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx/internal/onnxcase"
	"github.com/rlx-go/rlx/native/backendtest"
)

// asked is a model for js/test/rig/onnx-graphs.mjs, value of one of its inputs, and made what it answers.
type (
	asked struct {
		File    string           `json:"file"`
		Symbols map[string]int   `json:"symbols"`
		Values  map[string]value `json:"values"`
	}
	value struct {
		DType string `json:"dtype"`
		Shape []int  `json:"shape"`
		Data  string `json:"data"`
	}
	made struct {
		Text    string            `json:"text"`
		Weights map[string]string `json:"weights"`
		Kind    string            `json:"kind"`
		Message string            `json:"message"`
	}
)

// TestPageImportsTheSame has openONNX import the node tests of the onnx package and models of other projects, which `make
// test-onnx` writes to folders: their graphs are those of package onnx, to the letter, and their weights to the bit. What one
// refuses, the other does.
func TestPageImportsTheSame(t *testing.T) {
	var folders []string
	for root, prefix := range map[string]string{"RLX_ONNX": os.Getenv("RLX_ONNX_CASES"), "RLX_ONNX_MODELS": ""} {
		found, err := filepath.Glob(filepath.Join(os.Getenv(root), prefix+"*"))
		if err == nil && (len(found) == 0 || os.Getenv(root) == "") {
			err = errors.New("$" + root + " names no folder: make test-onnx does")
		}
		backendtest.Require(t, "onnx", err)
		folders = append(folders, found...)
	}
	var input bytes.Buffer
	wanted := make([]made, len(folders))
	for i, folder := range folders {
		ask, want := caseOf(t, folder)
		if err := json.NewEncoder(&input).Encode(ask); err != nil {
			t.Fatal(err)
		}
		wanted[i] = want
	}
	node := exec.Command("node", "../../../js/test/rig/onnx-graphs.mjs")
	node.Stdin, node.Stderr = &input, os.Stderr
	out, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines, same, refused := json.NewDecoder(bufio.NewReader(bytes.NewReader(out))), 0, 0
	for i, want := range wanted {
		var got made
		if err := lines.Decode(&got); err != nil {
			t.Fatal(err)
		}
		switch name := filepath.Base(folders[i]); {
		case (got.Kind != "") != (want.Kind != ""):
			t.Errorf("%s: the page has %s, Go %q", name, got.Message, want.Kind)
		case want.Kind != "":
			refused++
		case got.Text != want.Text:
			t.Errorf("%s: the page imports\n%s\nGo\n%s", name, got.Text, want.Text)
		case !maps.Equal(got.Weights, want.Weights):
			t.Errorf("%s: the weights are %v, not %v", name, got.Weights, want.Weights)
		default:
			same++
		}
	}
	t.Logf("%d models are imported alike, %d refused by both", same, refused)
	if same < len(folders)*9/10 {
		t.Errorf("%d of %d models are imported", same, len(folders))
	}
}

// caseOf returns the question about the model of a folder, and what package onnx makes of it.
func caseOf(t *testing.T, folder string) (asked, made) {
	t.Helper()
	c, err := onnxcase.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	ask := asked{File: filepath.Join(folder, "model.onnx"), Symbols: map[string]int{}, Values: map[string]value{}}
	maps.Copy(ask.Symbols, c.Sizes())
	m, fixed, err := c.Import(true)
	for name, a := range fixed {
		ask.Values[name] = value{a.DType.String(), append([]int{}, a.Dims...), base64.StdEncoding.EncodeToString(a.Bytes())}
	}
	if err != nil {
		return ask, made{Kind: err.Error()}
	}
	want := made{Text: m.Graph.String(), Weights: map[string]string{}}
	for _, w := range m.Weights {
		data, err := w.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		want.Weights[w.Name] = hex.EncodeToString(sum[:])
	}
	return ask, want
}
