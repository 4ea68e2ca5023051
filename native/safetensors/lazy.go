package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/tensorfile"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// File is an open file, or the files of an index, whose tensors are read when they are asked for.
// [Open] and [OpenAt] open one. It may be used by several goroutines.
type File struct {
	shards   []*tensorfile.File
	tensors  map[string]located
	metadata map[string]string
}

// located is where a tensor is.
type located struct {
	tensorInfo
	shard *tensorfile.File
	begin int64 // of the bytes after the header
}

// Info describes a tensor of a file.
type Info struct {
	// Type is the format's name of the element type: "F32", "F8_E8M0". DType is the same, or invalid
	// for a type that tensors of package native have not, or that the format does not name.
	Type  string
	DType ir.DType
	Dims  []int
	Bytes int64
}

// Open opens a file, or with the name of an index, *.index.json, the files that it lists, which must be
// in the index's folder. It maps them into memory where the system can: opening reads the headers
// alone, and tensors are windows of the files. Errors are of kind [ErrDamaged] or those of the
// system.
func Open(name string) (*File, error) {
	if strings.HasSuffix(name, ".index.json") {
		f, err := openIndex(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return f, nil
	}
	m, err := tensorfile.Open(name)
	if err != nil {
		return nil, err
	}
	f := &File{tensors: map[string]located{}, metadata: map[string]string{}}
	if err := f.add(m); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), m.Close())
	}
	return f, nil
}

// OpenAt opens a file of size bytes that is read from r as tensors are asked for, as by HTTP ranges.
// Closing does not close r.
func OpenAt(r io.ReaderAt, size int64) (*File, error) {
	if r == nil {
		return nil, ir.Attrf("r is nil: it must be a reader")
	}
	f := &File{tensors: map[string]located{}, metadata: map[string]string{}}
	if err := f.add(tensorfile.Of(r, size)); err != nil {
		return nil, err
	}
	return f, nil
}

// add reads the header of a file and enters its tensors.
func (f *File) add(m *tensorfile.File) error {
	first, err := m.Window(0, min(8, m.Size()))
	if err != nil {
		return err
	}
	n, err := headerLength(first, m.Size())
	if err != nil {
		return err
	}
	text, err := m.Window(8, n)
	if err != nil {
		return err
	}
	h, err := parseHeader(text)
	if err != nil {
		return damaged("header: %v", err)
	}
	begin := 8 + int64(n)
	if err := checkTensors(h.tensors, m.Size()-begin); err != nil {
		return err
	}
	for _, p := range h.tensors {
		if _, twice := f.tensors[p.name]; twice {
			return damaged("tensor %q is in two files", p.name)
		}
		if err := p.check(); err != nil {
			return damaged("tensor %q: %v", p.name, err)
		}
		f.tensors[p.name] = located{p, m, begin}
	}
	maps.Copy(f.metadata, h.metadata)
	f.shards = append(f.shards, m)
	return nil
}

// bitsOf has the sizes of the format's types that tensors have not.
var bitsOf = map[string]int{"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8}

// check compares the size of a tensor with its type, if that is known.
func (p tensorInfo) check() error {
	if p.dtype.Valid() {
		n := 1
		for _, d := range p.dims {
			if d > 0 && n > math.MaxInt/8/d {
				return fmt.Errorf("the shape %v is too large", p.dims)
			}
			n *= d
		}
		want, err := p.dtype.Bytes(n)
		if err == nil && int64(want) != p.to-p.from {
			err = fmt.Errorf("%s of shape %v has %d bytes, not %d", p.typeName, p.dims, want, p.to-p.from)
		}
		return err
	}
	if bits := bitsOf[p.typeName]; bits > 0 {
		n := int64(bits)
		for _, d := range p.dims {
			if d > 0 && n > (1<<62)/int64(d) {
				return fmt.Errorf("the shape %v is too large", p.dims)
			}
			n *= int64(d)
		}
		if n%8 != 0 || n/8 != p.to-p.from {
			return fmt.Errorf("%s of shape %v has %d bits, not %d bytes", p.typeName, p.dims, n, p.to-p.from)
		}
	}
	return nil
}

// index is a file of type *.index.json.
type index struct {
	Weights map[string]string `json:"weight_map"`
}

// maxIndex bounds the text of an index.
const maxIndex = 100 << 20

func openIndex(name string) (f *File, err error) {
	m, err := tensorfile.Open(name)
	if err != nil {
		return nil, err
	}
	defer m.Close() // decoded below
	if m.Size() > maxIndex {
		return nil, damaged("the index has %d bytes", m.Size())
	}
	text, err := m.Window(0, m.Size())
	if err != nil {
		return nil, err
	}
	var list index
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&list); err != nil {
		return nil, damaged("index: %v", err)
	}
	opened := &File{tensors: map[string]located{}, metadata: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	folder := filepath.Dir(name)
	for _, shard := range slices.Compact(slices.Sorted(maps.Values(list.Weights))) {
		m, err := tensorfile.OpenIn(folder, shard)
		if err != nil {
			return nil, err
		}
		if err := opened.add(m); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", shard, err), m.Close())
		}
		for tensor, in := range list.Weights {
			if _, there := opened.tensors[tensor]; in == shard && (!there || opened.tensors[tensor].shard != m) {
				return nil, damaged("tensor %q is not in %s", tensor, shard)
			}
		}
	}
	return opened, nil
}

