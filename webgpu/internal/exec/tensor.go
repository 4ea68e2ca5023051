package exec

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// Tensor is a value in host memory: elements in row-major order, little endian,
// a bool as one byte 0 or 1.
type Tensor struct {
	DType dtype.DType
	Dims  []int
	Data  []byte
}

// check returns an error if t is not a valid value of the slot.
func check(op string, s *plan.Slot, t Tensor, dims []int) error {
	fail := func(kind error, format string, args ...any) error {
		return &Error{Kind: kind, Op: op, Name: s.Name, Msg: fmt.Sprintf(format, args...)}
	}
	want := func() string { return fmt.Sprintf("%s%s", s.DType, ir.Dims(dims...)) }
	if t.DType != s.DType {
		return fail(ir.ErrDType, "%s is %s; it must be %s", s.Name, t.DType, want())
	}
	if !slices.Equal(t.Dims, dims) {
		hint := ""
		if slices.Contains(t.Dims, 0) {
			hint = ": an empty batch has no result"
		}
		return fail(ir.ErrShape, "%s is %s%s; it must be %s%s", s.Name, t.DType, ir.Dims(t.Dims...), want(), hint)
	}
	n := 1
	for _, d := range dims {
		n *= d
	}
	if bytes, err := s.DType.Bytes(n); err != nil || len(t.Data) != bytes {
		return fail(ir.ErrShape, "%s has %d bytes; %s needs %d", s.Name, len(t.Data), want(), bytes)
	}
	if s.Checked {
		for i := range n {
			if v := integer(t, i); v < int64(s.Lo) || v >= int64(s.Hi) {
				return fail(ir.ErrIndex, "element %d of %s is %d; it must be in [%d, %d)", i, s.Name, v, s.Lo, s.Hi)
			}
		}
	}
	return nil
}

// integer returns element i of a tensor of integers.
func integer(t Tensor, i int) int64 {
	switch t.DType {
	case dtype.I8:
		return int64(int8(t.Data[i]))
	case dtype.U8:
		return int64(t.Data[i])
	case dtype.I16:
		return int64(int16(binary.LittleEndian.Uint16(t.Data[2*i:])))
	case dtype.U16:
		return int64(binary.LittleEndian.Uint16(t.Data[2*i:]))
	case dtype.I32:
		return int64(int32(binary.LittleEndian.Uint32(t.Data[4*i:])))
	case dtype.U32:
		return int64(binary.LittleEndian.Uint32(t.Data[4*i:]))
	}
	return int64(binary.LittleEndian.Uint64(t.Data[8*i:]))
}

// toDevice returns the bytes of a checked tensor in the device's form: the tensor's own if
// possible, else in scratch, which may grow.
func toDevice(s *plan.Slot, t Tensor, scratch *[]byte) []byte {
	if s.DType != dtype.Bool && len(t.Data) == s.Bytes {
		return t.Data
	}
	out := slices.Grow((*scratch)[:0], s.Bytes)[:s.Bytes]
	*scratch = out
	if s.DType == dtype.Bool {
		loop.WidenBools(out, t.Data)
	} else {
		clear(out[copy(out, t.Data):])
	}
	return out
}

// fromDevice makes a tensor from a copy of a slot's bytes on the device.
func fromDevice(s *plan.Slot, device []byte) Tensor {
	t := Tensor{DType: s.DType, Dims: slices.Clone(s.Dims)}
	if s.DType == dtype.Bool {
		t.Data = loop.HostBytes(s.DType, device)
		return t
	}
	n := 1
	for _, d := range s.Dims {
		n *= d
	}
	size, err := s.DType.Bytes(n)
	if err != nil { // the plan was validated: the slot has a size
		size = len(device)
	}
	t.Data = slices.Clone(device[:size])
	return t
}
