package dataset_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/dataset"
)

func TestCSV(t *testing.T) {
	text := "\ufeffwidth,height,kind\n1.5, 2,cat\n-3,4e2,dog\n"
	got, err := dataset.ReadCSV(strings.NewReader(text), dataset.CSVOptions{Header: true, Columns: []dataset.Column{
		{Name: "x", Fields: []string{"height", "width"}}, {Name: "labels", Fields: []string{"kind"}, Classes: []string{"dog", "cat"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := got["x"].Float32s()
	if err != nil || !slices.Equal(x, []float32{2, 1.5, 400, -3}) || !slices.Equal(got["x"].Dims, []int{2, 2}) {
		t.Errorf("x is %v %v, %v", x, got["x"].Dims, err)
	}
	labels, err := got["labels"].Int32s()
	if err != nil || !slices.Equal(labels, []int32{1, 0}) || !slices.Equal(got["labels"].Dims, []int{2}) {
		t.Errorf("labels are %v, %v", labels, err)
	}
	plain, err := dataset.ReadCSV(strings.NewReader("7;+Inf\n8;2\n"), dataset.CSVOptions{Comma: ';', Columns: []dataset.Column{
		{Name: "n", Fields: []string{"0"}, DType: ir.I32}, {Name: "y", Fields: []string{"1"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := plain["n"].Int32s()
	y, _ := plain["y"].Float32s()
	if !slices.Equal(n, []int32{7, 8}) || !math.IsInf(float64(y[0]), 1) || y[1] != 2 {
		t.Errorf("n is %v and y %v", n, y)
	}
}

// TestCSVWithoutValues reads fields without a value as NaN and −1, where the column names them.
func TestCSVWithoutValues(t *testing.T) {
	missing := []string{"", "NA"}
	got, err := dataset.ReadCSV(strings.NewReader("1,,cat,7\nNA,2,,\n"), dataset.CSVOptions{Columns: []dataset.Column{
		{Name: "x", Fields: []string{"0", "1"}, Missing: missing},
		{Name: "kind", Fields: []string{"2"}, Classes: []string{"cat"}, Missing: missing},
		{Name: "n", Fields: []string{"3"}, DType: ir.I32, Missing: missing},
	}})
	if err != nil {
		t.Fatal(err)
	}
	x, _ := got["x"].Float32s()
	kind, _ := got["kind"].Int32s()
	n, _ := got["n"].Int32s()
	if len(x) != 4 || x[0] != 1 || !math.IsNaN(float64(x[1])) || !math.IsNaN(float64(x[2])) || x[3] != 2 || !slices.Equal(kind, []int32{0, -1}) || !slices.Equal(n, []int32{7, -1}) {
		t.Errorf("x is %v, kind %v, n %v", x, kind, n)
	}
}

func TestCSVRefuses(t *testing.T) {
	x := []dataset.Column{{Name: "x", Fields: []string{"1"}}}
	for name, c := range map[string]struct {
		text    string
		options dataset.CSVOptions
		kind    error
		say     string
	}{
		"no columns":     {"1", dataset.CSVOptions{}, ir.ErrAttr, "no columns"},
		"no fields":      {"1", dataset.CSVOptions{Columns: []dataset.Column{{Name: "x"}}}, ir.ErrAttr, `"x"`},
		"a type":         {"1", dataset.CSVOptions{Columns: []dataset.Column{{Name: "x", Fields: []string{"0"}, DType: ir.F64}}}, ir.ErrAttr, "f64"},
		"unknown field":  {"a,b\n1,2", dataset.CSVOptions{Header: true, Columns: x}, ir.ErrName, `"1"`},
		"short line":     {"1,2\n3\n", dataset.CSVOptions{Columns: x}, dataset.ErrDamaged, "line 2"},
		"long line":      {"a,b\n1,2\n1,5,2\n", dataset.CSVOptions{Header: true, Columns: []dataset.Column{{Name: "x", Fields: []string{"b"}}}}, dataset.ErrDamaged, "line 3 has 3 fields"},
		"a shorter rest": {"1,2\n3\n", dataset.CSVOptions{Columns: []dataset.Column{{Name: "x", Fields: []string{"0"}}}}, dataset.ErrDamaged, "line 2 has 1 fields"},
		"no number":      {"1,2\n3,four\n", dataset.CSVOptions{Columns: x}, dataset.ErrDamaged, "line 2"},
		"two fields":     {"1,1\n3,4\n", dataset.CSVOptions{Header: true, Columns: x}, ir.ErrName, "two fields"},
		"too large":      {"1,2\n3,-1e39\n", dataset.CSVOptions{Columns: x}, dataset.ErrDamaged, "line 2: \"-1e39\" of field \"1\", column \"x\", is out of the range of f32"},
		"quotes":         {"1,2\n3,\"4\n", dataset.CSVOptions{Columns: x}, dataset.ErrDamaged, "quote"},
		"no i32":         {"1,2.5\n", dataset.CSVOptions{Columns: []dataset.Column{{Name: "x", Fields: []string{"1"}, DType: ir.I32}}}, dataset.ErrDamaged, "2.5"},
		"unknown class":  {"1,cow\n", dataset.CSVOptions{Columns: []dataset.Column{{Name: "x", Fields: []string{"1"}, Classes: []string{"cat"}}}}, dataset.ErrDamaged, "cow"},
		"one name twice": {"1,2\n", dataset.CSVOptions{Columns: []dataset.Column{{Name: "x", Fields: []string{"0"}}, {Name: "x", Fields: []string{"1"}}}}, ir.ErrAttr, `"x"`},
		"a comma":        {"1\n", dataset.CSVOptions{Comma: '\n', Columns: x}, ir.ErrAttr, "comma"},
		"negative field": {"1\n", dataset.CSVOptions{Columns: []dataset.Column{{Name: "x", Fields: []string{"-1"}}}}, ir.ErrName, `"-1"`},
	} {
		if _, err := dataset.ReadCSV(strings.NewReader(c.text), c.options); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, not of kind %v with %s", name, err, c.kind, c.say)
		}
	}
}

func TestIDX(t *testing.T) {
	file := []byte{0, 0, 0x0b, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0x01, 0x02, 0xff, 0xfe}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(file); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{file, zipped.Bytes()} {
		x, err := dataset.ReadIDX(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		a, err := x.Array()
		if err != nil || x.DType != ir.I16 || !slices.Equal(x.Dims, []int{2, 1}) || !slices.Equal(a.I, []int64{0x102, -2}) {
			t.Errorf("%v %v, %v", x, a, err)
		}
	}
	otherSum, otherBits := bytes.Clone(zipped.Bytes()), bytes.Clone(zipped.Bytes())
	otherSum[len(otherSum)-8] ^= 1
	otherBits[10] |= 6 // a block of no kind
	if _, err := dataset.ReadIDX(bytes.NewReader(otherSum)); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("another checksum: %v", err)
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "a header": file[:3], "sizes": file[:9], "elements": file[:15], "magic": append([]byte{1}, file[1:]...),
		"a type": {0, 0, 7, 0}, "huge": {0, 0, 0x0e, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, "gzip": {0x1f, 0x8b, 1, 2},
		"more": append(bytes.Clone(file), 1), "checksum": otherSum, "deflate": otherBits,
	} {
		if _, err := dataset.ReadIDX(bytes.NewReader(data)); !errors.Is(err, dataset.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// pictures are a red and a blue picture of 4 × 2 pixels, the right half black, and a file that is none.
func pictures(t *testing.T) fstest.MapFS {
	folder := fstest.MapFS{"notes.txt": {Data: []byte("x")}, "a/notes.txt": {Data: []byte("x")}}
	for name, c := range map[string]color.Color{"b/red.png": color.RGBA{255, 0, 0, 255}, "a/blue.png": color.RGBA{0, 0, 255, 255}} {
		p := image.NewRGBA(image.Rect(0, 0, 4, 2))
		for i := range 8 {
			if p.Set(i%4, i/4, color.Black); i%4 < 2 {
				p.Set(i%4, i/4, c)
			}
		}
		var out bytes.Buffer
		if err := png.Encode(&out, p); err != nil {
			t.Fatal(err)
		}
		folder[name] = &fstest.MapFile{Data: out.Bytes()}
	}
	return folder
}

func TestImages(t *testing.T) {
	m, err := dataset.OpenImages(pictures(t))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Classes, []string{"a", "b"}) || !slices.Equal(m.Files, []string{"a/blue.png", "b/red.png"}) || !slices.Equal(m.Labels, []int32{0, 1}) {
		t.Errorf("%+v", m)
	}
	x := make([]float32, 3)
	if err := m.Read(1, 1, 1, x); err != nil || !slices.Equal(x, []float32{0.5, 0, 0}) {
		t.Errorf("the mean of red and black is %v, %v", x, err)
	}
	x = make([]float32, 3*2*8)
	if err := m.Read(0, 2, 8, x); err != nil || x[2] != 1 || x[3*3+2] != 1 || x[3*4+2] != 0 {
		t.Errorf("twice as wide it is %v, %v", x, err)
	}
	seen := map[int32]int{}
	for batch, err := range m.Batches(1, 1, 1, 4)(0) {
		if err != nil {
			t.Fatal(err)
		}
		labels, _ := batch["labels"].Int32s()
		x, _ := batch["x"].Float32s()
		if seen[labels[0]]++; x[2*(1-labels[0])] != 0.5 || !slices.Equal(batch["x"].Dims, []int{1, 1, 1, 3}) {
			t.Errorf("class %d is %v", labels[0], x)
		}
	}
	if len(seen) != 2 || seen[0] != 1 {
		t.Errorf("an epoch has %v", seen)
	}
}

// TestImagesDropTheirOpacity has the values of Pillow's convert("RGB"), by which torchvision's ImageFolder loads images.
func TestImagesDropTheirOpacity(t *testing.T) {
	p := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	p.SetNRGBA(0, 0, color.NRGBA{204, 102, 51, 128})
	p.SetNRGBA(1, 0, color.NRGBA{0, 51, 255, 0})
	var out bytes.Buffer
	if err := png.Encode(&out, p); err != nil {
		t.Fatal(err)
	}
	m, err := dataset.OpenImages(fstest.MapFS{"a/p.png": {Data: out.Bytes()}})
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, 6)
	if err := m.Read(0, 1, 2, x); err != nil || !slices.Equal(x, []float32{0.8, 0.4, 0.2, 0, 0.2, 1}) {
		t.Errorf("%v, %v", x, err)
	}
}

// TestImagesOfNestedFolders has the files that torchvision's ImageFolder has, in its order, but for hidden ones.
func TestImagesOfNestedFolders(t *testing.T) {
	folder := pictures(t)
	for from, names := range map[string][]string{
		"a/blue.png": {"a/UPPER.PNG", "a/deep/er/x.png"}, "b/red.png": {".cache/x.png", "b/.hidden.png", "b/.thumbs/x.png"},
	} {
		for _, name := range names {
			folder[name] = folder[from]
		}
	}
	m, err := dataset.OpenImages(folder)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a/UPPER.PNG", "a/blue.png", "a/deep/er/x.png", "b/red.png"}; !slices.Equal(m.Files, want) || !slices.Equal(m.Classes, []string{"a", "b"}) || !slices.Equal(m.Labels, []int32{0, 0, 0, 1}) {
		t.Errorf("%q of %q, labels %v, want %q", m.Files, m.Classes, m.Labels, want)
	}
	folder["empty/notes.txt"] = &fstest.MapFile{}
	if _, err := dataset.OpenImages(folder); !errors.Is(err, dataset.ErrDamaged) || !strings.Contains(err.Error(), `"empty"`) {
		t.Errorf("a class without images: %v", err)
	}
}

func TestImagesRefuse(t *testing.T) {
	folder := pictures(t)
	folder["b/torn.png"] = &fstest.MapFile{Data: folder["b/red.png"].Data[:40]}
	folder["b/zero.png"] = &fstest.MapFile{Data: []byte("x")}
	m, err := dataset.OpenImages(folder)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, 3)
	for i, kind := range map[int]error{-1: ir.ErrIndex, 4: ir.ErrIndex, 2: dataset.ErrDamaged, 3: dataset.ErrDamaged} {
		if err := m.Read(i, 1, 1, x); !errors.Is(err, kind) {
			t.Errorf("image %d: %v", i, err)
		}
	}
	if err := m.Read(0, 2, 1, x); !errors.Is(err, ir.ErrShape) {
		t.Errorf("another size: %v", err)
	}
	for _, size := range []int{0, 5} {
		for _, err := range m.Batches(size, 1, 1, 1)(0) {
			if !errors.Is(err, ir.ErrAttr) {
				t.Errorf("size %d: %v", size, err)
			}
		}
	}
	if _, err := dataset.OpenImages(fstest.MapFS{"a.png": {}}); !errors.Is(err, dataset.ErrDamaged) {
		t.Errorf("no classes: %v", err)
	}
	delete(folder, "b/red.png")
	if err := m.Read(1, 1, 1, x); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
}

// What a file system says is not damage.
func TestErrorsOfReadersAreTheirOwn(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	file := []byte{0, 0, 8, 1, 0, 0, 0, 2, 7, 9}
	if _, err := z.Write(file); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	csv := func(header bool) func(io.Reader) error {
		return func(r io.Reader) error {
			_, err := dataset.ReadCSV(r, dataset.CSVOptions{Header: header, Columns: []dataset.Column{{Name: "x", Fields: []string{"0"}}}})
			return err
		}
	}
	idx := func(r io.Reader) error {
		_, err := dataset.ReadIDX(r)
		return err
	}
	for name, c := range map[string]struct {
		data []byte
		read func(io.Reader) error
	}{
		"lines": {[]byte("0\n1"), csv(false)}, "header": {[]byte("0"), csv(true)}, "IDX": {file, idx}, "gzip": {zipped.Bytes(), idx},
	} {
		for n := range len(c.data) {
			err := c.read(io.MultiReader(bytes.NewReader(c.data[:n]), iotest.ErrReader(fs.ErrClosed)))
			if !errors.Is(err, fs.ErrClosed) || errors.Is(err, dataset.ErrDamaged) {
				t.Errorf("%s after %d bytes: %v", name, n, err)
			}
		}
	}
}

// Large data sets often link to the folders of other ones.
func TestImagesOfLinkedFolders(t *testing.T) {
	dir := t.TempDir()
	picture := pictures(t)["b/red.png"].Data
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "elsewhere", "b"), 0o777), os.MkdirAll(filepath.Join(dir, "all", "a"), 0o777),
		os.WriteFile(filepath.Join(dir, "elsewhere", "b", "x.png"), picture, 0o666),
		os.Symlink(filepath.Join(dir, "elsewhere", "b"), filepath.Join(dir, "all", "b")),
		os.Symlink(filepath.Join(dir, "elsewhere", "b", "x.png"), filepath.Join(dir, "all", "a", "y.png")),
		os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "all", "c")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	m, err := dataset.OpenImages(os.DirFS(filepath.Join(dir, "all")))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Classes, []string{"a", "b"}) || !slices.Equal(m.Files, []string{"a/y.png", "b/x.png"}) || !slices.Equal(m.Labels, []int32{0, 1}) {
		t.Errorf("%q of %q, labels %v", m.Files, m.Classes, m.Labels)
	}
	for i := range m.Files {
		if err := m.Read(i, 1, 1, make([]float32, 3)); err != nil {
			t.Error(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "all"), filepath.Join(dir, "all", "a", "back")); err != nil {
		t.Fatal(err)
	}
	if _, err := dataset.OpenImages(os.DirFS(filepath.Join(dir, "all"))); !errors.Is(err, dataset.ErrDamaged) || !strings.Contains(err.Error(), "a/back") {
		t.Errorf("a link back: %v", err)
	}
}

func TestTokens(t *testing.T) {
	var text []byte
	for i := range 50 {
		text = append(text, byte(i), 1)
	}
	tokens, err := dataset.ReadTokens(bytes.NewReader(text), ir.U16)
	if err != nil || len(tokens) != 50 || tokens[7] != 256+7 {
		t.Fatalf("%v, %v", tokens, err)
	}
	read := func(batches iter.Seq2[map[string]native.Tensor, error]) (all []int32) {
		for batch, err := range batches {
			if err != nil {
				t.Fatal(err)
			}
			x, _ := batch["tokens"].Int32s()
			y, _ := batch["targets"].Int32s()
			for i := range x {
				if y[i] != x[i]+1 || i%4 > 0 && x[i] != x[i-1]+1 {
					t.Errorf("tokens %v, targets %v", x, y)
				}
			}
			all = append(all, x...)
		}
		return all
	}
	epoch := func(n int) []int32 { return read(tokens.Windows(3, 4, 9)(n)) }
	if all := read(tokens[:25].InOrder(3, 4)()); !slices.Equal(all, tokens[:24]) { // two batches, and a token whose successor is unknown
		t.Errorf("the windows in order are %v", all)
	}
	if a, b := epoch(0), epoch(1); len(a) != 48 || slices.Equal(a, b) || !slices.Equal(a, epoch(0)) {
		t.Errorf("epochs %v and %v", a, b)
	}
	if wide, err := dataset.ReadTokens(bytes.NewReader([]byte{1, 0, 0, 0, 2, 1, 0, 0}), ir.U32); err != nil || !slices.Equal(wide, dataset.Tokens{1, 258}) {
		t.Errorf("%v, %v", wide, err)
	}
	for _, c := range []struct {
		data string
		d    ir.DType
		kind error
	}{{"abc", ir.U16, dataset.ErrDamaged}, {"abc\xff", ir.I32, dataset.ErrDamaged}, {"ab", ir.F16, ir.ErrDType}} {
		if _, err := dataset.ReadTokens(strings.NewReader(c.data), c.d); !errors.Is(err, c.kind) {
			t.Errorf("%q: %v", c.data, err)
		}
	}
	for _, size := range [][2]int{{0, 1}, {1, 0}, {10, 5}, {1, 50}} {
		for _, err := range tokens.Windows(size[0], size[1], 1)(0) {
			if !errors.Is(err, ir.ErrAttr) {
				t.Errorf("%v: %v", size, err)
			}
		}
		for _, err := range tokens.InOrder(size[0], size[1])() {
			if !errors.Is(err, ir.ErrAttr) {
				t.Errorf("in order, %v: %v", size, err)
			}
		}
	}
}

func FuzzIDX(f *testing.F) {
	f.Add([]byte{0, 0, 8, 1, 0, 0, 0, 2, 1, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := dataset.ReadIDX(bytes.NewReader(data))
		if err == nil && x.Check() != nil || err != nil && !errors.Is(err, dataset.ErrDamaged) {
			t.Errorf("%v, %v", x, err)
		}
	})
}

// TestBadArguments has a nil reader, images that are nil or were not opened, and pictures without pixels.
func TestBadArguments(t *testing.T) {
	first := func(m *dataset.Images, size, height int) error {
		for _, err := range m.Batches(size, height, 2, 0)(0) {
			return err
		}
		return nil
	}
	loose := &dataset.Images{Classes: []string{"c"}, Files: []string{"c/a.png"}, Labels: []int32{0}}
	_, err := dataset.ReadTokens(nil, ir.U16)
	for name, err := range map[string]error{
		"no reader": err, "no images": first(nil, 1, 2), "no height": first(loose, 1, -2), "no folder": first(loose, 1, 2),
		"too high": first(loose, 1, math.MaxInt),
	} {
		if !errors.Is(err, ir.ErrAttr) {
			t.Errorf("%s: %v, want %v", name, err, ir.ErrAttr)
		}
	}
}
