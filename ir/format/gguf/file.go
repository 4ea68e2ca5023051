package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/tensorfile"
	"github.com/rlx-go/rlx/ir"
)

// ErrDamaged is the kind of the errors for data that are no GGUF file.
var ErrDamaged = errors.New("damaged GGUF file")

func damaged(text string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(text, args...))
}

// File is an open file, or the parts of a model that is split. It may be used by several goroutines.
type File struct {
	version uint32
	values  map[string]any
	tensors map[string]located
	parts   []*tensorfile.File
}

// located is where a tensor is.
type located struct {
	Info
	part *tensorfile.File
	at   int64
}

// Info describes a tensor.
type Info struct {
	Type Type
	// Dims are the sizes of its axes, outermost first, as graphs have them: a matrix of a linear layer is
	// [out, in]. The file has them in the other order.
	Dims []int
	// Bytes is the number of bytes of the elements.
	Bytes int64
}

// Open opens a file. If its metadata name it as the first part of a split model, it also opens the
// other parts in the same folder, NAME-00002-of-00003.gguf and so on. Files are mapped into memory
// where the system supports it: opening reads only metadata and the list of tensors. Errors are of
// kind [ErrDamaged], [ir.ErrUnsupported] for an unknown version or byte order, or those of the
// system.
func Open(name string) (*File, error) {
	m, err := tensorfile.Open(name)
	if err != nil {
		return nil, err
	}
	f := newFile()
	if err := f.add(m, true); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), m.Close())
	}
	if err := f.openParts(name); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return f, nil
}

// OpenAt opens a file of size bytes that is read from r as tensors are asked for; a part of a split model
// has its own tensors. Closing does not close r.
func OpenAt(r io.ReaderAt, size int64) (*File, error) {
	f := newFile()
	if err := f.add(tensorfile.Of(r, size), true); err != nil {
		return nil, err
	}
	return f, nil
}

func newFile() *File { return &File{values: map[string]any{}, tensors: map[string]located{}} }

// maxParts bounds the parts of a model.
const maxParts = 4096

// openParts opens the other parts of a split model.
func (f *File) openParts(name string) error {
	count, _ := f.Int("split.count")
	if count <= 1 {
		return nil
	}
	folder, base := filepath.Split(name)
	if folder == "" {
		folder = "."
	}
	first := fmt.Sprintf("-00001-of-%05d.gguf", count)
	prefix, ok := strings.CutSuffix(base, first)
	if number, _ := f.Int("split.no"); !ok || number != 0 || count > maxParts {
		return damaged("it is part %d of %d of a model; the name of the first ends in %q", number+1, count, first)
	}
	for i := int64(1); i < count; i++ {
		m, err := tensorfile.OpenIn(folder, fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, i+1, count))
		if err != nil {
			return err
		}
		if err := f.add(m, false); err != nil {
			return errors.Join(fmt.Errorf("part %d: %w", i+1, err), m.Close())
		}
	}
	if want, given := f.Int("split.tensors.count"); given && want != int64(len(f.tensors)) {
		return damaged("the parts have %d tensors; the first says %d", len(f.tensors), want)
	}
	return nil
}

