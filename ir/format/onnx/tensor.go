package onnx

import (
	"io"
	"io/fs"
	"math"
	"strconv"

	"github.com/rlx-go/rlx/ir"
)

// tensor is a TensorProto. Its elements are raw, in external, or in numbers.
type tensor struct {
	name     string
	elem     Element
	dims     []int
	raw      []byte
	hasRaw   bool
	numbers  []uint64 // of int32_data, int64_data, uint64_data, float_data or double_data
	wide     bool     // numbers are the bits of a double
	external map[string]string
	decoded  *ir.Array
	source   *weightSource // of a tensor to write
}

func readTensor(data []byte) (*tensor, error) {
	t := &tensor{}
	var dims []int64
	outside := false
	err := fields(data, func(field fieldNumber, v fieldValue) (err error) {
		switch field {
		case protoDims:
			dims, err = appendInts(dims, v)
		case protoType:
			t.elem = Element(v.int())
		case protoName:
			t.name = string(v.data)
		case protoRaw:
			t.raw, t.hasRaw = v.data, true
		case protoFloats:
			t.numbers, err = appendNumbers(t.numbers, v, fixed32Form)
		case protoInt32s, protoInt64s, protoUint64s:
			t.numbers, err = appendNumbers(t.numbers, v, varintForm)
		case protoDoubles:
			t.wide = true
			t.numbers, err = appendNumbers(t.numbers, v, fixed64Form)
		case protoExternal:
			if t.external == nil {
				t.external = map[string]string{}
			}
			err = readEntry(t.external, v.data)
		case protoLocation:
			outside = v.int() == externalLocation
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !outside {
		t.external = nil
	}
	t.dims, err = sizes(dims)
	if err != nil {
		return nil, damaged("tensor %q: %v", t.name, err)
	}
	return t, t.check(outside)
}

// sizes checks the sizes of a tensor's axes and their product.
func sizes(dims []int64) ([]int, error) {
	out, product := make([]int, len(dims)), int64(1)
	for i, d := range dims {
		if d < 0 || d > maxElements {
			return nil, ir.Shapef("an axis has size %d", d)
		}
		if d > 0 && product > min(maxElements, math.MaxInt/16)/d {
			return nil, ir.Shapef("there are more than 2^48 elements, or than an int counts bytes of")
		}
		out[i], product = int(d), product*d
	}
	return out, nil
}

// check compares the number of elements with the size of the data.
func (t *tensor) check(outside bool) error {
	switch {
	case !elements[t.elem].in.Valid():
		return nil // refused where it is used
	case outside && t.external["location"] == "":
		return damaged("tensor %q is external and has no location", t.name)
	case outside:
		return nil
	case t.hasRaw && len(t.raw) != t.fileBytes():
		return damaged("tensor %q, %v of %v, has %d bytes; it needs %d", t.name, t.elem, t.dims, len(t.raw), t.fileBytes())
	case !t.hasRaw && len(t.numbers) != t.fileNumbers():
		return damaged("tensor %q, %v of %v, has %d numbers; it needs %d", t.name, t.elem, t.dims, len(t.numbers), t.fileNumbers())
	}
	return nil
}

func (t *tensor) len() int {
	n := 1
	for _, d := range t.dims {
		n *= d
	}
	return n
}

// fileBytes returns the number of bytes of the elements in a file.
func (t *tensor) fileBytes() int { return (t.len()*elements[t.elem].bits + 7) / 8 }

// fileNumbers returns how many numbers hold the elements: those of 4 and 2 bits share one, those of
// complex numbers take two.
func (t *tensor) fileNumbers() int {
	switch info := elements[t.elem]; {
	case info.in.IsComplex():
		return 2 * t.len()
	case info.bits == 4 || info.bits == 2:
		return t.fileBytes()
	}
	return t.len()
}

// typ returns the type that a graph has the tensor with.
func (t *tensor) typ() ir.Type { return ir.Type{DType: t.elem.DType(), Shape: ir.Dims(t.dims...)} }

// bytes returns the elements as devices store them. Where a file has them so, it is a window.
func (t *tensor) bytes(files fs.FS) ([]byte, error) {
	raw, err := t.stored(files)
	if err != nil {
		return nil, err
	}
	if raw != nil && !elements[t.elem].held() {
		return raw, nil
	}
	a, err := t.array(files)
	if err != nil {
		return nil, err
	}
	return a.Bytes(), nil
}

// stored returns the bytes of the elements in the file, or nil where they are numbers.
func (t *tensor) stored(files fs.FS) ([]byte, error) {
	switch {
	case t.external != nil:
		return t.readExternal(files)
	case t.hasRaw:
		return t.raw, nil
	}
	return nil, nil
}

// array returns the elements. It keeps them.
func (t *tensor) array(files fs.FS) (*ir.Array, error) {
	if t.decoded != nil {
		return t.decoded, nil
	}
	info := elements[t.elem]
	if !info.in.Valid() {
		return nil, ir.Errorf(ir.ErrUnsupported, "tensor %q holds elements of type %v", t.name, t.elem)
	}
	raw, err := t.stored(files)
	if err != nil {
		return nil, err
	}
	switch {
	case raw == nil:
		t.decoded = t.fromNumbers(info)
	case info.held():
		t.decoded = t.unpack(info, func(i int) uint64 { return packedBits(raw, i, info.bits) })
	default:
		t.decoded, err = ir.ArrayOf(t.typ(), raw)
	}
	return t.decoded, err
}

// packedBits returns element i of elements of some bits each, lowest bits first.
func packedBits(raw []byte, i, bits int) uint64 {
	at, x := i*bits, uint64(raw[i*bits/8])
	if at%8+bits > 8 {
		x |= uint64(raw[at/8+1]) << 8
	}
	return x >> (at % 8) & (1<<bits - 1)
}

// unpack returns the elements of a type that is held in a wider one.
func (t *tensor) unpack(info elementInfo, bits func(i int) uint64) *ir.Array {
	a := ir.NewArray(info.in, t.dims...)
	for i := range t.len() {
		x := bits(i)
		switch {
		case info.small != nil:
			a.F[i] = info.small.value(x)
		case info.low < 0:
			a.I[i] = int64(x) << (64 - info.bits) >> (64 - info.bits)
		default:
			a.I[i] = int64(x)
		}
	}
	return a
}

func (t *tensor) fromNumbers(info elementInfo) *ir.Array {
	if info.held() {
		if info.bits < 8 && info.bits != 6 {
			packed := make([]byte, len(t.numbers))
			for i, x := range t.numbers {
				packed[i] = byte(x)
			}
			return t.unpack(info, func(i int) uint64 { return packedBits(packed, i, info.bits) })
		}
		return t.unpack(info, func(i int) uint64 { return t.numbers[i] & 0xff })
	}
	a := ir.NewArray(info.in, t.dims...)
	number := func(i int) float64 {
		if t.wide {
			return math.Float64frombits(t.numbers[i])
		}
		return float64(math.Float32frombits(uint32(t.numbers[i])))
	}
	for i := range t.len() {
		switch {
		case info.in.IsComplex():
			a.C[i] = complex(number(2*i), number(2*i+1))
		case info.in == ir.F32 || info.in == ir.F64:
			a.F[i] = number(i)
		case info.in.IsFloat():
			a.F[i] = info.in.FloatFromBits(t.numbers[i] & (1<<info.bits - 1))
		default:
			a.I[i] = info.in.Wrap(int64(t.numbers[i]))
		}
	}
	return a
}

// readExternal reads the elements from another file, which must be within the model's folder.
func (t *tensor) readExternal(files fs.FS) ([]byte, error) {
	f, p, err := t.openExternal(files)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	at, ok := f.(io.ReaderAt)
	if !ok {
		return nil, ir.Errorf(ir.ErrUnsupported, "file %q cannot be read at an offset", p.File)
	}
	data := make([]byte, p.Length)
	_, err = io.ReadFull(io.NewSectionReader(at, p.Offset, p.Length), data)
	return data, err
}

// openExternal opens the file of the elements, which has all of them at the place that is returned.
func (t *tensor) openExternal(files fs.FS) (fs.File, Place, error) {
	p, err := t.place()
	if err != nil {
		return nil, p, err
	}
	if files == nil {
		return nil, p, ir.Errorf(ir.ErrUnsupported, "tensor %q is in the file %q: the import has no Files", t.name, p.File)
	}
	f, err := files.Open(p.File)
	if err != nil {
		return nil, p, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || p.Offset > info.Size() || p.Length > info.Size()-p.Offset) {
		err = damaged("tensor %q has bytes %d to %d of %q, which is no file of that size", t.name, p.Offset, p.Offset+p.Length, p.File)
	}
	if err != nil {
		f.Close() // read only
		return nil, p, err
	}
	return f, p, nil
}

// place returns where external data are, by what the model says.
func (t *tensor) place() (p Place, err error) {
	p.File = t.external["location"]
	if !fs.ValidPath(p.File) {
		return p, damaged("tensor %q: the path %q leaves the model's folder", t.name, p.File)
	}
	if p.Offset, err = externalNumber(t.external, "offset", 0); err != nil {
		return p, err
	}
	if p.Length, err = externalNumber(t.external, "length", int64(t.fileBytes())); err != nil {
		return p, err
	}
	if p.Length != int64(t.fileBytes()) {
		return p, damaged("tensor %q, %v of %v, has %d bytes in %q; it needs %d", t.name, t.elem, t.dims, p.Length, p.File, t.fileBytes())
	}
	return p, nil
}

func externalNumber(m map[string]string, key string, otherwise int64) (int64, error) {
	text, ok := m[key]
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 62)
	if err != nil || n < 0 {
		return 0, damaged("%s of external data is %q", key, text)
	}
	return n, nil
}

// dense returns a sparse tensor with its zeros.
func (s *sparse) dense() (*tensor, error) {
	if s.values == nil || s.indices == nil {
		return nil, damaged("a sparse tensor needs values and indices")
	}
	dims, err := sizes(s.dims)
	if err != nil {
		return nil, err
	}
	t := &tensor{name: s.values.name, elem: s.values.elem, dims: dims}
	if t.len() > maxSparse {
		return nil, damaged("sparse tensor %q has more than %d elements", t.name, maxSparse)
	}
	values, err := s.values.array(nil)
	if err != nil {
		return nil, err
	}
	indices, err := s.indices.array(nil)
	if err != nil {
		return nil, err
	}
	a := ir.NewArray(t.elem.DType(), dims...)
	n := values.Len()
	if n > 0 && (indices.I == nil || indices.Len()%n != 0) {
		return nil, damaged("sparse tensor %q has %d values and %d indices", t.name, n, indices.Len())
	}
	for i := range n {
		at := 0
		row := indices.I[i*(indices.Len()/n):][:indices.Len()/n]
		for axis, x := range row {
			if len(row) > 1 && (axis >= len(dims) || x < 0 || int(x) >= dims[axis]) {
				return nil, damaged("sparse tensor %q has index %v", t.name, row)
			}
			if len(row) > 1 {
				at = at*dims[axis] + int(x)
			} else {
				at = int(x)
			}
		}
		if at < 0 || at >= a.Len() {
			return nil, damaged("sparse tensor %q has index %v", t.name, row)
		}
		a.SetElement(at, values.Element(i))
	}
	t.decoded = a
	t.raw, t.hasRaw = a.Bytes(), true
	return t, nil
}

// maxSparse bounds the elements of a sparse tensor, whose zeros take memory but no bytes of the
// file.
const maxSparse = 1 << 24

// Tensor reads one tensor, a TensorProto, as the files of test data hold it.
func Tensor(data []byte) (name string, a *ir.Array, err error) {
	t, err := readTensor(data)
	if err != nil {
		return "", nil, err
	}
	a, err = t.array(nil)
	return t.name, a, err
}
