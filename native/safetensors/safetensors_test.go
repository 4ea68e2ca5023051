package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/safetensors"
)

func file(header string, body ...byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), body...)
}

func TestReadInvertsWrite(t *testing.T) {
	tensors := map[string]native.Tensor{
		"w":     native.Float32s([]float32{1, 2, 3, 4, 5, 6}, 2, 3),
		"step":  native.Int32(7),
		"mask":  native.Bools([]bool{true, false}),
		"empty": native.Zeros(ir.F64, 0, 4),
		"half":  {DType: ir.F16, Dims: []int{1}, Data: []byte{0, 0x3c}},
		"e4m3":  {DType: ir.F8E4M3, Dims: []int{3}, Data: []byte{0x38, 0x7e, 0xff}},
		"e5m2":  {DType: ir.F8E5M2, Dims: []int{1}, Data: []byte{0x7b}},
	}
	var buf bytes.Buffer
	if err := safetensors.Write(&buf, tensors, map[string]string{"model": "mlp"}); err != nil {
		t.Fatal(err)
	}
	got, metadata, err := safetensors.Read(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if metadata["model"] != "mlp" || len(got) != len(tensors) {
		t.Errorf("got %d tensors, metadata %v", len(got), metadata)
	}
	for name, want := range tensors {
		if g := got[name]; g.DType != want.DType || fmt.Sprint(g.Dims) != fmt.Sprint(want.Dims) || !bytes.Equal(g.Data, want.Data) {
			t.Errorf("%s: %v, want %v", name, g, want)
		}
	}
}

// The file was written by the Python package safetensors 0.5.3 with
// save_file({"a": numpy.arange(6, dtype="float32").reshape(2, 3),
// "b": numpy.array([1, -1], dtype="int64")}, ...).
func TestReadsAFileOfTheReferenceImplementation(t *testing.T) {
	got := mustRead(t, "testdata/python.safetensors")
	a, err := got["a"].Float32s()
	if want := []float32{0, 1, 2, 3, 4, 5}; err != nil || !reflect.DeepEqual(a, want) {
		t.Errorf("a = %v, %v", a, err)
	}
	b, err := got["b"].Int64s()
	if want := []int64{1, -1}; err != nil || !reflect.DeepEqual(b, want) {
		t.Errorf("b = %v, %v", b, err)
	}
}

func mustRead(t *testing.T, name string) map[string]native.Tensor {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := safetensors.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestFilesOfOtherFormats begins files as torch.save, its form before 1.6, and GGUF do.
func TestFilesOfOtherFormats(t *testing.T) {
	for begin, say := range map[string]string{
		"PK\x03\x04\x00\x00\x08\x08": "save_file(", "\x80\x02\x8a\nl\xfc\x9cF\xf9 ": "save_file(", "GGUF\x03\x00\x00\x00": "package gguf",
	} {
		name := filepath.Join(t.TempDir(), "model.pt")
		if err := os.WriteFile(name, []byte(begin), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := safetensors.ReadFile(name)
		if _, _, inMemory := safetensors.Decode([]byte(begin)); !errors.Is(err, safetensors.ErrDamaged) || !errors.Is(inMemory, safetensors.ErrDamaged) ||
			!strings.Contains(err.Error(), say) || !strings.Contains(inMemory.Error(), say) {
			t.Errorf("%q: %v, in memory %v; want %q", begin, err, inMemory, say)
		}
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty":               {},
		"short":               {1, 2, 3},
		"header beyond end":   file(`{}`)[:9],
		"huge header":         binary.LittleEndian.AppendUint64(nil, 1<<63),
		"no object":           file(`[]`),
		"broken JSON":         file(`{"a":`),
		"unknown type":        file(`{"a":{"dtype":"F7","shape":[1],"data_offsets":[0,4]}}`, 0, 0, 0, 0),
		"wrong size":          file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 0, 0, 0, 0),
		"negative dimension":  file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 0, 0, 0, 0),
		"overflow":            file(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`),
		"beyond the end":      file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 0, 0),
		"offsets reversed":    file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[4,0]}}`, 0, 0, 0, 0),
		"bytes left over":     file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 0, 0),
		"gap":                 file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 0, 0),
		"overlap":             file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 0, 0, 0),
		"name twice":          file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 0),
		"metadata not a text": file(`{"__metadata__":{"a":1}}`),
		"metadata twice":      file(`{"__metadata__":{},"__metadata__":{}}`),
		"metadata key twice":  file(`{"__metadata__":{"a":"1","a":"2"}}`),
		"no metadata":         file(`{"__metadata__":null}`),
		"no tensor":           file(`{"a":null}`),
		"no shape":            file(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 0),
		"no offsets":          file(`{"a":{"dtype":"U8","shape":[0]}}`),
		"no type":             file(`{"a":{"shape":[0],"data_offsets":[0,0]}}`),
		"null shape":          file(`{"a":{"dtype":"U8","shape":null,"data_offsets":[0,1]}}`, 0),
		"one offset":          file(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}}`),
		"three offsets":       file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}}`, 0),
		"key twice":           file(`{"a":{"dtype":"U8","shape":[9],"shape":[1],"data_offsets":[0,1]}}`, 0),
		"key in capitals":     file(`{"a":{"DType":"U8","Shape":[1],"Data_Offsets":[0,1]}}`, 0),
		"keys differ in case": file(`{"a":{"dtype":"U8","shape":[1],"Shape":[9],"data_offsets":[0,1]}}`, 0),
		"unknown key":         file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"strides":[1]}}`, 0),
		"size with a point":   file(`{"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}}`, 0),
		"size as text":        file(`{"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}}`, 0),
		"nested shape":        file(`{"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}}`, 0),
		"bool of 2":           file(`{"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}`, 1, 2),
		"bool of 255":         file(`{"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}`, 255),
		"no UTF-8":            file("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 0),
		"two headers":         file(`{}{}`),
		"cut header":          file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`, 0),
	} {
		if _, _, err := safetensors.Decode(data); !errors.Is(err, safetensors.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A small header can describe the same bytes many times over.
func TestOverlapsAreRefusedBeforeMemoryIsTaken(t *testing.T) {
	const tensors, size = 2000, 1 << 16
	var header strings.Builder
	for i := range tensors {
		fmt.Fprintf(&header, `,"t%d":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}`, i, size, size)
	}
	data := file("{"+header.String()[1:]+"}", make([]byte, size)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := safetensors.Decode(data); !errors.Is(err, safetensors.ErrDamaged) {
		t.Errorf("error %v", err)
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 64*uint64(len(data)) {
		t.Errorf("%d bytes taken for a file of %d", taken, len(data))
	}
}

func TestWriteRefusesUnsupportedTypes(t *testing.T) {
	for name, c := range map[string]struct {
		tensors map[string]native.Tensor
		kind    error
	}{
		"reserved name": {map[string]native.Tensor{"__metadata__": native.Int32(1)}, ir.ErrName},
		"element type":  {map[string]native.Tensor{"a": native.Zeros(ir.C128, 1)}, ir.ErrDType},
		"a bool of 2":   {map[string]native.Tensor{"a": {DType: ir.Bool, Dims: []int{1}, Data: []byte{2}}}, ir.ErrDType},
		"wrong bytes":   {map[string]native.Tensor{"a": native.Float32s([]float32{1}, 2)}, ir.ErrShape},
	} {
		if err := safetensors.Write(&bytes.Buffer{}, c.tensors, nil); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 0))
	f.Add(file(`{"__metadata__":{"x":"y"}}`))
	f.Add(file(`{"a":{"dtype":"BOOL","shape":[2,1],"data_offsets":[0,2]},"b":{"dtype":"F32","shape":[],"data_offsets":[2,6]}}  `, 1, 0, 0, 0, 128, 63))
	f.Add(file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 0, 0, 0))
	f.Add(file(`{"\u0061":{"shape":[0,9223372036854775807],"dtype":"C64","data_offsets":[0,0]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, metadata, err := safetensors.Decode(data)
		if err != nil {
			if !errors.Is(err, safetensors.ErrDamaged) {
				t.Errorf("error of no kind: %v", err)
			}
			return
		}
		var buf bytes.Buffer
		if err := safetensors.Write(&buf, tensors, metadata); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, _, err := safetensors.Read(&buf)
		if err != nil || len(again) != len(tensors) {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}
