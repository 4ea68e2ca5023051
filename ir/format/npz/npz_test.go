package npz_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/npz"
)

func Example() {
	var file bytes.Buffer
	if err := npz.Write(&file, map[string]*ir.Array{"w": ir.Floats(ir.F32, []float64{1, 2, 3, 4}, 2, 2)}); err != nil {
		log.Fatal(err)
	}
	f, err := npz.OpenAt(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		log.Fatal(err)
	}
	w, err := f.Array("w")
	fmt.Println(f.Names(), w.Type(), w.F, err)
	// Output: [w] f32[2,2] [1 2 3 4] <nil>
}

// testdata/arrays.npz is NumPy's.
func TestNumPysFileIsRead(t *testing.T) {
	f, err := npz.Open(filepath.Join("testdata", "arrays.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	columns := ir.NewArray(ir.I64, 2, 3, 4)
	for i := range columns.I {
		columns.I[i] = int64(i)
	}
	for name, want := range map[string]*ir.Array{
		"f":       ir.Floats(ir.F32, []float64{0, 0.25, 0.5, 0.75, 1, 1.25}, 2, 3),
		"columns": columns,
		"big":     ir.Floats(ir.F64, []float64{1.5, -2}, 2),
		"b":       ir.Ints(ir.Bool, []int64{1, 0}, 2),
		"c":       {DType: ir.C64, Dims: []int{1, 1}, C: []complex128{1 + 2i}},
		"h":       ir.Floats(ir.F16, []float64{0.5, 65504}, 2),
		"scalar":  ir.Int(ir.U8, 7),
		"empty":   ir.NewArray(ir.U32, 0, 3),
	} {
		got, err := f.Array(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !got.Type().Equal(want.Type()) || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"text", "record"} {
		if _, err := f.Array(name); !errors.Is(err, ir.ErrDType) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.Array("none"); !errors.Is(err, ir.ErrName) {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, a := range []*ir.Array{
		ir.Floats(ir.F16, []float64{1, 2, 3}, 3), ir.Ints(ir.U64, []int64{-1}, 1, 1), ir.Int(ir.Bool, 1), ir.NewArray(ir.F64, 2, 0),
		{DType: ir.C128, Dims: []int{1}, C: []complex128{3 - 4i}},
	} {
		var out bytes.Buffer
		if err := npz.WriteArray(&out, a); err != nil {
			t.Fatal(err)
		}
		if out.Len()%64 != len(a.Bytes())%64 {
			t.Errorf("%s: the elements do not begin on 64 bytes", a.Type())
		}
		got, err := npz.Read(&out)
		if err != nil || !reflect.DeepEqual(got.Bytes(), a.Bytes()) || !slices.Equal(got.Dims, a.Dims) || got.DType != a.DType {
			t.Errorf("%s: got %v, %v", a.Type(), got, err)
		}
	}
	if err := npz.WriteArray(&bytes.Buffer{}, ir.Floats(ir.BF16, []float64{1})); !errors.Is(err, ir.ErrDType) {
		t.Errorf("got %v", err)
	}
}

// A file that says that it is large and is not takes no memory.
func TestHostileFiles(t *testing.T) {
	npy := func(header string, data ...byte) []byte {
		head := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
		return append(append(head, header...), data...)
	}
	for _, data := range [][]byte{
		nil, []byte("\x93NUMPY\x01\x00"), npy("{}"), npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,), }"),
		npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }"),
		npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 1, 2, 3),
		[]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), []byte("\x93NUMPY\x09\x00\x00\x00"),
	} {
		if _, err := npz.Read(bytes.NewReader(data)); !errors.Is(err, npz.ErrDamaged) {
			t.Errorf("%q: %v", data, err)
		}
	}
	if _, err := npz.Read(bytes.NewReader(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"))); !errors.Is(err, ir.ErrDType) {
		t.Errorf("pickled objects: %v", err)
	}
	records := npy("{'descr': [('a', '<i4'), ('b', '<f8')], 'fortran_order': False, 'shape': (1,), }")
	if _, err := npz.Read(bytes.NewReader(records)); !errors.Is(err, ir.ErrDType) || !strings.Contains(err.Error(), "[('a', '<i4'), ('b', '<f8')]") {
		t.Errorf("records: %v", err)
	}
	if _, err := npz.OpenAt(bytes.NewReader([]byte("PK")), 2); !errors.Is(err, npz.ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

// An archive of another program may be compressed by a method that is not read; it is not damaged.
func TestUnknownCompression(t *testing.T) {
	var data bytes.Buffer
	z := zip.NewWriter(&data)
	const lzma = 14
	if _, err := z.CreateRaw(&zip.FileHeader{Name: "x.npy", Method: lzma}); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := npz.OpenAt(bytes.NewReader(data.Bytes()), int64(data.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Array("x"); !errors.Is(err, ir.ErrUnsupported) || errors.Is(err, npz.ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

// The checksum is behind the elements, whose number is known: a reader of the elements alone does not see it.
func TestChangedElementsAreRefused(t *testing.T) {
	var stored bytes.Buffer
	if err := npz.Write(&stored, map[string]*ir.Array{"w": ir.Floats(ir.F32, []float64{1, 2, 3}, 3)}); err != nil {
		t.Fatal(err)
	}
	changed := stored.Bytes()
	changed[bytes.Index(changed, []byte{0, 0, 0x80, 0x3f})+2] ^= 0x40
	var longer bytes.Buffer
	z := zip.NewWriter(&longer)
	w, err := z.Create("w.npy")
	if err == nil {
		err = npz.WriteArray(w, ir.Int(ir.U8, 7))
	}
	if err == nil {
		_, err = w.Write([]byte{1})
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	for what, data := range map[string][]byte{"another bit": changed, "a byte more": longer.Bytes()} {
		f, err := npz.OpenAt(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if a, err := f.Array("w"); !errors.Is(err, npz.ErrDamaged) || a != nil {
			t.Errorf("%s: got %v, %v", what, a, err)
		}
	}
}

// What a file system says is not damage.
func TestErrorsOfReadersAreTheirOwn(t *testing.T) {
	var file bytes.Buffer
	if err := npz.WriteArray(&file, ir.Ints(ir.U8, make([]int64, 9), 9)); err != nil {
		t.Fatal(err)
	}
	for n := range file.Len() {
		r := io.MultiReader(bytes.NewReader(file.Bytes()[:n]), iotest.ErrReader(fs.ErrClosed))
		if _, err := npz.Read(r); !errors.Is(err, fs.ErrClosed) || errors.Is(err, npz.ErrDamaged) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	var out bytes.Buffer
	if err := npz.WriteArray(&out, ir.Floats(ir.F32, []float64{1, 2}, 2)); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := npz.Read(bytes.NewReader(data))
		if err == nil {
			err = a.Check()
		}
		if err != nil && !errors.Is(err, npz.ErrDamaged) && !errors.Is(err, ir.ErrDType) {
			t.Errorf("an error of no kind: %v", err)
		}
	})
}

func TestEntriesWithoutReadAreRefused(t *testing.T) {
	if err := npz.WriteEntries(io.Discard, []npz.Entry{{Name: "a"}}); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("the error is %v", err)
	}
	if err := npz.WriteArray(nil, ir.Int(ir.I32, 1)); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("without a writer the error is %v", err)
	}
}
