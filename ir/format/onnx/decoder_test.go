package onnx_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/npz"
	"github.com/rlx-go/rlx/ir/format/onnx"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// decoderSteps is the number of steps in testdata/decoder.npz, which suite/decoder.py writes: a prompt, tokens, and
// several tokens at once.
const decoderSteps = 5

// importedDecoder returns the file and the model of testdata/decoder.npz.
func importedDecoder(t *testing.T, o onnx.Options) (*npz.File, *onnx.Import) {
	t.Helper()
	file, err := npz.Open("testdata/decoder.npz")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	m, err := onnx.Decode(storedModel(t, file, "decoder"))
	if err != nil {
		t.Fatal(err)
	}
	i, err := m.Import(o)
	if err != nil {
		t.Fatal(err)
	}
	return file, i
}

// TestDecoderWithItsCache runs a decoder in the layout of onnxruntime-genai, whose sizes stay open, step after step with
// the cache of the step before, on the CPU. Logits and caches are those of ONNX Runtime, also with i32 in place of i64.
func TestDecoderWithItsCache(t *testing.T) {
	t.Run("i64", func(t *testing.T) { decodeSteps(t, ir.I64, onnx.Options{Frozen: true}) })
	t.Run("i32", func(t *testing.T) { decodeSteps(t, ir.I32, onnx.Options{Frozen: true, Narrow: true}) })
}

// decodeSteps runs the decoder with tokens of a type.
func decodeSteps(t *testing.T, d ir.DType, o onnx.Options) {
	t.Helper()
	file, i := importedDecoder(t, o)
	if d == ir.I32 && longs(i.Graph) > 0 {
		t.Errorf("i64 is left:\n%s", i.Graph)
	}
	ctx := t.Context()
	module, err := ir.NewModule("decoder", ir.Entry{Name: "step", Graph: i.Graph})
	if err != nil {
		t.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	p, err := session.Compile(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(ctx)
	for name, a := range weightsOf(t, i) {
		if err := p.Set(ctx, name, native.FromArray(a)); err != nil {
			t.Fatal(err)
		}
	}
	cache, length := rlx.Inputs{}, 0
	for _, o := range i.Graph.Outputs() {
		if past, ok := strings.CutPrefix(o.Name, "present."); ok {
			cache["past_key_values."+past] = rlx.Float32s(nil, 1, 2, 0, 16)
		}
	}
	for step := range decoderSteps {
		in := maps.Clone(cache)
		tokens := storedArray(t, file, fmt.Sprintf("decoder/in/%d/input_ids", step))
		length += tokens.Len()
		in["input_ids"] = native.FromArray(ir.Ints(d, tokens.I, tokens.Dims...))
		in["attention_mask"] = native.FromArray(ir.Ints(d, slices.Repeat([]int64{1}, length), 1, length))
		out, err := p.Call(ctx, "step", in)
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range out {
			if past, ok := strings.CutPrefix(name, "present."); ok {
				cache["past_key_values."+past] = x
			}
			if name == "logits" || step == decoderSteps-1 {
				equalStored(t, file, fmt.Sprintf("decoder/out/%d/%s", step, name), x)
			}
		}
	}
}

// equalStored compares a result with a stored one.
func equalStored(t *testing.T, file *npz.File, name string, x rlx.Tensor) {
	t.Helper()
	want := storedArray(t, file, name)
	got, err := x.Array()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Dims, want.Dims) {
		t.Fatalf("%s has shape %v, not %v", name, got.Dims, want.Dims)
	}
	for i := range want.Len() {
		if d := math.Abs(got.Float(i) - want.Float(i)); !(d <= 1e-4) {
			t.Fatalf("%s: element %d is %v, not %v", name, i, got.Float(i), want.Float(i))
		}
	}
}

// TestPackedWeightsStayPacked asserts which weights quantized_matmul reads as blocks of GGUF files: those with scales
// in f16, and all if the caller has scales rounded.
func TestPackedWeightsStayPacked(t *testing.T) {
	for _, test := range []struct {
		o       onnx.Options
		packed  int
		rounded int
	}{{onnx.Options{}, 9, 0}, {onnx.Options{RoundScales: true}, 11, 0}, {onnx.Options{RoundScales: true, ActivationBits: 8}, 11, 11}} {
		_, i := importedDecoder(t, test.o)
		packed, rounded := 0, 0
		for _, n := range i.Graph.Nodes() {
			if n.Op() == ops.OpQuantizedMatMul {
				packed++
				if n.Attrs().(*ops.PackedProductAttrs).ActivationBits == 8 {
					rounded++
				}
			}
		}
		if packed != test.packed || rounded != test.rounded {
			t.Errorf("%+v: %d products with packed weights, %d of them rounded; want %d and %d", test.o, packed, rounded, test.packed, test.rounded)
		}
		size := 0
		for _, a := range weightsOf(t, i) {
			size += len(a.Bytes())
		}
		if size > 64<<10 {
			t.Errorf("%+v: the weights take %d bytes", test.o, size)
		}
	}
}
