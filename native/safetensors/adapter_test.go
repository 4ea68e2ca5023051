package safetensors_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/safetensors"
)

// storedAdapter was written by PEFT: see testdata/adapter.py.
const storedAdapter = "testdata/adapter"

// layersOf maps the layers of the model in PyTorch to those of [adapted].
var layersOf = []safetensors.Rename{{From: "body/up", To: "linear0"}, {From: "body/down", To: "linear1"}}

// inPyTorch is the inverse.
var inPyTorch = []safetensors.Rename{{From: "linear0", To: "body/up"}, {From: "linear1", To: "body/down"}}

func adapted(t *testing.T, o nn.LoRAOptions) *ir.Graph {
	t.Helper()
	g, err := ir.Build("adapted", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2, 3)...)
		nn.LoRA(b, o, func() { b.Output("y", nn.Linear(b, ops.Relu(b, nn.Linear(b, x, 5)), 4)) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// network returns the graph of [adapted] without an adapter.
func network(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("network", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2, 3)...)
		b.Output("y", nn.Linear(b, ops.Relu(b, nn.Linear(b, x, 5)), 4))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// turned returns the transpose of a matrix.
func turned(w native.Tensor) native.Tensor {
	out := native.Zeros(ir.F32, w.Dims[1], w.Dims[0])
	for i := range w.Len() {
		to := i%w.Dims[1]*w.Dims[0] + i/w.Dims[1]
		copy(out.Data[4*to:4*to+4], w.Data[4*i:])
	}
	return out
}

// checkResults compares the results of a graph with stored ones.
func checkResults(t *testing.T, g *ir.Graph, want native.Tensor, values ...map[string]native.Tensor) {
	t.Helper()
	in := map[string]*ir.Array{}
	for _, tensors := range values {
		for name, x := range tensors {
			array, err := x.Array()
			if err != nil {
				t.Fatal(err)
			}
			in[name] = array
		}
	}
	out, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	y, err := want.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range y {
		if got := out[0].F[i]; !(math.Abs(got-float64(w)) <= 1e-5) {
			t.Errorf("y[%d] = %v, want %v", i, got, w)
		}
	}
}

// TestReadAdapterOfPEFT compares the results with the adapter, beside the weights and merged with them, with those of PyTorch.
func TestReadAdapterOfPEFT(t *testing.T) {
	a, err := safetensors.ReadAdapter(storedAdapter, layersOf...)
	if err != nil {
		t.Fatal(err)
	}
	expected := mustRead(t, filepath.Join(storedAdapter, "expected.safetensors"))
	x, weights := map[string]native.Tensor{"x": expected["x"]}, map[string]native.Tensor{}
	for _, r := range layersOf {
		from := strings.ReplaceAll(r.From, "/", ".")
		weights[r.To+"/bias"], weights[r.To+"/weight"] = expected[from+".bias"], turned(expected[from+".weight"])
	}
	checkResults(t, adapted(t, nn.LoRAOptions{Rank: a.Rank, Alpha: a.Alpha, Dropout: a.Dropout}), expected["after"], x, weights, a.Tensors)
	checkResults(t, network(t), expected["before"], x, weights)
	maps.Copy(weights, a.Tensors) // as of a training; those of the adapter are left out
	for _, outIn := range []func(name string) bool{nil, func(name string) bool { return name == "linear1/weight" }} {
		if outIn != nil {
			weights["linear1/weight"] = turned(weights["linear1/weight"])
		}
		merged, err := a.Merge(weights, outIn)
		if err != nil || len(merged) != 4 {
			t.Fatalf("merged are %v: %v", slices.Sorted(maps.Keys(merged)), err)
		}
		if outIn != nil {
			merged["linear1/weight"] = turned(merged["linear1/weight"])
		}
		checkResults(t, network(t), expected["after"], x, merged)
	}
}

func TestMergeRefuses(t *testing.T) {
	pair := map[string]native.Tensor{"a/lora_A/weight": native.Zeros(ir.F32, 3, 2), "a/lora_B/weight": native.Zeros(ir.F32, 2, 4)}
	for _, c := range []struct {
		adapter safetensors.Adapter
		weight  native.Tensor
		kind    error
	}{
		{safetensors.Adapter{}, native.Zeros(ir.F32, 3, 4), ir.ErrName},
		{safetensors.Adapter{Tensors: pair, Rank: 3}, native.Zeros(ir.F32, 3, 4), ir.ErrShape},
		{safetensors.Adapter{Tensors: pair}, native.Zeros(ir.F32, 4, 3), ir.ErrShape},
		{safetensors.Adapter{Tensors: pair}, native.Zeros(ir.I32, 3, 4), ir.ErrDType},
		{safetensors.Adapter{Tensors: pair}, native.Tensor{DType: ir.F32, Dims: []int{3, 4}}, ir.ErrShape},
	} {
		if _, err := c.adapter.Merge(map[string]native.Tensor{"a/weight": c.weight}, nil); !errors.Is(err, c.kind) {
			t.Errorf("%v of rank %d: %v, want %v", c.weight, c.adapter.Rank, err, c.kind)
		}
	}
	if _, err := (safetensors.Adapter{Tensors: pair}).Merge(nil, nil); !errors.Is(err, ir.ErrName) {
		t.Errorf("no weight: %v", err)
	}
}

// TestWriteAdapterAsPEFT writes the stored adapter again: the tensors and what both configurations have are the same.
func TestWriteAdapterAsPEFT(t *testing.T) {
	a, err := safetensors.ReadAdapter(storedAdapter, layersOf...)
	if err != nil {
		t.Fatal(err)
	}
	a.Rank = 0                                                      // that of the matrices
	a.Tensors["linear0/bias"] = native.Float32s([]float32{1, 2, 3}) // is left out
	folder := filepath.Join(t.TempDir(), "new")
	if err := safetensors.WriteAdapter(folder, a, inPyTorch...); err != nil {
		t.Fatal(err)
	}
	const weights, config = "adapter_model.safetensors", "adapter_config.json"
	got, want := mustRead(t, filepath.Join(folder, weights)), mustRead(t, filepath.Join(storedAdapter, weights))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("tensors %v, want %v", got, want)
	}
	var mine, theirs map[string]any
	for name, to := range map[string]*map[string]any{filepath.Join(folder, config): &mine, filepath.Join(storedAdapter, config): &theirs} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	theirs["target_modules"] = []any{"down", "up"} // PEFT's order is that of a set
	theirs["base_model_name_or_path"] = ""         // null, of a model without a name
	for key, value := range mine {
		if !reflect.DeepEqual(value, theirs[key]) {
			t.Errorf("%s is %v, want %v", key, value, theirs[key])
		}
	}
	if again, err := safetensors.ReadAdapter(folder, layersOf...); err != nil || again.Alpha != 6 || again.Rank != 2 {
		t.Errorf("read back: rank %d, alpha %v, %v", again.Rank, again.Alpha, err)
	}
}

func TestWriteAdapterRefuses(t *testing.T) {
	down, up := native.Zeros(ir.F32, 3, 2), native.Zeros(ir.F32, 2, 4)
	for _, c := range []struct {
		tensors map[string]native.Tensor
		renames []safetensors.Rename
		kind    error
		message string
	}{
		{map[string]native.Tensor{"w": up}, nil, ir.ErrName, `no tensor has a name that ends in ["/lora_A/weight"`},
		{map[string]native.Tensor{"a/lora_A/weight": down}, nil, ir.ErrName, `lacks its partner "a/lora_B/weight"`},
		{map[string]native.Tensor{"a/lora_A/weight": down, "a/lora_B/weight": down}, nil, ir.ErrShape, "has rank 3; it must be 2"},
		{map[string]native.Tensor{"a/lora_A/weight": native.Zeros(ir.F32, 3)}, nil, ir.ErrShape, "f32[3]; it must be a matrix"},
		{map[string]native.Tensor{"a/lora_A/weight": {DType: ir.F32, Dims: []int{2, 2}}}, nil, ir.ErrShape, `tensor "a/lora_A/weight"`},
		{
			map[string]native.Tensor{"a/lora_A/weight": down, "a/lora_B/weight": up, "b/lora_A/weight": down, "b/lora_B/weight": up},
			[]safetensors.Rename{{From: "b", To: "a"}},
			ir.ErrName, `the second is "b/lora_A/weight"`,
		},
	} {
		err := safetensors.WriteAdapter(t.TempDir(), safetensors.Adapter{Tensors: c.tensors}, c.renames...)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%v: %v, want %v with %q", slices.Sorted(maps.Keys(c.tensors)), err, c.kind, c.message)
		}
	}
}

