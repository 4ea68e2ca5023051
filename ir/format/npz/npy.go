package npz

import (
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

const magic = "\x93NUMPY"

// Bounds of an array, against memory that a hostile file would take.
const (
	maxHeader   = 1 << 20
	maxAxes     = 64
	maxElements = 1 << 40
	chunkBytes  = 1 << 20 // read at a time, so that a short file takes little
)

// dtypes are NumPy's names of element types, without byte order.
var dtypes = map[string]ir.DType{
	"b1": ir.Bool, "i1": ir.I8, "i2": ir.I16, "i4": ir.I32, "i8": ir.I64, "u1": ir.U8, "u2": ir.U16, "u4": ir.U32, "u8": ir.U64,
	"f2": ir.F16, "f4": ir.F32, "f8": ir.F64, "c8": ir.C64, "c16": ir.C128,
}

// header is the dict of a .npy file.
type header struct {
	dtype ir.DType
	big   bool // big endian
	// columns: the first axis varies fastest (Fortran's order)
	columns bool
	dims    []int
}

var (
	descrText  = regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([<>|=]?)([a-zA-Z]\w*)['"]`)
	anyDescr   = regexp.MustCompile(`['"]descr['"]\s*:\s*(\[.*\]|[^,]*)`)
	orderText  = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	shapeText  = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([\d\s,L]*)\)`)
	numberText = regexp.MustCompile(`\d+`)
)

// parseHeader reads the dict of three keys that NumPy writes.
func parseHeader(text string) (header, error) {
	descr, order, shape := descrText.FindStringSubmatch(text), orderText.FindStringSubmatch(text), shapeText.FindStringSubmatch(text)
	if order == nil || shape == nil || anyDescr.FindStringSubmatch(text) == nil {
		return header{}, damaged("the header %.100q has no descr, fortran_order and shape", text)
	}
	if descr == nil {
		return header{}, ir.DTypef("arrays of %.100s are not read: only of numbers and booleans", anyDescr.FindStringSubmatch(text)[1])
	}
	h := header{dtype: dtypes[descr[2]], big: descr[1] == ">", columns: order[1] == "True", dims: []int{}}
	if !h.dtype.Valid() {
		return header{}, ir.DTypef("arrays of %q are not read: only of numbers and booleans", descr[1]+descr[2])
	}
	product := int64(1)
	for _, s := range numberText.FindAllString(shape[1], -1) {
		n, err := strconv.ParseInt(s, 10, strconv.IntSize)
		if err != nil || len(h.dims) == maxAxes || n > maxElements || n > 0 && product > maxElements/n {
			return header{}, damaged("the shape (%.100s) is too large", shape[1])
		}
		product *= n
		h.dims = append(h.dims, int(n))
	}
	return h, nil
}

// Read reads one array, a .npy file of version 1 to 3. The error is of kind [ErrDamaged], of kind
// [ir.ErrDType] for objects, texts and records, or that of r.
func Read(r io.Reader) (*ir.Array, error) {
	if r == nil {
		return nil, ir.Attrf("r is nil: it must be a reader")
	}
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	data, err := h.read(r)
	if err != nil {
		return nil, err
	}
	return h.array(data)
}

// readHeader reads the bytes before the elements.
func readHeader(r io.Reader) (header, error) {
	var start [12]byte
	if _, err := io.ReadFull(r, start[:10]); err != nil {
		return header{}, readError(err, "it does not begin as a .npy file does")
	}
	if string(start[:6]) != magic {
		return header{}, damaged("it does not begin as a .npy file does")
	}
	size := int(binary.LittleEndian.Uint16(start[8:]))
	switch start[6] {
	case 1:
	case 2, 3:
		if _, err := io.ReadFull(r, start[10:]); err != nil {
			return header{}, readError(err, "the header is cut short")
		}
		size = int(min(binary.LittleEndian.Uint32(start[8:]), maxHeader+1))
	default:
		return header{}, damaged("the file has version %d; 1 to 3 are known", start[6])
	}
	if size > maxHeader {
		return header{}, damaged("the header has more than %d bytes", maxHeader)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return header{}, readError(err, "the header is cut short")
	}
	return parseHeader(string(text))
}

// read reads the elements, by pieces.
func (h header) read(r io.Reader) ([]byte, error) {
	n := h.dtype.Size()
	for _, d := range h.dims {
		n *= d
	}
	var data []byte
	for len(data) < n {
		at := len(data)
		data = append(data, make([]byte, min(n-at, max(chunkBytes, at)))...)
		if _, err := io.ReadFull(r, data[at:]); err != nil {
			return nil, readError(err, "%s%v has %d bytes; the file ends before", h.dtype, h.dims, n)
		}
	}
	return data, nil
}

// array makes an array of the elements, little endian and row-major.
func (h header) array(data []byte) (*ir.Array, error) {
	if h.big {
		unit := h.dtype.Size()
		if h.dtype.IsComplex() {
			unit /= 2
		}
		for at := 0; at < len(data); at += unit {
			slices.Reverse(data[at : at+unit])
		}
	}
	dims := h.dims
	if h.columns {
		dims = slices.Clone(dims)
		slices.Reverse(dims)
	}
	a, err := ir.ArrayOf(ir.Type{DType: h.dtype, Shape: ir.Dims(dims...)}, data)
	if err != nil || !h.columns {
		return a, err
	}
	return transposed(a, h.dims), nil
}

// transposed returns a, whose axes are in reversed order, with the given dims.
func transposed(a *ir.Array, dims []int) *ir.Array {
	out := ir.NewArray(a.DType, dims...)
	at := make([]int, len(dims))
	for i := range out.Len() {
		from := 0
		for axis := len(dims) - 1; axis >= 0; axis-- {
			from = from*dims[axis] + at[axis]
		}
		out.SetElement(i, a.Element(from))
		for axis := len(dims) - 1; axis >= 0; axis-- {
			if at[axis]++; at[axis] < dims[axis] {
				break
			}
			at[axis] = 0
		}
	}
	return out
}

// WriteArray writes one array, a .npy file. The error is of kind [ir.ErrDType] for an element type that
// NumPy has not.
func WriteArray(w io.Writer, a *ir.Array) error {
	if w == nil {
		return ir.Attrf("w is nil: it must be a writer")
	}
	if err := a.Check(); err != nil {
		return err
	}
	name := ""
	for n, d := range dtypes {
		if d == a.DType {
			name = n
		}
	}
	if name == "" {
		return ir.DTypef("NumPy has no %s", a.DType)
	}
	order := "<"
	if a.DType.Size() == 1 {
		order = "|"
	}
	var shape strings.Builder
	for _, d := range a.Dims {
		fmt.Fprintf(&shape, "%d, ", d)
	}
	tuple := strings.TrimSuffix(shape.String(), " ")
	if len(a.Dims) > 1 {
		tuple = strings.TrimSuffix(tuple, ",")
	}
	text := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }", order, name, tuple)
	text += strings.Repeat(" ", 63-(len(magic)+4+len(text))%64) + "\n" // elements begin on 64 bytes
	head := append([]byte(magic), 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(len(text)))
	if _, err := w.Write(append(head, text...)); err != nil {
		return err
	}
	_, err := w.Write(a.Bytes())
	return err
}
