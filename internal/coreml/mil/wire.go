package mil

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// message builds the bytes of a protocol buffer.
type message []byte

func (m *message) bytes(field protowire.Number, data []byte) {
	*m = protowire.AppendTag(*m, field, protowire.BytesType)
	*m = protowire.AppendBytes(*m, data)
}

func (m *message) text(field protowire.Number, s string) { m.bytes(field, []byte(s)) }

func (m *message) number(field protowire.Number, v uint64) {
	*m = protowire.AppendTag(*m, field, protowire.VarintType)
	*m = protowire.AppendVarint(*m, v)
}

// entry adds an entry of a map.
func (m *message) entry(field protowire.Number, key string, value message) {
	var e message
	e.text(mapKey, key)
	e.bytes(mapValue, value)
	m.bytes(field, e)
}

// in returns a message with a single field, a message.
func in(field protowire.Number, inner message) message {
	var m message
	m.bytes(field, inner)
	return m
}

// each calls f for every field of a message, with its number and its varint or bytes. It skips
// fields of other wire types. The error is of kind [ErrPackage] for a truncated message.
func each(data []byte, f func(field protowire.Number, number uint64, data []byte) error) error {
	for len(data) > 0 {
		field, form, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrPackage, protowire.ParseError(n))
		}
		data = data[n:]
		var number uint64
		var inner []byte
		switch form {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			inner, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(field, form, data)
		}
		if n < 0 {
			return fmt.Errorf("%w: field %d: %w", ErrPackage, field, protowire.ParseError(n))
		}
		data = data[n:]
		if form != protowire.VarintType && form != protowire.BytesType {
			continue
		}
		if err := f(field, number, inner); err != nil {
			return err
		}
	}
	return nil
}

// entryOf decodes an entry of a map.
func entryOf(data []byte) (key string, value []byte, err error) {
	err = each(data, func(field protowire.Number, _ uint64, inner []byte) error {
		switch field {
		case mapKey:
			key = string(inner)
		case mapValue:
			value = inner
		}
		return nil
	})
	return key, value, err
}