// Names returns the names of the tensors, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.tensors)) }

// Metadata returns the metadata of the headers.
func (f *File) Metadata() map[string]string { return f.metadata }

// Info describes a tensor; false if there is none of that name.
func (f *File) Info(name string) (Info, bool) {
	t, ok := f.tensors[name]
	return Info{t.typeName, t.dtype, t.dims, t.to - t.from}, ok
}

// Tensor returns a tensor: a window of the file where that is mapped and the tensor is aligned, which
// must not be written nor used after [File.Close], and otherwise a copy. The error is of kind
// [ir.ErrName] for an unknown name and [ir.ErrDType] for an element type that tensors have not, and fs.ErrClosed after
// [File.Close].
func (f *File) Tensor(name string) (native.Tensor, error) {
	if f == nil {
		return native.Tensor{}, ir.Attrf("the file is nil: it must be from Open")
	}
	t, ok := f.tensors[name]
	if !ok {
		return native.Tensor{}, ir.Errorf(ir.ErrName, "there is no tensor %q", name)
	}
	if !t.dtype.Valid() {
		return native.Tensor{}, ir.DTypef("tensor %q has elements of type %q, which tensors have not", name, t.typeName)
	}
	data, err := t.shard.Window(t.begin+t.from, t.to-t.from)
	if err != nil {
		return native.Tensor{}, fmt.Errorf("tensor %q: %w", name, err)
	}
	out := native.Tensor{DType: t.dtype, Dims: slices.Clone(t.dims), Data: data}
	if !out.Aligned() {
		out = out.Clone()
	}
	return out, nil
}

// castElements is the number of elements that are converted at a time.
const castElements = 1 << 16

// As returns a tensor converted to element type d: floats round to nearest even, and integers must be
// in its range. The error is of kind [ir.ErrDType] where they are not, or where a float or a complex
// number would become an integer or a real one.
func (f *File) As(name string, d ir.DType) (native.Tensor, error) {
	t, err := f.Tensor(name)
	if err != nil || t.DType == d {
		return t, err
	}
	whole := d.IsInteger() || d.IsBool()
	if t.DType.IsComplex() || d.IsComplex() || d.IsPacked() || !d.Valid() || whole && t.DType.IsFloat() {
		return native.Tensor{}, ir.DTypef("tensor %q is %s: it cannot be read as %s", name, t.DType, d)
	}
	out := native.Zeros(d, t.Dims...)
	from, to := t.DType.Size(), d.Size()
	for at := 0; at < t.Len(); at += castElements {
		n := min(castElements, t.Len()-at)
		a, err := ir.ArrayOf(ir.TypeOf(t.DType, ir.N(n)), t.Data[at*from:(at+n)*from])
		if err != nil {
			return native.Tensor{}, err
		}
		b, err := cast(a, d)
		if err != nil {
			return native.Tensor{}, fmt.Errorf("tensor %q: %w", name, err)
		}
		copy(out.Data[at*to:], b.Bytes())
	}
	return out, nil
}

// cast converts real numbers.
func cast(a *ir.Array, d ir.DType) (*ir.Array, error) {
	if d.IsFloat() {
		x := make([]float64, a.Len())
		for i := range x {
			x[i] = a.Float(i)
			if a.DType == ir.U64 {
				x[i] = float64(uint64(a.I[i]))
			}
		}
		return ir.Floats(d, x), nil
	}
	for _, x := range a.I {
		if w := d.Wrap(x); w != x || d.IsUnsigned() && !a.DType.IsUnsigned() && x < 0 || a.DType == ir.U64 && d != ir.U64 && x < 0 {
			return nil, ir.DTypef("%d is no %s", x, d)
		}
		if d.IsBool() && x != 0 && x != 1 {
			return nil, ir.DTypef("%d is no %s", x, d)
		}
	}
	return ir.Ints(d, a.I), nil
}

// Close closes the files and gives their memory back.
func (f *File) Close() error {
	if f == nil {
		return ir.Attrf("the file is nil: it must be from Open")
	}
	var errs []error
	for _, m := range f.shards {
		errs = append(errs, m.Close())
	}
	f.shards = nil
	return errors.Join(errs...)
}
