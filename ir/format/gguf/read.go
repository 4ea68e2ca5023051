package gguf

import (
	"encoding/binary"
	"math"

	"github.com/rlx-go/rlx/internal/tensorfile"
)

// Bounds of a file's lists, against memory that a hostile file would take: each element of a list takes
// some bytes of the file as well.
const (
	maxNesting = 8 // arrays of arrays
	maxDims    = 4 // axes of a tensor
	maxKey     = 1 << 16
	maxName    = 1 << 10 // bytes of a tensor's name, which errors quote
	maxSize    = 1 << 48 // elements of a tensor
)

// reader reads a file from its start. After an error it returns zeros.
type reader struct {
	file *tensorfile.File
	at   int64
	err  error
}

func (r *reader) fail(text string, args ...any) {
	if r.err == nil {
		r.err = damaged(text, args...)
	}
}

// bytes returns the next n bytes, nil where the file has fewer.
func (r *reader) bytes(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(r.file.Size()-r.at) {
		r.fail("the file has %d bytes; at %d it needs %d more", r.file.Size(), r.at, n)
		return nil
	}
	b, err := r.file.Window(r.at, int64(n))
	if err != nil {
		r.err = err
		return nil
	}
	r.at += int64(n)
	return b
}

func (r *reader) u32() uint32 {
	b := r.bytes(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (r *reader) u64() uint64 {
	b := r.bytes(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (r *reader) text() string { return string(r.bytes(r.u64())) }

// kind is the type of a value of the metadata.
type kind uint32

const (
	kindU8 kind = iota
	kindI8
	kindU16
	kindI16
	kindU32
	kindI32
	kindF32
	kindBool
	kindText
	kindArray
	kindU64
	kindI64
	kindF64
)

// number is how the metadata holds numbers or booleans of a type, and lists of them.
type number struct {
	bytes   uint64
	one     func(b []byte) any // decodes a value
	list    func(b []byte) any // decodes a slice of as many values as b holds
	matches func(v any) (one, list bool)
}

func numberOf[T any]() number {
	size := binary.Size(*new(T))
	return number{
		bytes: uint64(size),
		one: func(b []byte) any {
			var x T
			_, _ = binary.Decode(b, binary.LittleEndian, &x) // b has the size
			return x
		},
		list: func(b []byte) any {
			out := make([]T, len(b)/size)
			_, _ = binary.Decode(b, binary.LittleEndian, out)
			return out
		},
		matches: func(v any) (one, list bool) {
			_, one = v.(T)
			_, list = v.([]T)
			return one, list
		},
	}
}

var numbers = map[kind]number{
	kindU8: numberOf[uint8](), kindI8: numberOf[int8](), kindU16: numberOf[uint16](), kindI16: numberOf[int16](),
	kindU32: numberOf[uint32](), kindI32: numberOf[int32](), kindF32: numberOf[float32](), kindBool: numberOf[bool](),
	kindU64: numberOf[uint64](), kindI64: numberOf[int64](), kindF64: numberOf[float64](),
}

// minBytes returns the least number of bytes of a value, 0 for an unknown kind.
func (k kind) minBytes() uint64 {
	switch k {
	case kindText:
		return 8
	case kindArray:
		return 12
	}
	return numbers[k].bytes
}

// metadata reads the keys and their values.
func (r *reader) metadata(n uint64) map[string]any {
	values := map[string]any{}
	for range n {
		if r.err != nil {
			break
		}
		length := r.u64()
		if length > maxKey {
			r.fail("a key has %d bytes; it must have up to %d", length, maxKey)
			break
		}
		key := string(r.bytes(length))
		v := r.value(kind(r.u32()), 0)
		if _, twice := values[key]; twice {
			r.fail("key %.100q is there twice", key)
		}
		values[key] = v
	}
	return values
}

func (r *reader) value(k kind, depth int) any {
	switch k {
	case kindText:
		return r.text()
	case kindArray:
		return r.array(depth)
	}
	number, ok := numbers[k]
	if !ok {
		r.fail("a value has the unknown type %d", k)
		return nil
	}
	b := r.bytes(number.bytes)
	if b == nil {
		return nil
	}
	return number.one(b)
}

// array reads an array: a slice of its element type.
func (r *reader) array(depth int) any {
	k, n := kind(r.u32()), r.u64()
	if r.err != nil {
		return nil
	}
	size := k.minBytes()
	switch {
	case size == 0:
		r.fail("an array has values of the unknown type %d", k)
		return nil
	case depth > maxNesting:
		r.fail("arrays are nested more than %d deep", maxNesting)
		return nil
	case n > uint64(r.file.Size()-r.at)/size:
		r.fail("an array has %d values of type %d; the file ends before", n, k)
		return nil
	}
	switch k {
	case kindText:
		return repeat(r, n, r.text)
	case kindArray:
		return repeat(r, n, func() any { return r.array(depth + 1) })
	}
	return numbers[k].list(r.bytes(n * size))
}

// repeat reads n values, fewer after an error.
func repeat[T any](r *reader, n uint64, read func() T) (out []T) {
	for range n {
		if r.err != nil {
			break
		}
		out = append(out, read())
	}
	return out
}

// tensorInfo is an entry of the list of tensors.
type tensorInfo struct {
	Info
	name   string
	offset int64
}

// infos reads the list of tensors.
func (r *reader) infos(n uint64) []tensorInfo {
	var out []tensorInfo
	for range n {
		length := r.u64()
		if length > maxName {
			r.fail("the name of a tensor has %d bytes; it must have up to %d", length, maxName)
		}
		t := tensorInfo{name: string(r.bytes(length))}
		axes := r.u32()
		if axes > maxDims {
			r.fail("tensor %q has %d axes; it must have up to %d", t.name, axes, maxDims)
		}
		if r.err != nil {
			return nil
		}
		t.Dims = make([]int, axes)
		product := uint64(1)
		for i := range t.Dims {
			d := r.u64()
			if d > maxSize || d > math.MaxInt || d > 0 && product > maxSize/d {
				r.fail("tensor %q has more than 2^48 elements", t.name)
				return nil
			}
			product *= d
			t.Dims[len(t.Dims)-1-i] = int(d)
		}
		t.Type = Type(r.u32())
		offset := r.u64()
		elements, bytes := t.Type.Block()
		switch {
		case r.err != nil:
			return nil
		case elements == 0:
			r.fail("tensor %q has the unknown type %v", t.name, t.Type)
			return nil
		case axes > 0 && t.Dims[axes-1]%elements != 0 || axes == 0 && elements > 1:
			r.fail("tensor %q of %v: rows of %v are blocks of %d", t.name, t.Dims, t.Type, elements)
			return nil
		case offset > maxSize:
			r.fail("tensor %q is at byte %d; it must be at most %d", t.name, offset, uint64(maxSize))
			return nil
		}
		t.Info.Bytes = int64(product) / int64(elements) * int64(bytes)
		t.offset = int64(offset)
		out = append(out, t)
	}
	return out
}
