package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/format/npz"
	"github.com/rlx-go/rlx/native/safetensors"
)

// sentencePiece gives the tokenizer in a folder spaces as SentencePiece has them, and returns the folder.
func sentencePiece(t *testing.T, folder string) string {
	t.Helper()
	name := filepath.Join(folder, "tokenizer.json")
	words, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	marks := `{"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},` + string(words[1:])
	if err := os.WriteFile(name, []byte(marks), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestConvertLanguageModel packs a model, measures the loss, and writes it back as a folder.
func TestConvertLanguageModel(t *testing.T) {
	folder, dir := sentencePiece(t, languageModel(t)), t.TempDir()
	text := filepath.Join(dir, "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("ABCabcXYZxyz", 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(dir, "packed.gguf")
	code, out, errs := call(t, "", "convert", folder, packed, "-check", text, "-context", "60", "-device", "cpu")
	if _, err := os.Stat(packed); code != exitError || !strings.Contains(errs, "tokens") || !os.IsNotExist(err) {
		t.Errorf("with too short a text: %d %q %q, %v", code, out, errs, err)
	}
	code, out, errs = call(t, "", "convert", folder, packed, "-quantize", "q8_0", "-check", text, "-context", "16", "-device", "cpu")
	rows := regexp.MustCompile(`(?m)^\S+ +[0-9.]+ \S+ +([0-9.]+) +[0-9.]+$`).FindAllStringSubmatch(out, -1)
	if code != 0 || len(rows) != 2 || rows[0][1][:2] != rows[1][1][:2] {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	code, out, errs = call(t, "", "perplexity", packed, text, "-context", "16", "-device", "cpu")
	if code != 0 || !strings.Contains(out, "perplexity: "+rows[1][1]) {
		t.Errorf("%d %q %q, want %s", code, out, errs, rows[1][1])
	}
	if code, _, errs = call(t, "", "convert", folder, packed); code != exitError || !strings.Contains(errs, "exist") {
		t.Errorf("over a file: %d %q", code, errs)
	}
	back := filepath.Join(dir, "back")
	if code, _, errs = call(t, "", "convert", packed, back, "-dtype", "f16"); code != 0 {
		t.Fatalf("%d %q", code, errs)
	}
	want, got := "", ""
	for i, model := range []string{packed, back} {
		code, text, errs := call(t, "", "generate", model, "-device", "cpu", "-prompt", "ABCDEFG", "-max", "4")
		if code != 0 {
			t.Fatalf("%s: %d %q", model, code, errs)
		}
		if i == 0 {
			want = text
		}
		got = text
	}
	if got != want {
		t.Errorf("the folder writes %q, the file %q", got, want)
	}
}

// wideModel is languageModel with one layer of random weights, whose rows are whole blocks of 256.
func wideModel(t *testing.T) string {
	t.Helper()
	const width, layer = 256, "model.layers.0."
	dir, state := languageModel(t), uint32(1)
	tensors := rlx.Inputs{}
	add := func(name string, dims ...int) {
		x := make([]float32, dims[0]*max(1, dims[len(dims)-1]*(len(dims)-1)))
		for i := range x {
			state = state*1664525 + 1013904223
			if x[i] = 1; len(dims) > 1 {
				x[i] = (float32(state>>8)/(1<<24) - 0.5) / 4
			}
		}
		tensors[name] = rlx.Float32s(x, dims...)
	}
	add("model.embed_tokens.weight", 64, width)
	add("lm_head.weight", 64, width)
	add("model.norm.weight", width)
	add(layer+"input_layernorm.weight", width)
	add(layer+"post_attention_layernorm.weight", width)
	for _, name := range []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"} {
		add(layer+name+".weight", width, width)
	}
	config := `{"model_type": "llama", "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4,
		"vocab_size": 64, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000, "tie_word_embeddings": false}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), tensors, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestConvertPrintsErrors holds the errors of each matrix that -check prints to those of the matrices in both files.
func TestConvertPrintsErrors(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("ABCabcXYZxyz", 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	for quantize, folder := range map[string]string{"q4_0": languageModel(t), "q4_k": wideModel(t)} {
		to := filepath.Join(t.TempDir(), "packed.gguf")
		code, out, errs := call(t, "", "convert", sentencePiece(t, folder), to, "-quantize", quantize, "-check", text, "-context", "16", "-device", "cpu")
		if code != 0 {
			t.Fatalf("%s: %d %q", quantize, code, errs)
		}
		was, _, err := safetensors.ReadFile(filepath.Join(folder, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		file, err := gguf.Open(to)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for name, from := range map[string]string{"blk.0.ffn_down.weight": "model.layers.0.mlp.down_proj.weight", "token_embd.weight": "model.embed_tokens.weight"} {
			before, err := was[from].Float32s()
			if err != nil {
				t.Fatal(err)
			}
			after, err := file.Floats(name)
			if err != nil {
				t.Fatal(err)
			}
			var of, squares, most float64
			for i, x := range before {
				d := math.Abs(float64(after[i] - x))
				of, squares, most = of+float64(x)*float64(x), squares+d*d, max(most, d)
			}
			n := float64(len(before))
			want := regexp.MustCompile(fmt.Sprintf(`(?m)^%s +%s +%.4g +%.4g +%.4g$`, regexp.QuoteMeta(name), quantize, math.Sqrt(of/n), math.Sqrt(squares/n), most))
			if most == 0 || !want.MatchString(out) {
				t.Errorf("no row %v in\n%s", want, out)
			}
		}
		if strings.Contains(out, "norm.weight") {
			t.Errorf("a vector has an error:\n%s", out)
		}
		if rows := regexp.MustCompile(`(?m)^\S+ +[0-9.]+ \S+ +[0-9.]+ +[0-9.]+$`).FindAllString(out, -1); len(rows) != 2 {
			t.Errorf("the perplexities:\n%s", out)
		}
	}
}

// TestConvertTensors writes weights as arrays and back.
func TestConvertTensors(t *testing.T) {
	dir := t.TempDir()
	first, arrays, last := filepath.Join(dir, "a.safetensors"), filepath.Join(dir, "a.npz"), filepath.Join(dir, "b.safetensors")
	want := rlx.Inputs{"w": rlx.Float32s([]float32{1, 2, 3, 4}, 2, 2), "n": rlx.Int32s([]int32{7})}
	if err := safetensors.WriteFile(first, want, nil); err != nil {
		t.Fatal(err)
	}
	for _, files := range [][]string{{first, arrays}, {arrays, last}} {
		if code, _, errs := call(t, "", "convert", files[0], files[1]); code != 0 {
			t.Fatalf("%v: %d %q", files, code, errs)
		}
	}
	a, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(last); err != nil || string(a) != string(b) {
		t.Errorf("the tensors changed: %v", err)
	}
}

// TestConvertGraphs writes an ONNX model as text with its weights, that as ONNX again, and a plan: they compute
// the same.
func TestConvertGraphs(t *testing.T) {
	dir := t.TempDir()
	text, weights, model := filepath.Join(dir, "m.txt"), filepath.Join(dir, "m.safetensors"), filepath.Join(dir, "m.onnx")
	tiny := filepath.Join("testdata", "tiny.onnx")
	if code, out, errs := call(t, "", "convert", tiny, text, "-size", "batch=1"); code != 0 || strings.Count(out, "\n") != 2 {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	if code, _, errs := call(t, "", "convert", text, model, "-weights", weights); code != 0 {
		t.Fatalf("%d %q", code, errs)
	}
	if code, _, errs := call(t, "", "convert", text, filepath.Join(dir, "m.rlxp")); code != 0 {
		t.Fatalf("%d %q", code, errs)
	}
	run := func(file string, more ...string) string {
		code, out, errs := call(t, "", append([]string{"run", file, "-device", "cpu", "-in", "x=[[2,4]]"}, more...)...)
		if code != 0 {
			t.Fatalf("%s: %d %q", file, code, errs)
		}
		return out[strings.LastIndex(out, "y"):]
	}
	if want, got := run(tiny, "-size", "batch=1"), run(model); got != want {
		t.Errorf("%q, not %q", got, want)
	}
	two := filepath.Join(dir, "two.onnx")
	code, out, errs := call(t, "", "convert", filepath.Join("testdata", "scale.txt"), two)
	if code != 0 || !strings.Contains(out, "two-") {
		t.Errorf("several entries: %d %q %q", code, out, errs)
	}
}

// TestConvertInt8 rounds a network by rows of its input. It moves the results no further than onnxruntime's own static
// quantisation does, which testdata/int8.py prints; written as ONNX and as text it computes the same.
func TestConvertInt8(t *testing.T) {
	const byRuntime, size = 0.1032486, 9.013917
	dir := t.TempDir()
	from, rows := filepath.Join("testdata", "int8.onnx"), filepath.Join("testdata", "int8.npz")
	var moved []float64
	for _, name := range []string{"a.onnx", "a.txt"} {
		code, out, errs := call(t, "", "convert", from, filepath.Join(dir, name), "-calibrate", rows, "-device", "cpu")
		row := regexp.MustCompile(`(?m)^y +([0-9.]+) +([0-9.]+) .*% +\S+ +(\S+) +([0-9.]+)$`).FindStringSubmatch(out)
		if code != 0 || row == nil || !strings.Contains(out, "4 weights in int8, 3 as they are") {
			t.Fatalf("%d %q %q", code, out, errs)
		}
		var numbers []float64
		for _, text := range row[1:] {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, x)
		}
		if !(math.Abs(numbers[0]-size) <= 1e-3) || numbers[1] > byRuntime || numbers[1] < byRuntime/2 || numbers[2] > 1e-5 || numbers[3] != numbers[1] {
			t.Errorf("%s: %v", name, numbers)
		}
		moved = append(moved, numbers[1])
	}
	if moved[0] != moved[1] {
		t.Errorf("moved by %v", moved)
	}
	x := rlx.Inputs{"x": rlx.Float32s(slices.Repeat([]float32{1, -0.5, 0.25}, 64)[:128], 2, 1, 8, 8)}
	if err := safetensors.WriteFile(filepath.Join(dir, "x.safetensors"), x, nil); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		code, out, errs := call(t, "", append([]string{"run", "-device", "cpu", "-in", filepath.Join(dir, "x.safetensors")}, args...)...)
		if code != 0 {
			t.Fatalf("%d %q", code, errs)
		}
		return out[strings.Index(out, "\n"):]
	}
	first, second := run(filepath.Join(dir, "a.onnx")), run(filepath.Join(dir, "a.txt"), "-weights", filepath.Join(dir, "a.safetensors"))
	if first != second {
		t.Errorf("%q and %q", first, second)
	}
}

// TestConvertDecoder writes a language model as an ONNX model, as text and as a plan. The first two have transformers' logits.
func TestConvertDecoder(t *testing.T) {
	dir, folder := t.TempDir(), filepath.Join("..", "lm", "testdata", "llama")
	expected, _, err := safetensors.ReadFile(filepath.Join(folder, "expected.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := expected["logits"].Float32s()
	if err != nil {
		t.Fatal(err)
	}
	prompt := expected["prompt"]
	prompt.Dims = []int{1, prompt.Len()}
	in, out := filepath.Join(dir, "in.safetensors"), filepath.Join(dir, "out.safetensors")
	if err := safetensors.WriteFile(in, map[string]rlx.Tensor{"tokens": fitted(prompt, ir.I32)}, nil); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{filepath.Join(folder, "model.gguf"): "a.onnx", folder: "a.txt"} {
		to = filepath.Join(dir, to)
		if code, _, errs := call(t, "", "convert", from, to); code != 0 {
			t.Fatalf("%s: %d %q", to, code, errs)
		}
		args := []string{"run", to, "-device", "cpu", "-in", in, "-out", out}
		if filepath.Ext(to) == ".txt" {
			args = append(args, "-weights", filepath.Join(dir, "a.safetensors"))
		}
		if code, _, errs := call(t, "", args...); code != 0 {
			t.Fatalf("%s: %d %q", to, code, errs)
		}
		results, _, err := safetensors.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		got, err := results["logits"].Float32s()
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: %d logits: %v", to, len(got), err)
		}
		for i, x := range got {
			if !(math.Abs(float64(x-want[i])) <= 1e-4) {
				t.Fatalf("%s: logit %d is %v, not %v", to, i, x, want[i])
			}
		}
	}
	code, text, errs := call(t, "", "convert", folder, filepath.Join(dir, "b.rlxp"), "-size", "batch=1,time=4")
	if code != 0 || !strings.Contains(text, "b.safetensors") || !strings.Contains(text, "b.rlxp") {
		t.Errorf("%d %q %q", code, text, errs)
	}
}

// TestConvertRefuses gives conversions that are none.
func TestConvertRefuses(t *testing.T) {
	dir := t.TempDir()
	tiny := filepath.Join("testdata", "tiny.onnx")
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"a"}, exitUsage, "two must be given"},
		{[]string{tiny, "a.npz"}, exitUsage, "no conversion"},
		{[]string{tiny, "a.gguf"}, exitUsage, "does not say which language model"},
		{[]string{tiny, "a.rlxp", "-dtype", "f16"}, exitUsage, "for language models"},
		{[]string{filepath.Join("..", "lm", "testdata", "llama"), "a.txt", "-dtype", "i8"}, exitUsage, "-dtype i8"},
		{[]string{tiny, "a.txt", "-quantize", "q4_0"}, exitUsage, "for language models"},
		{[]string{dir, "a.gguf", "-quantize", "q9"}, exitUsage, "-quantize q9"},
		{[]string{dir, filepath.Join(dir, "b"), "-quantize", "q8_0"}, exitUsage, "-quantize"},
		{[]string{dir, "a.gguf", "-dtype", "f16"}, exitUsage, "-dtype"},
		{[]string{dir, filepath.Join(dir, "a.gguf")}, exitError, "config.json"},
		{[]string{dir, "a.gguf", "-calibrate", "a.npz"}, exitUsage, "-quantize packs"},
		{[]string{filepath.Join("testdata", "scale.txt"), "a.txt", "-calibrate", "a.npz"}, exitUsage, "for models of one"},
		{[]string{tiny, "a.txt", "-calibrate", filepath.Join("testdata", "int8.npz")}, exitError, `it must be rows of [batch,2]`},
		{[]string{filepath.Join(dir, "a.npz"), filepath.Join(dir, "a.safetensors")}, exitError, "a.npz"},
	} {
		code, _, errs := call(t, "", append([]string{"convert"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.text) {
			t.Errorf("%v: %d %q, want %d and %q", c.args, code, errs, c.code, c.text)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("what failed left %v, %v", entries, err)
	}
}

// A decoder with tokens as int64 is compiled for WebGPU, which has no i64, with open sizes.
func TestPlanOfONNXForWebGPU(t *testing.T) {
	file, err := npz.Open(filepath.Join("..", "..", "ir", "format", "onnx", "testdata", "decoder.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	model, err := file.Array("decoder/model")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	from, to := filepath.Join(dir, "decoder.onnx"), filepath.Join(dir, "decoder.rlxp")
	if err := os.WriteFile(from, model.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := call(t, "", "plan", from, "-target", "webgpu", "-size", "batch_size=1,sequence_length=1", "-buckets", "past_sequence_length=8,16,total_sequence_length=16", "-o", to)
	if code != 0 || !strings.Contains(out, "2 combinations of sizes") {
		t.Errorf("exit status %d: %s%s", code, out, stderr)
	}
}
