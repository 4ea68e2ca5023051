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

// kindBytes is the least number of bytes of a value.
var kindBytes = [...]uint64{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8}

// metadata reads the keys and their values.
func (r *reader) metadata(n uint64) map[string]any {
	values := map[string]any{}
	for range n {
		if r.err != nil {
			break
		}
		length := r.u64()
		if length > maxKey {
			r.fail("a key of %d bytes", length)
			break
		}
		key := string(r.bytes(length))
		v := r.value(kind(r.u32()), 0)
		if _, twice := values[key]; twice {
			r.fail("key %q is there twice", key)
		}
		values[key] = v
	}
	return values
}

func (r *reader) value(k kind, depth int) any {
	if int(k) >= len(kindBytes) {
		r.fail("a value of type %d", k)
		return nil
	}
	switch k {
	case kindText:
		return r.text()
	case kindArray:
		return r.array(depth)
	}
	b := r.bytes(kindBytes[k])
	if b == nil {
		return nil
	}
	return scalar(k, b)
}

// scalar decodes a number or a boolean.
func scalar(k kind, b []byte) any {
	le := binary.LittleEndian
	switch k {
	case kindU8:
		return b[0]
	case kindI8:
		return int8(b[0])
	case kindU16:
		return le.Uint16(b)
	case kindI16:
		return int16(le.Uint16(b))
	case kindU32:
		return le.Uint32(b)
	case kindI32:
		return int32(le.Uint32(b))
	case kindF32:
		return math.Float32frombits(le.Uint32(b))
	case kindBool:
		return b[0] != 0
	case kindU64:
		return le.Uint64(b)
	case kindI64:
		return int64(le.Uint64(b))
	}
	return math.Float64frombits(le.Uint64(b))
}

// array reads an array: a slice of its element type.
func (r *reader) array(depth int) any {
	k, n := kind(r.u32()), r.u64()
	if r.err != nil {
		return nil
	}
	if int(k) >= len(kindBytes) || depth > maxNesting || n > uint64(r.file.Size()-r.at)/kindBytes[k] {
		r.fail("an array of %d values of type %d, %d deep", n, k, depth)
		return nil
	}
	switch k {
	case kindU8:
		return r.bytes(n)
	case kindI8:
		return listOf[int8](r, k, n)
	case kindU16:
		return listOf[uint16](r, k, n)
	case kindI16:
		return listOf[int16](r, k, n)
	case kindU32:
		return listOf[uint32](r, k, n)
	case kindI32:
		return listOf[int32](r, k, n)
	case kindF32:
		return listOf[float32](r, k, n)
	case kindBool:
		return listOf[bool](r, k, n)
	case kindU64:
		return listOf[uint64](r, k, n)
	case kindI64:
		return listOf[int64](r, k, n)
	case kindF64:
		return listOf[float64](r, k, n)
	case kindText:
		var out []string
		for range n {
			if r.err != nil {
				break
			}
			out = append(out, r.text())
		}
		return out
	}
	var out []any
	for range n {
		if r.err != nil {
			break
		}
		out = append(out, r.array(depth+1))
	}
	return out
}

// listOf reads n numbers of kind k as a slice of T.
func listOf[T any](r *reader, k kind, n uint64) []T {
	size := kindBytes[k]
	data := r.bytes(n * size)
	out := make([]T, 0, len(data)/int(size))
	for ; len(data) > 0; data = data[size:] {
		x, _ := scalar(k, data).(T)
		out = append(out, x)
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
		if length > maxKey {
			r.fail("a tensor's name of %d bytes", length)
		}
		t := tensorInfo{name: string(r.bytes(length))}
		axes := r.u32()
		if axes > maxDims {
			r.fail("tensor %q has %d axes", t.name, axes)
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
			r.fail("tensor %q is at %d", t.name, offset)
			return nil
		}
		t.Info.Bytes = int64(product) / int64(elements) * int64(bytes)
		t.offset = int64(offset)
		out = append(out, t)
	}
	return out
}
