// Package tensorfile has the code that readers and writers of files of tensors share. A [File] is
// mapped into memory, or read at offsets if the system cannot map it. [Write] writes a tensor of a
// given size. The file to read first is mapped.go.
package tensorfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
)

// File is an open file. It may be used by several goroutines. A mapped file must not be truncated while
// it is open: reading the missing part ends the process.
type File struct {
	data []byte // nil if the file is not mapped
	at   io.ReaderAt
	size int64
	end  func() error

	closed atomic.Bool
}

// Open opens a regular file without reading its contents.
func Open(name string) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return of(f)
}

// OpenIn opens a file of a folder; paths and links that leave the folder are refused.
func OpenIn(folder, name string) (*File, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close() // the file stays open
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	return of(f)
}

func of(f *os.File) (*File, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	m := &File{at: f, size: info.Size(), end: f.Close}
	if data, unmap := mapFile(f, info.Size()); data != nil {
		m.data = data
		m.end = func() error { return errors.Join(unmap(), f.Close()) }
	}
	return m, nil
}

// Of returns a File that reads from r.
func Of(r io.ReaderAt, size int64) *File {
	return &File{at: r, size: size, end: func() error { return nil }}
}

// Size returns the number of bytes.
func (f *File) Size() int64 { return f.size }

// Window returns n bytes from an offset: read-only memory of the file, or a copy. The error is
// [io.ErrUnexpectedEOF] for a window beyond the end, [fs.ErrClosed] after Close, or that of the read.
func (f *File) Window(from, n int64) ([]byte, error) {
	if f.closed.Load() {
		return nil, fs.ErrClosed // reading memory that is no longer mapped ends the process
	}
	if from < 0 || n < 0 || from > f.size || n > f.size-from || int64(int(n)) != n {
		return nil, io.ErrUnexpectedEOF
	}
	if f.data != nil {
		return f.data[from : from+n : from+n], nil
	}
	out := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(f.at, from, n), out); err != nil {
		return nil, err
	}
	return out, nil
}

// Close releases the memory: windows must not be used afterwards.
func (f *File) Close() error {
	f.closed.Store(true)
	return f.end()
}
