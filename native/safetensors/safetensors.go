// Package safetensors reads and writes files of named tensors in the format of
// that name (https://github.com/huggingface/safetensors): the length of a
// header as a little-endian u64, the header in JSON, then the bytes of all
// tensors without gaps.
package safetensors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// ErrDamaged is the kind of every error for a file that is not whole and well
// formed.
var ErrDamaged = errors.New("damaged safetensors file")

// maxHeader bounds the header, as the format's own readers do.
const maxHeader = 100 << 20

// metadataKey is the header's entry that is no tensor.
const metadataKey = "__metadata__"

// names are the words of the format for element types.
var names = map[ir.DType]string{
	ir.Bool: "BOOL", ir.I8: "I8", ir.I16: "I16", ir.I32: "I32", ir.I64: "I64",
	ir.U8: "U8", ir.U16: "U16", ir.U32: "U32", ir.U64: "U64",
	ir.F16: "F16", ir.BF16: "BF16", ir.F32: "F32", ir.F64: "F64", ir.C64: "C64",
}

// entry is a tensor in the header.
type entry struct {
	DType   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// Write writes tensors in the order of their names, with metadata, which may be
// nil. The error is of kind [ir.ErrName] for a name that the format reserves,
// [ir.ErrDType] for an element type that it does not have.
func Write(w io.Writer, tensors map[string]native.Tensor, metadata map[string]string) error {
	header := map[string]any{}
	if len(metadata) > 0 {
		header[metadataKey] = metadata
	}
	at := 0
	order := slices.Sorted(maps.Keys(tensors))
	for _, name := range order {
		t := tensors[name]
		if name == metadataKey {
			return ir.Errorf(ir.ErrName, "a tensor cannot be called %q", name)
		}
		if names[t.DType] == "" {
			return ir.DTypef("tensor %q: the format has no %s", name, t.DType)
		}
		if err := t.Check(); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		header[name] = entry{names[t.DType], append([]int{}, t.Dims...), [2]int{at, at + len(t.Data)}}
		at += len(t.Data)
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
	for _, name := range order {
		if _, err := out.Write(tensors[name].Data); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Read reads all tensors of a file. Errors of the file are of kind [ErrDamaged];
// others are those of r. No more memory is taken than the file has bytes for.
func Read(r io.Reader) (tensors map[string]native.Tensor, metadata map[string]string, err error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, nil, err
	}
	return Decode(data)
}

// Decode is [Read] for a file in memory, which the tensors do not share.
func Decode(data []byte) (tensors map[string]native.Tensor, metadata map[string]string, err error) {
	header, body, err := split(data)
	if err != nil {
		return nil, nil, err
	}
	tensors = map[string]native.Tensor{}
	var spans [][2]int
	for name, raw := range header {
		if name == metadataKey {
			if err := json.Unmarshal(raw, &metadata); err != nil {
				return nil, nil, damaged("metadata: %v", err)
			}
			continue
		}
		t, span, err := decodeTensor(raw, body)
		if err != nil {
			return nil, nil, damaged("tensor %q: %v", name, err)
		}
		tensors[name] = t
		spans = append(spans, span)
	}
	return tensors, metadata, checkSpans(spans, len(body))
}

// split returns the header and what comes after it.
func split(data []byte) (map[string]json.RawMessage, []byte, error) {
	if len(data) < 8 {
		return nil, nil, damaged("%d bytes", len(data))
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader || n > uint64(len(data)-8) {
		return nil, nil, damaged("a header of %d bytes in a file of %d", n, len(data))
	}
	text := data[8 : 8+n]
	if err := noRepeatedNames(text); err != nil {
		return nil, nil, err
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(text, &header); err != nil {
		return nil, nil, damaged("header: %v", err)
	}
	return header, data[8+n:], nil
}

// noRepeatedNames makes sure that no tensor is there twice, which package json
// would not notice.
func noRepeatedNames(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return damaged("the header is no JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return damaged("header: %v", err)
		}
		name, _ := t.(string)
		if seen[name] {
			return damaged("tensor %q is there twice", name)
		}
		seen[name] = true
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return damaged("header: %v", err)
		}
	}
	return nil
}

func decodeTensor(raw json.RawMessage, body []byte) (native.Tensor, [2]int, error) {
	var e entry
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return native.Tensor{}, e.Offsets, err
	}
	t := native.Tensor{Dims: append([]int{}, e.Shape...)}
	for dt, name := range names {
		if name == e.DType {
			t.DType = dt
		}
	}
	from, to := e.Offsets[0], e.Offsets[1]
	if from < 0 || from > to || to > len(body) {
		return t, e.Offsets, fmt.Errorf("bytes %d to %d of %d", from, to, len(body))
	}
	t.Data = body[from:to]
	if err := t.Check(); err != nil {
		return t, e.Offsets, err
	}
	return t.Clone(), e.Offsets, nil
}

// checkSpans makes sure that the tensors cover the body without gap or overlap.
func checkSpans(spans [][2]int, size int) error {
	slices.SortFunc(spans, func(a, b [2]int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return a[1] - b[1]
	})
	at := 0
	for _, s := range spans {
		if s[0] != at {
			return damaged("a gap or an overlap at byte %d of the data", at)
		}
		at = s[1]
	}
	if at != size {
		return damaged("%d bytes of data, %d of them a tensor's", size, at)
	}
	return nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
