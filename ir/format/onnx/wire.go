package onnx

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// fieldValue is the value of a field: number for varints and fixed widths, data otherwise.
type fieldValue struct {
	form   protowire.Type
	number uint64
	data   []byte
}

// int returns a varint as a signed number.
func (v fieldValue) int() int64 { return int64(v.number) }

// float returns a 32-bit float.
func (v fieldValue) float() float64 { return float64(math.Float32frombits(uint32(v.number))) }

// fields calls f for every field of a message, in order. Data shares the memory of the message.
func fields(data []byte, f func(field protowire.Number, v fieldValue) error) error {
	for len(data) > 0 {
		field, form, n := protowire.ConsumeTag(data)
		if n < 0 {
			return damaged("%v", protowire.ParseError(n))
		}
		data = data[n:]
		v := fieldValue{form: form}
		switch form {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			v.data, n = protowire.ConsumeBytes(data)
		case protowire.Fixed32Type:
			var x uint32
			x, n = protowire.ConsumeFixed32(data)
			v.number = uint64(x)
		case protowire.Fixed64Type:
			v.number, n = protowire.ConsumeFixed64(data)
		default:
			n = protowire.ConsumeFieldValue(field, form, data)
		}
		if n < 0 {
			return damaged("field %d: %v", field, protowire.ParseError(n))
		}
		data = data[n:]
		if err := f(field, v); err != nil {
			return err
		}
	}
	return nil
}

// appendNumbers appends the elements of a repeated numeric field, packed or not, of the given wire
// type.
func appendNumbers(list []uint64, v fieldValue, form protowire.Type) ([]uint64, error) {
	if v.form != protowire.BytesType {
		return append(list, v.number), nil
	}
	for data := v.data; len(data) > 0; {
		var x uint64
		n := 0
		switch form {
		case protowire.Fixed32Type:
			var y uint32
			y, n = protowire.ConsumeFixed32(data)
			x = uint64(y)
		case protowire.Fixed64Type:
			x, n = protowire.ConsumeFixed64(data)
		default:
			x, n = protowire.ConsumeVarint(data)
		}
		if n < 0 {
			return nil, damaged("list of numbers: %v", protowire.ParseError(n))
		}
		list, data = append(list, x), data[n:]
	}
	return list, nil
}

// appendInts appends the numbers of a repeated field of varints.
func appendInts(list []int64, v fieldValue) ([]int64, error) {
	numbers, err := appendNumbers(nil, v, protowire.VarintType)
	for _, x := range numbers {
		list = append(list, int64(x))
	}
	return list, err
}
