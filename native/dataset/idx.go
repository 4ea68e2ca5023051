package dataset

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// idxTypes are the element types of IDX files by their code.
var idxTypes = map[byte]ir.DType{0x08: ir.U8, 0x09: ir.I8, 0x0b: ir.I16, 0x0c: ir.I32, 0x0d: ir.F32, 0x0e: ir.F64}

// ReadIDX reads a tensor in the format of MNIST (http://yann.lecun.com/exdb/mnist): two zeros, a code
// of the element type, the rank, the sizes as u32, and the elements, all big endian. It may be
// compressed by gzip. The error is of kind [ErrDamaged] or that of r.
func ReadIDX(r io.Reader) (native.Tensor, error) {
	if r == nil {
		return native.Tensor{}, ir.Attrf("r is nil: it must be a reader")
	}
	in := bufio.NewReader(r)
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return native.Tensor{}, readError(err, "%v", err)
		}
		in = bufio.NewReader(z)
	}
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return native.Tensor{}, readError(err, "the header is cut short")
	}
	d, ok := idxTypes[head[2]]
	if head[0] != 0 || head[1] != 0 || !ok {
		return native.Tensor{}, damagedf("it begins with %x: it must with two zeros and a code of an element type", head)
	}
	dims, bytes := make([]int, head[3]), int64(d.Size())
	for i := range dims {
		var n uint32
		if err := binary.Read(in, binary.BigEndian, &n); err != nil {
			return native.Tensor{}, readError(err, "the sizes are cut short")
		}
		if n > math.MaxInt32 || n > 0 && bytes > math.MaxInt32*int64(64)/int64(n) {
			return native.Tensor{}, damagedf("the sizes %v and %d are too large", dims[:i], n)
		}
		dims[i], bytes = int(n), bytes*int64(n)
	}
	data, err := io.ReadAll(io.LimitReader(in, bytes)) // grows with the data, not with the header's size
	if err != nil {
		return native.Tensor{}, readError(err, "%v", err)
	}
	if int64(len(data)) < bytes {
		return native.Tensor{}, damagedf("it has %d bytes of elements: %s%v needs %d", len(data), d, dims, bytes)
	}
	if _, err := in.ReadByte(); err != nil && err != io.EOF { // gzip compares its checksum at the end
		return native.Tensor{}, readError(err, "%v", err)
	} else if err == nil {
		return native.Tensor{}, damagedf("it has more than the %d bytes that %s%v needs", bytes, d, dims)
	}
	for element := range slices.Chunk(data, d.Size()) {
		slices.Reverse(element)
	}
	t := native.Zeros(d, dims...)
	copy(t.Data, data)
	return t, nil
}

// readError returns an error of a reader: damage where a file ends, or gzip finds it, and otherwise the reader's own error.
func readError(err error, text string, args ...any) error {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, gzip.ErrChecksum, gzip.ErrHeader} {
		if errors.Is(err, end) {
			return damagedf(text, args...)
		}
	}
	if corrupt := flate.CorruptInputError(0); errors.As(err, &corrupt) {
		return damagedf("%v", err)
	}
	return err
}
