package importer

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// own is the path of the model's own file: a valid path that no file has, as it is that of the folder.
const own = "."

// maxGiven bounds the bytes that a call may ask for: an import computes with few elements of large tensors, and one weight
// is read at a time.
const maxGiven = 512 << 20

// errNeeded is the error of what the host has not given yet.
var errNeeded = errors.New("not given yet")

// files are the files of a model, as far as the host has given them.
type files struct {
	sizes  map[string]int64
	given  map[onnx.Place][]byte
	needed []onnx.Place // without a length: the size of the file
	bytes  int64        // given and needed
}

// Open opens a file whose size is known.
func (f *files) Open(name string) (fs.File, error) {
	if _, known := f.sizes[name]; known {
		return file{f, name}, nil
	}
	f.need(onnx.Place{File: name})
	return nil, errNeeded
}

func (f *files) need(p onnx.Place) {
	if slices.Contains(f.needed, p) {
		return
	}
	f.needed = append(f.needed, p)
	f.bytes += p.Length
}

// forget drops what was given.
func (f *files) forget() {
	clear(f.given)
	f.bytes = 0
}

// ask reports whether something was needed, and answers with it.
func (f *files) ask(w *wire.Response) bool {
	needed := f.needed
	f.needed = nil
	if len(needed) == 0 {
		return false
	}
	w.U32(needsFiles)
	w.U32(len(needed))
	for _, p := range needed {
		writePlace(w, p)
	}
	return true
}

func writePlace(w *wire.Response, p onnx.Place) {
	w.Text(p.File)
	w.F64(float64(p.Offset))
	w.F64(float64(p.Length))
}

// file is an open file.
type file struct {
	files *files
	name  string
}

// ReadAt reads a part that was given, whole.
func (f file) ReadAt(data []byte, offset int64) (int, error) {
	p := onnx.Place{File: f.name, Offset: offset, Length: int64(len(data))}
	if given, ok := f.files.given[p]; ok {
		return copy(data, given), nil
	}
	if f.files.bytes+p.Length > maxGiven {
		return 0, ir.Errorf(ir.ErrUnsupported, "the import computes with more than %d bytes of weights", maxGiven)
	}
	f.files.need(p)
	return 0, errNeeded
}

// Read, Stat and Close complete [fs.File].
func (f file) Read([]byte) (int, error)   { return 0, fs.ErrInvalid }
func (f file) Stat() (fs.FileInfo, error) { return info{f}, nil }
func (f file) Close() error               { return nil }

// info describes a file: its name and size.
type info struct{ file }

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.files.sizes[i.name] }
func (i info) Mode() fs.FileMode  { return 0 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }
