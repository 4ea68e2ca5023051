// Package safetensors reads and writes files of named tensors in the safetensors format
// (https://github.com/huggingface/safetensors): the length of the header as a little-endian
// u64, the header in JSON, then the bytes of all tensors without gaps. [WriteFile] and [ReadFile]
// are for whole files; [Open] reads tensors of large files as they are asked for, and
// [WriteAdapter] and [ReadAdapter] the files of adapters as PEFT has them.
//
// Tensors go between files and the parameters of sessions; the loaders below native/lm and native/models
// are above it. Start reading at safetensors.go, then header.go, which checks a header, and lazy.go.
package safetensors

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rlx-go/rlx/internal/tensorfile"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// ErrDamaged is the kind of the errors for malformed files.
var ErrDamaged = errors.New("damaged safetensors file")

// maxHeader bounds the header, as the reference implementation does.
const maxHeader = 100 << 20

// maxRank bounds the rank of a tensor, as in NumPy.
const maxRank = 64

// metadataKey is the header's entry that is not a tensor.
const metadataKey = "__metadata__"

// names maps element types to their names in the format.
var names = map[ir.DType]string{
	ir.Bool: "BOOL", ir.I8: "I8", ir.I16: "I16", ir.I32: "I32", ir.I64: "I64",
	ir.U8: "U8", ir.U16: "U16", ir.U32: "U32", ir.U64: "U64",
	ir.F8E4M3: "F8_E4M3", ir.F8E5M2: "F8_E5M2", ir.F16: "F16", ir.BF16: "BF16", ir.F32: "F32", ir.F64: "F64", ir.C64: "C64",
}

// Write writes tensors sorted by name, with metadata, which may be nil. The error is of
// kind [ir.ErrName] for a reserved name and for names or metadata that are not UTF-8,
// [ir.ErrDType] for an element type that the format lacks, and [ir.ErrShape] for more than
// 64 axes.
func Write(w io.Writer, tensors map[string]native.Tensor, metadata map[string]string) error {
	if w == nil {
		return ir.Attrf("w is nil: it must be a writer")
	}
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		t := tensors[name]
		entries = append(entries, Entry{Name: name, DType: t.DType, Dims: t.Dims, Write: func(w io.Writer) error {
			_, err := w.Write(t.Data)
			return err
		}})
		if err := entries[len(entries)-1].check(); err != nil {
			return err
		}
		if err := t.Check(); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	return WriteEntries(w, entries, metadata)
}

// Entry is a tensor to write whose elements need not be in memory with the others.
type Entry struct {
	Name  string
	DType ir.DType
	Dims  []int
	// Write writes the elements, little endian and row-major, as many bytes as the type has.
	Write func(w io.Writer) error
}

func (e Entry) check() error {
	switch {
	case e.Name == metadataKey:
		return ir.Errorf(ir.ErrName, "invalid tensor name %q", e.Name)
	case !utf8.ValidString(e.Name):
		return ir.Errorf(ir.ErrName, "invalid tensor name %q: it must be UTF-8", e.Name)
	case len(e.Dims) > maxRank:
		return ir.Shapef("tensor %q has %d axes; the limit is %d", e.Name, len(e.Dims), maxRank)
	case names[e.DType] == "":
		return ir.DTypef("tensor %q is %s; the format has no such type", e.Name, e.DType)
	}
	return nil
}

// bytes returns the number of bytes of the elements.
func (e Entry) bytes() (int64, error) {
	n := int64(e.DType.Size())
	for _, d := range e.Dims {
		if d < 0 || d > 0 && n > (1<<62)/int64(d) {
			return 0, ir.Shapef("tensor %q has shape %v; sizes must be 0 or greater, and the bytes fit 62 bits", e.Name, e.Dims)
		}
		n *= int64(d)
	}
	return n, nil
}

// WriteEntries writes tensors in the given order, one after the other: the memory that it takes is that
// of the header. The errors are those of [Write], and [ir.ErrShape] for an entry that writes more or
// fewer bytes than its type has, [ir.ErrName] for a name that is given twice.
func WriteEntries(w io.Writer, entries []Entry, metadata map[string]string) error {
	if w == nil {
		return ir.Attrf("w is nil: it must be a writer")
	}
	header := map[string]any{}
	if len(metadata) > 0 {
		header[metadataKey] = metadata
	}
	for key, text := range metadata {
		if !utf8.ValidString(key) || !utf8.ValidString(text) {
			return ir.Errorf(ir.ErrName, "metadata %q is %q; it must be UTF-8", key, text)
		}
	}
	at := int64(0)
	for _, e := range entries {
		if err := e.check(); err != nil {
			return err
		}
		n, err := e.bytes()
		if err != nil {
			return err
		}
		if header[e.Name] != nil {
			return ir.Errorf(ir.ErrName, "tensor %q is given twice", e.Name)
		}
		header[e.Name] = map[string]any{"dtype": names[e.DType], "shape": append([]int{}, e.Dims...), "data_offsets": [2]int64{at, at + n}}
		at += n
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	text = append(text, strings.Repeat(" ", -len(text)&7)...) // tensors begin on 8 bytes
	out := bufio.NewWriter(w)
	if err := binary.Write(out, binary.LittleEndian, uint64(len(text))); err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	for _, e := range entries {
		size, _ := e.bytes()
		if err := tensorfile.Write(out, e.Name, size, e.Write); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Read reads all tensors of a file. Errors are of kind [ErrDamaged] or those of r. The
// tensors have memory of their own, in total no more than the file.
func Read(r io.Reader) (tensors map[string]native.Tensor, metadata map[string]string, err error) {
	if r == nil {
		return nil, nil, ir.Attrf("r is nil: it must be a reader")
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, nil, err
	}
	return Decode(data)
}

// Decode reads a file in memory, like [Read]. The tensors do not share that memory.
func Decode(data []byte) (tensors map[string]native.Tensor, metadata map[string]string, err error) {
	n, err := headerLength(data[:min(8, len(data))], int64(len(data)))
	if err != nil {
		return nil, nil, err
	}
	h, err := parseHeader(data[8 : 8+n])
	if err != nil {
		return nil, nil, damaged("header: %v", err)
	}
	body := data[8+n:]
	// Memory is allocated only after this check: the tensors do not overlap.
	if err := checkTensors(h.tensors, int64(len(body))); err != nil {
		return nil, nil, err
	}
	tensors = make(map[string]native.Tensor, len(h.tensors))
	for _, p := range h.tensors {
		if !p.dtype.Valid() {
			return nil, nil, damaged("tensor %q: unknown element type %q", p.name, p.typeName)
		}
		t := native.Tensor{DType: p.dtype, Dims: p.dims, Data: body[p.from:p.to]}
		if err := t.Check(); err != nil {
			return nil, nil, damaged("tensor %q: %v", p.name, err)
		}
		tensors[p.name] = t.Clone()
	}
	return tensors, h.metadata, nil
}

// checkTensors checks that the tensors cover the body without gap or overlap. It sorts them
// by offset.
func checkTensors(tensors []tensorInfo, size int64) error {
	slices.SortFunc(tensors, func(a, b tensorInfo) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	at := int64(0)
	for _, p := range tensors {
		if p.from != at || p.to < p.from {
			return damaged("tensor %q has bytes %d to %d; it must start at %d", p.name, p.from, p.to, at)
		}
		at = p.to
	}
	if at != size {
		return damaged("the file has %d bytes of data; its tensors have %d", size, at)
	}
	return nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
