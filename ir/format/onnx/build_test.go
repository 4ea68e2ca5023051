package onnx_test

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rlx-go/rlx/ir/format/onnx"
)

// field is a field of a message of a model that a test writes, by its number in onnx.proto.
type field struct {
	number protowire.Number
	value  any // an int, a float32, a string, bytes or a list of fields
}

// message writes fields.
func message(fields ...field) []byte {
	var out []byte
	for _, f := range fields {
		switch v := f.value.(type) {
		case int:
			out = protowire.AppendTag(out, f.number, protowire.VarintType)
			out = protowire.AppendVarint(out, uint64(v))
		case float32:
			out = protowire.AppendTag(out, f.number, protowire.Fixed32Type)
			out = protowire.AppendFixed32(out, math.Float32bits(v))
		case string:
			out = protowire.AppendTag(out, f.number, protowire.BytesType)
			out = protowire.AppendString(out, v)
		case []byte:
			out = protowire.AppendTag(out, f.number, protowire.BytesType)
			out = protowire.AppendBytes(out, v)
		case []field:
			out = protowire.AppendTag(out, f.number, protowire.BytesType)
			out = protowire.AppendBytes(out, message(v...))
		}
	}
	return out
}

// renumbered returns fields with another number.
func renumbered(list []field, number protowire.Number) []field {
	var out []field
	for _, f := range list {
		out = append(out, field{number, f.value})
	}
	return out
}

// model is a ModelProto of one graph, and functions.
func model(opset int, graph []field, functions ...field) []byte {
	all := []field{{1, 8}, {8, []field{{1, ""}, {2, opset}}}, {7, graph}}
	return message(append(all, renumbered(functions, 25)...)...)
}

// graphOf is a GraphProto.
func graphOf(nodes, initializers, inputs, outputs []field) []field {
	g := renumbered(nodes, 1)
	g = append(g, field{2, "g"})
	g = append(g, renumbered(initializers, 5)...)
	g = append(g, renumbered(inputs, 11)...)
	return append(g, renumbered(outputs, 12)...)
}

// node is a NodeProto of the default domain.
func node(op string, inputs, outputs []string, attrs ...field) field {
	var n []field
	for _, name := range inputs {
		n = append(n, field{1, name})
	}
	for _, name := range outputs {
		n = append(n, field{2, name})
	}
	n = append(n, field{4, op})
	return field{1, append(n, renumbered(attrs, 5)...)}
}

// attribute is an AttributeProto: an int, a float, a text, several of them, a tensor or a graph.
func attribute(name string, value any) field {
	a := []field{{1, name}}
	switch v := value.(type) {
	case int:
		a = append(a, field{3, v}, field{20, 2})
	case float32:
		a = append(a, field{2, v}, field{20, 1})
	case string:
		a = append(a, field{4, v}, field{20, 3})
	case []int:
		for _, x := range v {
			a = append(a, field{8, x})
		}
		a = append(a, field{20, 7})
	case []float32:
		for _, x := range v {
			a = append(a, field{7, x})
		}
		a = append(a, field{20, 6})
	case []string:
		for _, x := range v {
			a = append(a, field{9, x})
		}
		a = append(a, field{20, 8})
	case field:
		a = append(a, field{5, v.value}, field{20, 4})
	case []field:
		a = append(a, field{6, v}, field{20, 5})
	}
	return field{5, a}
}

// tensorOf is a TensorProto of raw bytes.
func tensorOf(name string, e onnx.Element, dims []int, raw []byte) field {
	var t []field
	for _, d := range dims {
		t = append(t, field{1, d})
	}
	return field{5, append(t, field{2, int(e)}, field{8, name}, field{9, raw})}
}

// info is a ValueInfoProto; dims are ints and names.
func info(name string, e onnx.Element, dims ...any) field {
	var shape []field
	for _, d := range dims {
		switch v := d.(type) {
		case int:
			shape = append(shape, field{1, []field{{1, v}}})
		case string:
			shape = append(shape, field{1, []field{{2, v}}})
		}
	}
	return field{11, []field{{1, name}, {2, []field{{1, []field{{1, int(e)}, {2, shape}}}}}}}
}

func floatBytes(list ...float32) []byte {
	var out []byte
	for _, x := range list {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

func intBytes(list ...int64) []byte {
	var out []byte
	for _, x := range list {
		out = binary.LittleEndian.AppendUint64(out, uint64(x))
	}
	return out
}
