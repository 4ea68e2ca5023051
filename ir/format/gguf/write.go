package gguf

import (
	"bufio"
	"encoding/binary"
	"io"
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

// Write writes a file of version 3. Tensors are written one after the other, so that memory holds
// only the metadata. The error is of kind [ir.ErrDType] for an invalid metadata value,
// [ir.ErrUnsupported] for an unknown type, and [ir.ErrName] for a repeated name. It is of kind
// [ir.ErrShape] for a tensor of more than four axes, rows that are no whole blocks, or a number of
// bytes that differs from the type's.
func Write(w io.Writer, metadata []Pair, tensors []Entry) error {
	if w == nil {
		return ir.Attrf("w is nil: it must be a writer")
	}
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
				return nil, nil, ir.Shapef("tensor %q has shape %v; sizes must be 0 or greater, and the elements fit 48 bits", t.Name, t.Dims)
			}
			n *= int64(d)
		}
		switch {
		case names[t.Name]:
			return nil, nil, ir.Errorf(ir.ErrName, "tensor %q is given twice", t.Name)
		case elements == 0:
			return nil, nil, ir.Errorf(ir.ErrUnsupported, "tensor %q has the unknown type %v", t.Name, t.Type)
		case len(t.Dims) > maxDims || len(t.Dims) > 0 && t.Dims[len(t.Dims)-1]%elements != 0 || len(t.Dims) == 0 && elements > 1:
			return nil, nil, ir.Shapef("tensor %q of %v has shape %v; it must have up to %d axes, the last of whole blocks of %d", t.Name, t.Type, t.Dims, maxDims, elements)
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

// appendValue appends the kind of a value and the value. Arrays of arrays are not written.
func appendValue(b []byte, v any) ([]byte, error) {
	le := binary.LittleEndian
	k, list, ok := kindOf(v)
	if !ok {
		return nil, ir.DTypef("metadata cannot have a value of type %T", v)
	}
	if list {
		b = le.AppendUint32(b, uint32(kindArray))
	}
	b = le.AppendUint32(b, uint32(k))
	switch v := v.(type) {
	case string:
		return appendText(b, v), nil
	case []string:
		b = le.AppendUint64(b, uint64(len(v)))
		for _, s := range v {
			b = appendText(b, s)
		}
		return b, nil
	}
	if list {
		b = le.AppendUint64(b, uint64(binary.Size(v))/k.minBytes())
	}
	return binary.Append(b, le, v)
}

// kindOf returns the kind of a value, or of the elements of a slice.
func kindOf(v any) (k kind, list, ok bool) {
	switch v.(type) {
	case string:
		return kindText, false, true
	case []string:
		return kindText, true, true
	}
	for k, number := range numbers {
		if one, list := number.matches(v); one || list {
			return k, list, true
		}
	}
	return 0, false, false
}
