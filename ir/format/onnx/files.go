//go:build !js

package onnx

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
)

// The module of a page, which has no files, is built without these functions and package os.

// ReadFile reads a model file. External weights are read from its folder on demand; paths and links
// that leave the folder are refused.
func ReadFile(name string) (*Model, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	m, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m.files = folder(filepath.Dir(name))
	return m, nil
}

// folder opens files within a folder only.
type folder string

// Open opens a file of the folder.
func (f folder) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return nil, err
	}
	defer root.Close() // the file stays open
	return root.Open(name)
}

// WriteFile writes the model to a file. With external, or for a model of more than 2 GB, the
// elements of weights are in a second file of the same name with ".data" appended.
func (m *Model) WriteFile(name string, external bool) (err error) {
	if m == nil {
		return ir.Attrf("the model is nil: it must be from Decode, ReadFile or Export")
	}
	if !external && m.encode().size <= maxMessage {
		return writeTo(name, m.Write)
	}
	beside := *m
	g := *m.graph
	beside.graph = &g
	var sources []*weightSource
	at := int64(0)
	for i, t := range g.initializers {
		if t.source == nil {
			continue
		}
		moved := *t
		moved.external = map[string]string{
			"location": filepath.Base(name) + ".data", "offset": strconv.FormatInt(at, 10), "length": strconv.FormatInt(t.source.size, 10),
		}
		if sources == nil {
			g.initializers = slices.Clone(g.initializers)
		}
		g.initializers[i] = &moved
		sources = append(sources, t.source)
		at += aligned(t.source.size)
	}
	if err := writeTo(name+".data", func(w io.Writer) error { return writeSources(w, sources) }); err != nil {
		return err
	}
	return writeTo(name, beside.Write)
}

// aligned rounds up to a page, the alignment of external data, so that a runtime can map it.
func aligned(n int64) int64 { return (n + 4095) &^ 4095 }

func writeSources(w io.Writer, sources []*weightSource) error {
	for _, s := range sources {
		data, err := s.bytes()
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		if _, err := w.Write(make([]byte, aligned(s.size)-s.size)); err != nil {
			return err
		}
	}
	return nil
}

// writeTo creates a file and writes it.
func writeTo(name string, write func(w io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
