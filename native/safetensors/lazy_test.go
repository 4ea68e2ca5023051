package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/safetensors"
)

// fileOf returns a file of a header and bytes.
func fileOf(header string, body []byte) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), body...)
}

// A file of 20 GB, without blocks on the disk, is opened in milliseconds and no memory.
func TestOpenReadsTheHeaderAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large.safetensors")
	size := int64(20) << 30
	if strconv.IntSize == 32 {
		size = 1 << 30 // a shape has ints
	}
	header := fmt.Sprintf(`{"a":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]},"b":{"dtype":"F32","shape":[2],"data_offsets":[%d,%d]}}`, size/4, size, size, size+8)
	if err := os.WriteFile(name, fileOf(header, nil), 0o666); err != nil {
		t.Fatal(err)
	}
	whole := int64(8+len(header)) + size + 8
	if err := os.Truncate(name, whole); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(ir.Floats(ir.F32, []float64{3, 4}).Bytes(), whole-8); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	open, err := safetensors.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	b, err := open.Tensor("b")
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("opening took %v", took)
	}
	if x, err := b.Float32s(); err != nil || !slices.Equal(x, []float32{3, 4}) {
		t.Errorf("got %v, %v", x, err)
	}
}

// Types that tensors have not, and those that nobody knows, refuse their tensor and no other.
func TestTypesAreRefusedPerTensor(t *testing.T) {
	header := `{"e":{"dtype":"F8_E8M0","shape":[4],"data_offsets":[0,4]},"u":{"dtype":"Q9","shape":[3],"data_offsets":[4,5]},"w":{"dtype":"I64","shape":[1],"data_offsets":[5,13]},"x":{"dtype":"F64","shape":[1],"data_offsets":[13,21]}}`
	body := append([]byte{1, 2, 3, 4, 5}, ir.Ints(ir.I64, []int64{-7}).Bytes()...)
	body = append(body, ir.Floats(ir.F64, []float64{0.5}).Bytes()...)
	data := fileOf(header, body)
	f, err := safetensors.OpenAt(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"e", "u"} {
		if _, err := f.Tensor(name); !errors.Is(err, ir.ErrDType) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if i, ok := f.Info("e"); !ok || i.Type != "F8_E8M0" || i.DType.Valid() || i.Bytes != 4 {
		t.Errorf("got %+v", i)
	}
	if _, err := f.Tensor("none"); !errors.Is(err, ir.ErrName) {
		t.Errorf("got %v", err)
	}
	w, err := f.As("w", ir.I32)
	if err != nil || !slices.Equal(w.Data, ir.Ints(ir.I32, []int64{-7}).Bytes()) {
		t.Errorf("got %v, %v", w.Data, err)
	}
	if _, err := f.As("w", ir.U8); !errors.Is(err, ir.ErrDType) {
		t.Errorf("-7 as u8: %v", err)
	}
	x, err := f.As("x", ir.F16)
	if err != nil || !slices.Equal(x.Data, []byte{0, 0x38}) {
		t.Errorf("got %v, %v", x.Data, err)
	}
	if _, err := f.As("x", ir.I32); !errors.Is(err, ir.ErrDType) {
		t.Errorf("a float as i32: %v", err)
	}
}

// An index names the files of a model, all in its folder.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, tensors map[string]native.Tensor) {
		t.Helper()
		if err := safetensors.WriteFile(filepath.Join(dir, name), tensors, map[string]string{"of": name}); err != nil {
			t.Fatal(err)
		}
	}
	write("a.safetensors", map[string]native.Tensor{"x": native.Float32s([]float32{1, 2})})
	write("b.safetensors", map[string]native.Tensor{"y": native.Float32s([]float32{3}), "z": native.Bools([]bool{true})})
	open := func(text string) (*safetensors.File, error) {
		name := filepath.Join(dir, "m.safetensors.index.json")
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return safetensors.Open(name)
	}
	f, err := open(`{"metadata":{"total_size":13},"weight_map":{"x":"a.safetensors","y":"b.safetensors","z":"b.safetensors"}}`)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := f.Names(); !slices.Equal(got, []string{"x", "y", "z"}) {
		t.Errorf("got %q", got)
	}
	y, err := f.Tensor("y")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := y.Float32s(); err != nil || got[0] != 3 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{
		`{"weight_map":{"x":"b.safetensors"}}`, `{"weight_map":{"x":"../a.safetensors"}}`, `{"weight_map":{"x":"/etc/hostname"}}`,
		`{"weight_map":{"x":"none.safetensors"}}`, `{"weight_map":3}`, `{`, ``,
	} {
		if _, err := open(text); err == nil {
			t.Errorf("%s was opened", text)
		}
	}
}

// Entries are written one after the other, and must write what their types have.
func TestWriteEntries(t *testing.T) {
	var out bytes.Buffer
	entry := func(name string, n int, bytes int) safetensors.Entry {
		return safetensors.Entry{Name: name, DType: ir.U8, Dims: []int{n}, Write: func(w io.Writer) error {
			_, err := w.Write(make([]byte, bytes))
			return err
		}}
	}
	if err := safetensors.WriteEntries(&out, []safetensors.Entry{entry("b", 3, 3), entry("a", 2, 2)}, nil); err != nil {
		t.Fatal(err)
	}
	if tensors, _, err := safetensors.Decode(out.Bytes()); err != nil || len(tensors["a"].Data) != 2 || len(tensors["b"].Data) != 3 {
		t.Errorf("got %v, %v", tensors, err)
	}
	if err := safetensors.WriteEntries(&out, []safetensors.Entry{entry("b", 3, 2)}, nil); !errors.Is(err, ir.ErrShape) {
		t.Errorf("got %v", err)
	}
	if err := safetensors.WriteEntries(&out, []safetensors.Entry{entry("b", 3, 3), entry("b", 3, 3)}, nil); !errors.Is(err, ir.ErrName) {
		t.Errorf("got %v", err)
	}
	if err := safetensors.WriteEntries(&out, []safetensors.Entry{{Name: "b", DType: ir.U8, Dims: []int{3}}}, nil); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("an entry without Write: %v", err)
	}
}

// FuzzOpen asserts that an opened file gives its tensors or typed errors.
func FuzzOpen(f *testing.F) {
	f.Add(fileOf(`{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, make([]byte, 4)))
	f.Add(fileOf(`{"w":{"dtype":"F4","shape":[2],"data_offsets":[0,1]},"__metadata__":{"a":"b"}}`, make([]byte, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := safetensors.OpenAt(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			if !errors.Is(err, safetensors.ErrDamaged) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		for _, name := range file.Names() {
			tensor, err := file.Tensor(name)
			if err == nil {
				err = tensor.Check()
			}
			if err != nil && !errors.Is(err, ir.ErrDType) {
				t.Errorf("%q: %v", name, err)
			}
		}
	})
}
