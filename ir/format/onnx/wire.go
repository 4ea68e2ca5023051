package onnx

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/rlx-go/rlx/internal/format"
)

// fieldNumber is the number of a field of a message, wireForm how its value is encoded.
type (
	fieldNumber int32
	wireForm    uint8
)

// The forms of protocol buffers. Groups, which have two more, are in no message of ONNX.
const (
	varintForm  wireForm = 0
	fixed64Form wireForm = 1
	bytesForm   wireForm = 2
	fixed32Form wireForm = 5
)

// fieldValue is the value of a field: number for varints and fixed widths, data otherwise.
type fieldValue struct {
	form   wireForm
	number uint64
	data   []byte
}

// int returns a varint as a signed number.
func (v fieldValue) int() int64 { return int64(v.number) }

// float returns a 32-bit float.
func (v fieldValue) float() float64 { return float64(math.Float32frombits(uint32(v.number))) }

// fields calls f for every field of a message, in order. Data shares the memory of the message.
func fields(data []byte, f func(field fieldNumber, v fieldValue) error) error {
	for len(data) > 0 {
		tag, rest, err := takeNumber(data, varintForm)
		if err != nil {
			return damaged("%v", err)
		}
		field := tag >> 3
		if field == 0 || field > 1<<29-1 {
			return damaged("a field has the number %d", field)
		}
		v := fieldValue{form: wireForm(tag & 7)}
		if v.form == bytesForm {
			v.data, rest, err = takeBytes(rest)
		} else {
			v.number, rest, err = takeNumber(rest, v.form)
		}
		if err != nil {
			return damaged("field %d: %v", field, err)
		}
		data = rest
		if err := f(fieldNumber(field), v); err != nil {
			return err
		}
	}
	return nil
}

// takeNumber reads a number in one of the forms that are no bytes.
func takeNumber(data []byte, form wireForm) (x uint64, rest []byte, err error) {
	n := 0
	switch form {
	case varintForm:
		if x, n = binary.Uvarint(data); n < 0 {
			return 0, nil, errors.New("a number has more than 64 bits")
		}
	case fixed32Form:
		if len(data) >= 4 {
			x, n = uint64(binary.LittleEndian.Uint32(data)), 4
		}
	case fixed64Form:
		if len(data) >= 8 {
			x, n = binary.LittleEndian.Uint64(data), 8
		}
	default:
		return 0, nil, format.Errorf("the wire type is %d", uint8(form))
	}
	if n == 0 {
		return 0, nil, errors.New("the message ends within a number")
	}
	return x, data[n:], nil
}

// takeBytes reads bytes with their length in front.
func takeBytes(data []byte) (x, rest []byte, err error) {
	n, data, err := takeNumber(data, varintForm)
	if err == nil && n > uint64(len(data)) {
		err = format.Errorf("%d bytes are declared, and %d are there", n, len(data))
	}
	if err != nil {
		return nil, nil, err
	}
	return data[:n], data[n:], nil
}

// appendNumbers appends the elements of a repeated numeric field, packed or not, of the given wire
// type.
func appendNumbers(list []uint64, v fieldValue, form wireForm) ([]uint64, error) {
	if v.form != bytesForm {
		return append(list, v.number), nil
	}
	for data := v.data; len(data) > 0; {
		x, rest, err := takeNumber(data, form)
		if err != nil {
			return nil, damaged("list of numbers: %v", err)
		}
		list, data = append(list, x), rest
	}
	return list, nil
}

// appendInts appends the numbers of a repeated field of varints.
func appendInts(list []int64, v fieldValue) ([]int64, error) {
	numbers, err := appendNumbers(nil, v, varintForm)
	for _, x := range numbers {
		list = append(list, int64(x))
	}
	return list, err
}
