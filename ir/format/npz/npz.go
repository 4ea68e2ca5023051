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
	"errors"
	"fmt"
	"io"
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

// Array reads an array. The error is of kind [ir.ErrName] for an unknown name and otherwise that of
// [Read].
func (f *File) Array(name string) (*ir.Array, error) {
	e := f.entries[name]
	if e == nil {
		return nil, ir.Errorf(ir.ErrName, "there is no array %q", name)
	}
	r, err := e.Open()
	if err != nil {
		return nil, damaged("array %q: %v", name, err)
	}
	defer r.Close() // read only
	a, err := Read(r)
	if err != nil {
		return nil, fmt.Errorf("array %q: %w", name, err)
	}
	return a, nil
}

// Close closes the file.
func (f *File) Close() error { return f.end() }

// Write writes an archive of arrays, in the order of their names, without compression. The error is of
// kind [ir.ErrDType] for an element type that NumPy has not.
func Write(w io.Writer, arrays map[string]*ir.Array) error {
	z := zip.NewWriter(w)
	names := make([]string, 0, len(arrays))
	for name := range arrays {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		e, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if err := WriteArray(e, arrays[name]); err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
	}
	return z.Close()
}
