package onnx

import (
	"encoding/binary"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// message is an encoded message. The elements of large tensors are encoded only when it is written.
type message struct {
	parts []part
	size  int64
}

// part is bytes, or a source of that many bytes.
type part struct {
	bytes  []byte
	source *weightSource
}

// weightSource is a tensor whose elements are read when they are written.
type weightSource struct {
	name string
	size int64
	read func() ([]byte, error)
}

// bytes returns the elements. The error is of kind [ir.ErrShape] for another number of bytes.
func (s *weightSource) bytes() ([]byte, error) {
	data, err := s.read()
	if err == nil && int64(len(data)) != s.size {
		err = ir.Shapef("weight %q has %d bytes; it needs %d", s.name, len(data), s.size)
	}
	return data, err
}

func (m *message) raw(b []byte) {
	if last := len(m.parts) - 1; last >= 0 && m.parts[last].source == nil {
		m.parts[last].bytes = append(m.parts[last].bytes, b...)
	} else {
		m.parts = append(m.parts, part{bytes: slices.Clone(b)})
	}
	m.size += int64(len(b))
}

func (m *message) tag(field fieldNumber, form wireForm) {
	m.raw(binary.AppendUvarint(nil, uint64(field)<<3|uint64(form)))
}

// int appends a number; zeros too, since attributes may be 0.
func (m *message) int(field fieldNumber, x int64) {
	m.tag(field, varintForm)
	m.raw(binary.AppendUvarint(nil, uint64(x)))
}

func (m *message) float(field fieldNumber, x float64) {
	m.tag(field, fixed32Form)
	m.raw(binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x))))
}

func (m *message) bytes(field fieldNumber, b []byte) {
	m.tag(field, bytesForm)
	m.raw(binary.AppendUvarint(nil, uint64(len(b))))
	m.raw(b)
}

func (m *message) text(field fieldNumber, s string) {
	m.bytes(field, []byte(s))
}

// texts appends all strings, empty ones too: an operand that is left out is one.
func (m *message) texts(field fieldNumber, list []string) {
	for _, s := range list {
		m.text(field, s)
	}
}

// ints appends a packed list.
func (m *message) ints(field fieldNumber, list []int64) {
	var b []byte
	for _, x := range list {
		b = binary.AppendUvarint(b, uint64(x))
	}
	m.bytes(field, b)
}

func (m *message) message(field fieldNumber, x *message) {
	m.tag(field, bytesForm)
	m.raw(binary.AppendUvarint(nil, uint64(x.size)))
	for _, p := range x.parts {
		if p.source == nil {
			m.raw(p.bytes)
			continue
		}
		m.parts, m.size = append(m.parts, p), m.size+p.source.size
	}
}

// entry appends a pair of strings.
func (m *message) entry(field fieldNumber, key, value string) {
	e := &message{}
	e.text(entryKey, key)
	e.text(entryValue, value)
	m.message(field, e)
}

// write writes the message. The elements of one tensor are in memory at a time.
func (m *message) write(w io.Writer) error {
	for _, p := range m.parts {
		data := p.bytes
		if p.source != nil {
			var err error
			if data, err = p.source.bytes(); err != nil {
				return err
			}
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// encode returns the model as a message.
func (m *Model) encode() *message {
	out := &message{}
	out.int(modelIRVersion, m.IRVersion)
	out.text(modelProducer, m.Producer)
	for _, domain := range slices.Sorted(maps.Keys(m.Opsets)) {
		set := &message{}
		set.text(opsetDomain, domain)
		set.int(opsetVersion, m.Opsets[domain])
		out.message(modelOpsets, set)
	}
	out.message(modelGraph, m.graph.encode())
	for _, key := range slices.Sorted(maps.Keys(m.Metadata)) {
		out.entry(modelMetadata, key, m.Metadata[key])
	}
	return out
}

func (g *graph) encode() *message {
	out := &message{}
	for _, n := range g.nodes {
		out.message(graphNode, n.encode())
	}
	out.text(graphName, g.name)
	for _, t := range g.initializers {
		out.message(graphInitializer, t.encode())
	}
	for _, v := range g.inputs {
		out.message(graphInput, v.encode())
	}
	for _, v := range g.outputs {
		out.message(graphOutput, v.encode())
	}
	return out
}

func (n *node) encode() *message {
	out := &message{}
	out.texts(nodeInput, n.inputs)
	out.texts(nodeOutput, n.outputs)
	out.text(nodeName, n.name)
	out.text(nodeOp, n.op)
	for _, name := range slices.Sorted(maps.Keys(n.attrs)) {
		out.message(nodeAttribute, n.attrs[name].encode())
	}
	return out
}

// The kinds of attributes, by the names of AttributeProto.AttributeType.
const (
	kindFloat, kindInt, kindString, kindTensor, kindGraph = 1, 2, 3, 4, 5
	kindFloats, kindInts                                  = 6, 7
)

func (a *attribute) encode() *message {
	out := &message{}
	out.text(attrName, a.name)
	out.int(attrKind, a.kind)
	switch a.kind {
	case kindFloat:
		out.float(attrF, a.f)
	case kindInt:
		out.int(attrI, a.i)
	case kindString:
		out.text(attrS, a.s)
	case kindTensor:
		out.message(attrT, a.tensor.encode())
	case kindGraph:
		out.message(attrG, a.graph.encode())
	case kindInts:
		// Not packed: the field is declared without, and some readers take that alone.
		for _, x := range a.ints {
			out.int(attrInts, x)
		}
	}
	return out
}

func (t *tensor) encode() *message {
	out := &message{}
	dims := make([]int64, len(t.dims))
	for i, d := range t.dims {
		dims[i] = int64(d)
	}
	out.ints(protoDims, dims)
	out.int(protoType, int64(t.elem))
	out.text(protoName, t.name)
	switch {
	case t.external != nil:
		for _, key := range []string{"location", "offset", "length"} {
			out.entry(protoExternal, key, t.external[key])
		}
		out.int(protoLocation, externalLocation)
	case t.source != nil:
		out.tag(protoRaw, bytesForm)
		out.raw(binary.AppendUvarint(nil, uint64(t.source.size)))
		out.parts, out.size = append(out.parts, part{source: t.source}), out.size+t.source.size
	default:
		out.bytes(protoRaw, t.raw)
	}
	return out
}

func (info valueInfo) encode() *message {
	shape := &message{}
	for _, d := range info.dims {
		dim := &message{}
		switch {
		case d.symbol != "":
			dim.text(dimParam, d.symbol)
		case d.given:
			dim.int(dimValue, d.size)
		}
		shape.message(shapeDim, dim)
	}
	tensor := &message{}
	tensor.int(tensorElem, int64(info.elem))
	if info.shaped {
		tensor.message(tensorShape, shape)
	}
	typ := &message{}
	typ.message(typeTensor, tensor)
	out := &message{}
	out.text(infoName, info.name)
	out.message(infoType, typ)
	return out
}
