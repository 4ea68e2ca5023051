package importer_test

import (
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
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
)

// asked is a model for js/test/rig/onnx-graphs.mjs, value of one of its inputs, and made what it answers.
type (
	asked struct {
		File    string           `json:"file"`
		Symbols map[string]int   `json:"symbols"`
		Values  map[string]value `json:"values"`
		Inputs  map[string]value `json:"inputs,omitempty"`
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
		Outputs map[string]value  `json:"outputs"`
	}
)

// TestPageImportsTheSame has openONNX import the node tests of the onnx package and models of other projects, which `make
// test-onnx` writes to folders: their graphs are those of package onnx, to the letter, and their weights to the bit. What one
// refuses, the other does.
func TestPageImportsTheSame(t *testing.T) {
	folders := append(foldersOf(t, "RLX_ONNX", os.Getenv("RLX_ONNX_CASES")), foldersOf(t, "RLX_ONNX_MODELS", "")...)
	asks, wanted := make([]asked, len(folders)), make([]made, len(folders))
	for i, folder := range folders {
		asks[i], wanted[i] = caseOf(t, folder)
	}
	same, refused := 0, 0
	for i, got := range answers(t, asks) {
		switch name, want := filepath.Base(folders[i]), wanted[i]; {
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

// TestPageRunsModels has openONNX run the models of other projects on the CPU, without any options: the results are those of
// onnxruntime.
func TestPageRunsModels(t *testing.T) {
	var cases []*onnxcase.Case
	var asks []asked
	for _, folder := range foldersOf(t, "RLX_ONNX_MODELS", "") {
		c, err := onnxcase.Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		ask := asked{File: filepath.Join(folder, "model.onnx"), Inputs: map[string]value{}}
		for i, name := range c.Names {
			a := c.In[i]
			if a.DType == ir.I64 {
				a = ir.Ints(ir.I32, a.I, a.Dims...)
			}
			ask.Inputs[name] = valueOf(a)
		}
		cases, asks = append(cases, c), append(asks, ask)
	}
	for i, got := range answers(t, asks) {
		results := map[string]native.Tensor{}
		for name, v := range got.Outputs {
			d, err := dtype.Parse(v.DType)
			if err != nil {
				t.Fatal(err)
			}
			data, err := base64.StdEncoding.DecodeString(v.Data)
			if err != nil {
				t.Fatal(err)
			}
			results[name] = native.Tensor{DType: d, Dims: v.Shape, Data: data}
		}
		if got.Kind != "" {
			t.Errorf("%s: %s", cases[i].Name, got.Message)
		} else if err := cases[i].Check(results, true); err != nil {
			t.Errorf("%s: %v", cases[i].Name, err)
		}
	}
}

// foldersOf returns the folders of an environment variable whose names begin with a prefix.
func foldersOf(t *testing.T, variable, prefix string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv(variable), prefix+"*"))
	if err == nil && (len(found) == 0 || os.Getenv(variable) == "") {
		err = errors.New("$" + variable + " names no folder: make test-onnx does")
	}
	backendtest.Require(t, "onnx", err)
	return found
}

// answers asks Node.
func answers(t *testing.T, asks []asked) []made {
	t.Helper()
	var input bytes.Buffer
	for _, ask := range asks {
		if err := json.NewEncoder(&input).Encode(ask); err != nil {
			t.Fatal(err)
		}
	}
	node := exec.Command("node", "../../../js/test/rig/onnx-graphs.mjs")
	node.Stdin, node.Stderr = &input, os.Stderr
	out, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines, list := json.NewDecoder(bytes.NewReader(out)), make([]made, len(asks))
	for i := range list {
		if err := lines.Decode(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func valueOf(a *ir.Array) value {
	return value{a.DType.String(), append([]int{}, a.Dims...), base64.StdEncoding.EncodeToString(a.Bytes())}
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
		ask.Values[name] = valueOf(a)
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