// add reads the metadata and the tensors of a file. Later parts may repeat metadata, which do not count.
func (f *File) add(m *tensorfile.File, first bool) error {
	r := &reader{file: m}
	if string(r.bytes(4)) != "GGUF" {
		return cmp.Or(r.err, damaged("it does not begin with GGUF"))
	}
	version := r.u32()
	switch {
	case r.err == nil && version != 2 && version != 3 && version&0xffff == 0:
		return ir.Errorf(ir.ErrUnsupported, "the file is big endian")
	case r.err == nil && version != 2 && version != 3:
		return ir.Errorf(ir.ErrUnsupported, "version %d; 2 and 3 are known", version)
	}
	tensors, keys := r.u64(), r.u64()
	values := r.metadata(keys)
	list := r.infos(tensors)
	if r.err != nil {
		return r.err
	}
	alignment := int64(32)
	if a, given := intOf(values["general.alignment"]); given {
		alignment = a
	}
	if alignment < 1 || alignment > 1<<20 || alignment&(alignment-1) != 0 {
		return damaged("general.alignment is %d; it must be a power of two up to %d", alignment, 1<<20)
	}
	begin := (r.at + alignment - 1) / alignment * alignment
	for _, t := range list {
		if _, twice := f.tensors[t.name]; twice {
			return damaged("tensor %q is there twice", t.name)
		}
		if t.offset%alignment != 0 || t.Bytes > m.Size()-begin || t.offset > m.Size()-begin-t.Bytes {
			return damaged("tensor %q, %v of %v, has %d bytes at %d, beyond the end of the file", t.name, t.Type, t.Dims, t.Bytes, t.offset)
		}
		f.tensors[t.name] = located{t.Info, m, begin + t.offset}
	}
	if first {
		f.version, f.values = version, values
	}
	f.parts = append(f.parts, m)
	return nil
}

// Version returns the version of the format.
func (f *File) Version() int { return int(f.version) }

// Keys returns the keys of the metadata, sorted.
func (f *File) Keys() []string { return slices.Sorted(maps.Keys(f.values)) }

// Value returns the value of a key: an int8 to int64, uint8 to uint64, float32, float64, bool, string, or
// a slice of these; nil if there is none. Arrays of arrays are []any. The slice must not be changed.
func (f *File) Value(key string) any { return f.values[key] }

// Text returns the value of a key that is a string.
func (f *File) Text(key string) (string, bool) {
	s, ok := f.values[key].(string)
	return s, ok
}

// Int returns the value of a key that is an integer within int64.
func (f *File) Int(key string) (int64, bool) { return intOf(f.values[key]) }

func intOf(v any) (int64, bool) {
	switch x := v.(type) {
	case int8:
		return int64(x), true
	case int16:
		return int64(x), true
	case int32:
		return int64(x), true
	case int64:
		return x, true
	case uint8:
		return int64(x), true
	case uint16:
		return int64(x), true
	case uint32:
		return int64(x), true
	case uint64:
		return int64(x), x < 1<<63
	}
	return 0, false
}

// Float returns the value of a key that is a float.
func (f *File) Float(key string) (float64, bool) {
	switch x := f.values[key].(type) {
	case float32:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

// Names returns the names of the tensors, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.tensors)) }

// Info describes a tensor; false if there is none of that name.
func (f *File) Info(name string) (Info, bool) {
	t, ok := f.tensors[name]
	return t.Info, ok
}

// Bytes returns the stored elements of a tensor: a read-only window of the file where it is mapped,
// not to be used after [File.Close]. The error is of kind [ir.ErrName] for an unknown name.
func (f *File) Bytes(name string) ([]byte, error) {
	if f == nil {
		return nil, ir.Attrf("the file is nil: it must be from Open")
	}
	t, ok := f.tensors[name]
	if !ok {
		return nil, ir.Errorf(ir.ErrName, "there is no tensor %q", name)
	}
	data, err := t.part.Window(t.at, t.Info.Bytes)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	return data, nil
}

// Floats returns the elements of a tensor, row-major. Errors are those of [File.Bytes] and [Dequantize].
func (f *File) Floats(name string) ([]float32, error) {
	data, err := f.Bytes(name)
	if err != nil {
		return nil, err
	}
	t := f.tensors[name].Type
	elements, bytes := t.Block()
	out := make([]float32, len(data)/bytes*elements)
	if err := Dequantize(t, out, data); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	return out, nil
}

// Close closes the files and releases their memory.
func (f *File) Close() error {
	if f == nil {
		return ir.Attrf("the file is nil: it must be from Open")
	}
	var errs []error
	for _, m := range f.parts {
		errs = append(errs, m.Close())
	}
	f.parts = nil
	return errors.Join(errs...)
}