func TestReadAdapterRefuses(t *testing.T) {
	for text, kind := range map[string]error{
		`{`:                             safetensors.ErrDamaged,
		`{"peft_type": "LORA"}`:         safetensors.ErrDamaged,
		`{"peft_type": "LORA", "r": 4}`: ir.ErrShape, // the matrices have 2
		`{"peft_type": "IA3", "r": 2}`:  ir.ErrUnsupported,
		`{"peft_type": "LORA", "r": 2, "use_dora": true}`:            ir.ErrUnsupported,
		`{"peft_type": "LORA", "r": 2, "rank_pattern": {"up": 4}}`:   ir.ErrUnsupported,
		`{"peft_type": "LORA", "r": 2, "bias": "all"}`:               ir.ErrUnsupported,
		`{"peft_type": "LORA", "r": 2, "modules_to_save": ["head"]}`: ir.ErrUnsupported,
	} {
		folder := t.TempDir()
		data, err := os.ReadFile(filepath.Join(storedAdapter, "adapter_model.safetensors"))
		if err == nil {
			err = errors.Join(os.WriteFile(filepath.Join(folder, "adapter_model.safetensors"), data, 0o600), os.WriteFile(filepath.Join(folder, "adapter_config.json"), []byte(text), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := safetensors.ReadAdapter(folder); !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", text, err, kind)
		}
	}
	if _, err := safetensors.ReadAdapter(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := safetensors.ReadAdapter(storedAdapter, safetensors.Rename{From: "body/up", To: "body/down"}); !errors.Is(err, ir.ErrName) {
		t.Errorf("two layers of one name: %v", err)
	}
}

// The scale of rank-stabilised LoRA is alpha/√rank.
func TestReadAdapterOfAnotherScale(t *testing.T) {
	folder := t.TempDir()
	data, err := os.ReadFile(filepath.Join(storedAdapter, "adapter_model.safetensors"))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "adapter_model.safetensors"), data, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "adapter_config.json"), []byte(`{"peft_type": "LORA", "r": 2, "lora_alpha": 6, "use_rslora": true}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if a, err := safetensors.ReadAdapter(folder); err != nil || !(math.Abs(a.Alpha/2-6/math.Sqrt2) <= 1e-12) {
		t.Errorf("a scale of %v, %v; want %v", a.Alpha/2, err, 6/math.Sqrt2)
	}
}
