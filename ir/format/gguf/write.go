package gguf

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/tensorfile"
	"github.com/rlx-go/rlx/ir"
)

// Pair is a key of the metadata with its value, of one of the types of [File.Value].
type Pair struct {
	Key   string
	Value any
}

// Entry is a tensor to write.
type Entry struct {
	Name string
	Type Type
	Dims []int // outermost first
	// Write writes the elements, in the size that the type has for them.
	Write func(w io.Writer) error
}

// writeAlignment is that of tensors, the default of the format.
const writeAlignment = 32

// Write writes a file of version 3. Tensors are written one after the other: the memory that it takes is
// that of the metadata. The error is of kind [ir.ErrDType] for a value that metadata cannot have,
// [ir.ErrUnsupported] for a type that is not known, [ir.ErrName] for a name that is given twice,
// [ir.ErrShape] for a tensor of more than four axes, rows that are no whole blocks, or other bytes than
// the type has.
func Write(w io.Writer, metadata []Pair, tensors []Entry) error {
	head := []byte("GGUF")
	head = binary.LittleEndian.AppendUint32(head, 3)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(tensors)))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(metadata)))
	keys := map[string]bool{}
	for _, p := range metadata {
		if keys[p.Key] {
			return ir.Errorf(ir.ErrName, "key %q is given twice", p.Key)
		}
		if n, is := intOf(p.Value); p.Key == "general.alignment" && (!is || n != writeAlignment) {
			return ir.Attrf("general.alignment is %v; tensors are aligned to %d bytes", p.Value, writeAlignment)
		}
		keys[p.Key] = true
		head = appendText(head, p.Key)
		var err error
		if head, err = appendValue(head, p.Value); err != nil {
			return err
		}
	}
	sizes, head, err := appendInfos(head, tensors)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if _, err := out.Write(padded(head)); err != nil {
		return err
	}
	for i, t := range tensors {
		if err := tensorfile.Write(out, t.Name, sizes[i], t.Write); err != nil {
			return err
		}
		if _, err := out.Write(make([]byte, -sizes[i]&(writeAlignment-1))); err != nil {
			return err
		}
	}
	return out.Flush()
}

// padded appends zeros up to the alignment.
func padded(b []byte) []byte { return append(b, make([]byte, -len(b)&(writeAlignment-1))...) }

// appendInfos appends the list of tensors and returns their numbers of bytes.
func appendInfos(head []byte, tensors []Entry) (sizes []int64, out []byte, err error) {
	names := map[string]bool{}
	at := int64(0)
	for _, t := range tensors {
		elements, bytes := t.Type.Block()
		n := int64(1)
		for _, d := range t.Dims {
			if d < 0 || d > 0 && n > maxSize/int64(d) {
				return nil, nil, ir.Shapef("tensor %q has shape %v", t.Name, t.Dims)
			}
			n *= int64(d)
		}
		switch {
		case names[t.Name]:
			return nil, nil, ir.Errorf(ir.ErrName, "tensor %q is given twice", t.Name)
		case elements == 0:
			return nil, nil, ir.Errorf(ir.ErrUnsupported, "tensor %q has %v", t.Name, t.Type)
		case len(t.Dims) > maxDims || len(t.Dims) > 0 && t.Dims[len(t.Dims)-1]%elements != 0 || len(t.Dims) == 0 && elements > 1:
			return nil, nil, ir.Shapef("tensor %q of %v has shape %v", t.Name, t.Type, t.Dims)
		}
		names[t.Name] = true
		head = appendText(head, t.Name)
		head = binary.LittleEndian.AppendUint32(head, uint32(len(t.Dims)))
		for _, d := range slices.Backward(t.Dims) {
			head = binary.LittleEndian.AppendUint64(head, uint64(d))
		}
		head = binary.LittleEndian.AppendUint32(head, uint32(t.Type))
		head = binary.LittleEndian.AppendUint64(head, uint64(at))
		size := n / int64(elements) * int64(bytes)
		sizes = append(sizes, size)
		at += (size + writeAlignment - 1) / writeAlignment * writeAlignment
	}
	return sizes, head, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue appends the kind of a value and the value.
func appendValue(b []byte, v any) ([]byte, error) {
	if k, ok := kindOf(v); ok {
		return appendScalar(binary.LittleEndian.AppendUint32(b, uint32(k)), v), nil
	}
	list, k, ok := elementsOf(v)
	if !ok {
		return nil, ir.DTypef("metadata cannot have a value of type %T", v)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(kindArray))
	b = binary.LittleEndian.AppendUint32(b, uint32(k))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(list)))
	for _, x := range list {
		b = appendScalar(b, x)
	}
	return b, nil
}

// kindOf returns the kind of a number, a boolean or a string.
func kindOf(v any) (kind, bool) {
	switch v.(type) {
	case uint8:
		return kindU8, true
	case int8:
		return kindI8, true
	case uint16:
		return kindU16, true
	case int16:
		return kindI16, true
	case uint32:
		return kindU32, true
	case int32:
		return kindI32, true
	case float32:
		return kindF32, true
	case bool:
		return kindBool, true
	case string:
		return kindText, true
	case uint64:
		return kindU64, true
	case int64:
		return kindI64, true
	case float64:
		return kindF64, true
	}
	return 0, false
}

// elementsOf returns the elements of a slice and their kind. Arrays of arrays are not written.
func elementsOf(v any) ([]any, kind, bool) {
	switch x := v.(type) {
	case []uint8:
		return anys(x), kindU8, true
	case []int8:
		return anys(x), kindI8, true
	case []uint16:
		return anys(x), kindU16, true
	case []int16:
		return anys(x), kindI16, true
	case []uint32:
		return anys(x), kindU32, true
	case []int32:
		return anys(x), kindI32, true
	case []float32:
		return anys(x), kindF32, true
	case []bool:
		return anys(x), kindBool, true
	case []string:
		return anys(x), kindText, true
	case []uint64:
		return anys(x), kindU64, true
	case []int64:
		return anys(x), kindI64, true
	case []float64:
		return anys(x), kindF64, true
	}
	return nil, 0, false
}

func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = x
	}
	return out
}

// appendScalar appends a value of one of the kinds of kindOf.
func appendScalar(b []byte, v any) []byte {
	le := binary.LittleEndian
	switch x := v.(type) {
	case uint8:
		return append(b, x)
	case int8:
		return append(b, byte(x))
	case uint16:
		return le.AppendUint16(b, x)
	case int16:
		return le.AppendUint16(b, uint16(x))
	case uint32:
		return le.AppendUint32(b, x)
	case int32:
		return le.AppendUint32(b, uint32(x))
	case float32:
		return le.AppendUint32(b, math.Float32bits(x))
	case bool:
		if x {
			return append(b, 1)
		}
		return append(b, 0)
	case string:
		return appendText(b, x)
	case uint64:
		return le.AppendUint64(b, x)
	case int64:
		return le.AppendUint64(b, uint64(x))
	case float64:
		return le.AppendUint64(b, math.Float64bits(x))
	}
	return b
}
