package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
)

// stored calls f with the types, bytes and elements of a file that suite/blocks.py has written.
func stored(t *testing.T, name string, f func(t gguf.Type, raw []byte, x []float32)) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for len(data) > 0 {
		typ := gguf.Type(binary.LittleEndian.Uint32(data))
		n := int(binary.LittleEndian.Uint32(data[4:]))
		elements, size := typ.Block()
		raw := data[8 : 8+n]
		data = data[8+n:]
		x := make([]float32, n/size*elements)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		data = data[4*len(x):]
		f(typ, raw, x)
	}
}

// Blocks unpack to the bits that gguf 0.19.0 gives.
func TestDequantizeEqualsTheReference(t *testing.T) {
	types := 0
	stored(t, "blocks.bin", func(typ gguf.Type, raw []byte, want []float32) {
		types++
		got := make([]float32, len(want))
		if err := gguf.Dequantize(typ, got, raw); err != nil {
			t.Error(err)
			return
		}
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] == 0 && want[i] == 0) {
				t.Errorf("%v: element %d is %v, want %v", typ, i, got[i], want[i])
				return
			}
		}
	})
	if types < 23 {
		t.Errorf("%d types", types)
	}
}

// Floats pack to the bits that gguf 0.19.0 gives.
func TestQuantizeEqualsTheReference(t *testing.T) {
	stored(t, "quantized.bin", func(typ gguf.Type, want []byte, x []float32) {
		got, err := gguf.Quantize(typ, x)
		if err != nil {
			t.Error(err)
			return
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%v: byte %d is %d, want %d", typ, i, got[i], want[i])
				return
			}
		}
	})
}

// entry returns a tensor of bytes.
func entry(name string, typ gguf.Type, data []byte, dims ...int) gguf.Entry {
	return gguf.Entry{Name: name, Type: typ, Dims: dims, Write: func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}}
}

func write(t testing.TB, metadata []gguf.Pair, tensors ...gguf.Entry) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := gguf.Write(&out, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	metadata := []gguf.Pair{
		{"general.architecture", "llama"},
		{"a.u8", uint8(1)},
		{"a.i8", int8(-1)},
		{"a.u16", uint16(2)},
		{"a.i16", int16(-2)},
		{"a.u32", uint32(3)},
		{"a.i32", int32(-3)},
		{"a.f32", float32(0.5)},
		{"a.bool", true},
		{"a.u64", uint64(1 << 63)},
		{"a.i64", int64(-4)},
		{"a.f64", 0.25},
		{"l.text", []string{"a", "", "ü"}},
		{"l.f32", []float32{1, 2}},
		{"l.i32", []int32{-1}},
		{"l.bool", []bool{true, false}},
		{"l.u8", []byte{7}},
	}
	x := make([]float32, 64)
	for i := range x {
		x[i] = float32(i) - 20
	}
	packed, err := gguf.Quantize(gguf.Q8_0, x)
	if err != nil {
		t.Fatal(err)
	}
	data := write(t, metadata, entry("w", gguf.Q8_0, packed, 2, 32), entry("b", gguf.I8, []byte{1, 2, 3}, 3), entry("s", gguf.F32, make([]byte, 4)))
	name := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range metadata {
		if got := f.Value(p.Key); !reflect.DeepEqual(got, p.Value) {
			t.Errorf("%s is %v, want %v", p.Key, got, p.Value)
		}
	}
	if _, fits := f.Int("a.u64"); fits {
		t.Error("2⁶³ is an int64")
	}
	if i, ok := f.Info("w"); !ok || !slices.Equal(i.Dims, []int{2, 32}) || i.Type.String() != "q8_0" || i.Bytes != 68 {
		t.Errorf("got %+v", i)
	}
	got, err := f.Floats("w")
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if math.Abs(float64(got[i]-x[i])) > 0.2 {
			t.Errorf("element %d is %v, want %v", i, got[i], x[i])
		}
	}
	if b, err := f.Bytes("b"); err != nil || !bytes.Equal(b, []byte{1, 2, 3}) {
		t.Errorf("got %v, %v", b, err)
	}
	if _, err := f.Floats("b"); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("floats of integers: %v", err)
	}
	if _, err := f.Bytes("none"); !errors.Is(err, ir.ErrName) {
		t.Errorf("got %v", err)
	}
}

// A model that is split is opened by the name of its first part.
func TestSplits(t *testing.T) {
	dir := t.TempDir()
	part := func(no int, tensors ...gguf.Entry) string {
		name := filepath.Join(dir, []string{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}[no])
		data := write(t, []gguf.Pair{{"split.no", uint16(no)}, {"split.count", uint16(2)}, {"split.tensors.count", int32(2)}}, tensors...)
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	first := part(0, entry("a", gguf.I8, []byte{1}, 1))
	if _, err := gguf.Open(first); err == nil {
		t.Error("a part is missing and the model was opened")
	}
	second := part(1, entry("b", gguf.I8, []byte{2}, 1))
	f, err := gguf.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := f.Bytes("b"); err != nil || b[0] != 2 {
		t.Errorf("got %v, %v", b, err)
	}
	if _, err := gguf.Open(second); !errors.Is(err, gguf.ErrDamaged) {
		t.Errorf("the second part by itself: %v", err)
	}
	part(1, entry("a", gguf.I8, []byte{2}, 1))
	if _, err := gguf.Open(first); !errors.Is(err, gguf.ErrDamaged) {
		t.Errorf("a tensor in two parts: %v", err)
	}
}

// Files that lie are refused before memory is taken.
func TestHostileFiles(t *testing.T) {
	good := write(t, []gguf.Pair{{"k", "v"}}, entry("w", gguf.F32, make([]byte, 8), 2))
	open := func(data []byte) error {
		_, err := gguf.OpenAt(bytes.NewReader(data), int64(len(data)))
		return err
	}
	if err := open(good); err != nil {
		t.Fatal(err)
	}
	for n := range len(good) - 24 { // the last 24 are padding
		if err := open(good[:n]); !errors.Is(err, gguf.ErrDamaged) {
			t.Fatalf("%d of %d bytes: %v", n, len(good), err)
		}
	}
	change := func(at int, b ...byte) []byte {
		out := slices.Clone(good)
		copy(out[at:], b)
		return out
	}
	huge := []byte{255, 255, 255, 255, 255, 255, 255, 127}
	for name, data := range map[string][]byte{
		"tensors": change(8, huge...), "keys": change(16, huge...), "key": change(24, huge...), "kind": change(33, 13), "text": change(37, huge...),
	} {
		if err := open(data); !errors.Is(err, gguf.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := write(t, nil, entry(strings.Repeat("\x00", 2000), gguf.F32, make([]byte, 8), 2))
	if err := open(long); !errors.Is(err, gguf.ErrDamaged) || len(err.Error()) > 200 {
		t.Errorf("a name of 2000 bytes: %v", err)
	}
	for name, data := range map[string][]byte{"version 1": change(4, 1), "big endian": change(4, 0, 0, 0, 3)} {
		if err := open(data); !errors.Is(err, ir.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(write(f, []gguf.Pair{{"k", "v"}, {"l", []string{"a", "b"}}, {"general.alignment", uint32(32)}}, entry("w", gguf.Q4_0, make([]byte, 18), 32)))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := gguf.OpenAt(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			if !errors.Is(err, gguf.ErrDamaged) && !errors.Is(err, ir.ErrUnsupported) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		for _, name := range file.Names() {
			if _, err := file.Floats(name); err != nil && !errors.Is(err, ir.ErrUnsupported) {
				t.Errorf("%q: %v", name, err)
			}
		}
	})
}
