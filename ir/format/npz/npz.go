// Package npz reads and writes NumPy's files of arrays: .npy, one array, and .npz, a zip archive of
// such files.
//
//	arrays, err := npz.Open("weights.npz")
//	w, err := arrays.Array("w")
//
// Pickled objects are refused. The file to read first is npz.go; npy.go has the format of one array.
package npz

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// ErrDamaged is the kind of the errors for data that are no .npy or .npz file.
var ErrDamaged = errors.New("damaged NumPy file")

func damaged(text string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(text, args...))
}

// File is an open archive, whose arrays are read when they are asked for.
type File struct {
	names   []string
	entries map[string]*zip.File
	end     func() error
}

// Open opens an archive.
func Open(name string) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	out, err := OpenAt(f, info.Size())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	out.end = f.Close
	return out, nil
}

// OpenAt opens an archive of size bytes that is read from r. Closing does not close r. The error is of
// kind [ErrDamaged].
func OpenAt(r io.ReaderAt, size int64) (*File, error) {
	if r == nil {
		return nil, ir.Attrf("r is nil: it must be a reader")
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, damaged("%v", err)
	}
	f := &File{entries: map[string]*zip.File{}, end: func() error { return nil }}
	for _, e := range z.File {
		name, ok := strings.CutSuffix(e.Name, ".npy")
		if !ok {
			continue
		}
		if f.entries[name] != nil {
			return nil, damaged("array %q is there twice", name)
		}
		f.names, f.entries[name] = append(f.names, name), e
	}
	slices.Sort(f.names)
	return f, nil
}

// Names returns the names of the arrays, sorted.
func (f *File) Names() []string { return f.names }

// Type returns the type of an array, without its elements. The errors are those of [File.Array].
func (f *File) Type(name string) (t ir.Type, err error) {
	err = f.open(name, func(r io.Reader) error {
		h, err := readHeader(r)
		t = ir.Type{DType: h.dtype, Shape: ir.Dims(h.dims...)}
		return err
	})
	return t, err
}

// Array reads an array. The error is of kind [ir.ErrName] for an unknown name, of kind [ir.ErrUnsupported]
// for a compression other than deflate, which NumPy writes, of kind [ErrDamaged] where the checksum of the archive is another, and
// otherwise that of [Read].
func (f *File) Array(name string) (a *ir.Array, err error) {
	err = f.open(name, func(r io.Reader) (err error) {
		if a, err = Read(r); err == nil {
			err = checkEnd(r)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// checkEnd reads the end of an entry, where zip compares the checksum: elements alone do not reach it.
func checkEnd(r io.Reader) error {
	switch _, err := io.ReadFull(r, make([]byte, 1)); err {
	case nil:
		return damaged("it has more bytes than its elements")
	case io.EOF:
		return nil
	default:
		return readError(err, "%v", err)
	}
}

// readError returns an error of a reader: damage where a file ends, or zip finds it, and otherwise the reader's own error.
func readError(err error, text string, args ...any) error {
	var corrupt flate.CorruptInputError
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, zip.ErrChecksum, zip.ErrFormat} {
		if errors.Is(err, end) {
			return damaged(text, args...)
		}
	}
	if errors.As(err, &corrupt) {
		return damaged("%v", err)
	}
	return err
}

// open calls a function with the file of an array.
func (f *File) open(name string, read func(r io.Reader) error) error {
	if f == nil {
		return ir.Attrf("the file is nil: it must be from Open")
	}
	e := f.entries[name]
	if e == nil {
		return ir.Errorf(ir.ErrName, "there is no array %q", name)
	}
	r, err := e.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return ir.Errorf(ir.ErrUnsupported, "array %q is compressed by method %d of zip; 0 (stored) and 8 (deflate) are read", name, e.Method)
	}
	if err != nil {
		return damaged("array %q: %v", name, err)
	}
	defer r.Close() // read only
	if err := read(r); err != nil {
		return fmt.Errorf("array %q: %w", name, err)
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error {
	if f == nil {
		return ir.Attrf("the file is nil: it must be from Open")
	}
	return f.end()
}

// Entry is an array to write, which is read when it is written.
type Entry struct {
	Name string
	Read func() (*ir.Array, error)
}

// Write writes an archive of arrays, in the order of their names, without compression. The error is of
// kind [ir.ErrDType] for an element type that NumPy has not.
func Write(w io.Writer, arrays map[string]*ir.Array) error {
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		entries = append(entries, Entry{name, func() (*ir.Array, error) { return arrays[name], nil }})
	}
	return WriteEntries(w, entries)
}

// WriteEntries writes an archive of arrays in the given order, with one in memory at a time. The errors are those
// of [Write] and of the entries, and of kind [ir.ErrAttr] for an entry without Read.
func WriteEntries(w io.Writer, entries []Entry) error {
	if w == nil {
		return ir.Attrf("w is nil: it must be a writer")
	}
	z := zip.NewWriter(w)
	for _, e := range entries {
		file, err := z.CreateHeader(&zip.FileHeader{Name: e.Name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if e.Read == nil {
			return ir.Attrf("array %q has no function that reads it", e.Name)
		}
		a, err := e.Read()
		if err == nil {
			err = WriteArray(file, a)
		}
		if err != nil {
			return fmt.Errorf("array %q: %w", e.Name, err)
		}
	}
	return z.Close()
}
