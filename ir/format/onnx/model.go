package onnx

import "io/fs"

// Bounds of a model, against memory and stacks that a hostile file would take.
const (
	maxNesting  = 64      // of graphs in graphs
	maxNodes    = 1 << 20 // of all graphs and functions
	maxElements = 1 << 48 // of a tensor
)

// Model is an ONNX model that was decoded, not yet imported. It shares the memory of the data.
type Model struct {
	// IRVersion is the version of the file format, Producer the program that wrote the model.
	IRVersion int64
	Producer  string
	// Opsets are the versions of the operator sets by domain; the default domain is "".
	Opsets map[string]int64
	// Metadata are the model's properties.
	Metadata map[string]string

	graph     *graph
	functions map[functionKey]*function
	nodes     int
	files     fs.FS // the model's folder, nil if it is not known
}

type functionKey struct{ domain, name, overload string }

// graph is the main graph or an attribute of a node.
type graph struct {
	name            string
	nodes           []*node
	initializers    []*tensor
	inputs, outputs []valueInfo
}

type node struct {
	name, op, domain, overload string
	inputs, outputs            []string
	attrs                      map[string]*attribute
}

type attribute struct {
	name, ref string
	kind      int64
	f         float64
	i         int64
	s         string
	tensor    *tensor
	graph     *graph
	floats    []float64
	ints      []int64
	strings   []string
	sparse    *sparse
}

type sparse struct {
	values, indices *tensor
	dims            []int64
}

type function struct {
	functionKey
	inputs, outputs []string
	attrs           []string
	defaults        map[string]*attribute
	nodes           []*node
	opsets          map[string]int64
}

// valueInfo is the name and type of a value. Kind is the field of TypeProto that is set.
type valueInfo struct {
	name   string
	kind   fieldNumber
	elem   Element
	shaped bool
	dims   []dimension
}

// dimension is a size, a symbol or neither.
type dimension struct {
	size   int64
	symbol string
	given  bool
}

// The numbers of the fields, by the names of onnx.proto.
const (
	modelIRVersion, modelOpsets, modelProducer, modelGraph, modelMetadata, modelFunctions = 1, 8, 2, 7, 14, 25

	graphNode, graphName, graphInitializer, graphSparse, graphInput, graphOutput = 1, 2, 5, 15, 11, 12

	nodeInput, nodeOutput, nodeName, nodeOp, nodeDomain, nodeOverload, nodeAttribute = 1, 2, 3, 4, 7, 8, 5

	attrName, attrRef, attrKind, attrF, attrI, attrS, attrT, attrG      = 1, 21, 20, 2, 3, 4, 5, 6
	attrSparse, attrFloats, attrInts, attrStrings                       = 22, 7, 8, 9
	functionName, functionInput, functionOutput, functionAttribute      = 1, 4, 5, 6
	functionNode, functionOpset, functionDomain, functionAttributeProto = 7, 9, 10, 11
	functionOverload                                                    = 13
	opsetDomain, opsetVersion, entryKey, entryValue                     = 1, 2, 1, 2
	infoName, infoType, typeTensor, tensorElem, tensorShape, shapeDim   = 1, 2, 1, 1, 2, 1
	dimValue, dimParam, sparseValues, sparseIndices, sparseDims         = 1, 2, 1, 2, 3
	protoDims, protoType, protoFloats, protoInt32s, protoStrings        = 1, 2, 4, 5, 6
	protoInt64s, protoName, protoRaw, protoExternal, protoDoubles       = 7, 8, 9, 13, 10
	protoUint64s, protoLocation, externalLocation                       = 11, 14, 1
)

// Decode reads a model. It keeps windows of data, which must not change while the model is in use.
// Errors are of kind [ErrDamaged].
func Decode(data []byte) (*Model, error) {
	m := &Model{Opsets: map[string]int64{}, Metadata: map[string]string{}, functions: map[functionKey]*function{}}
	err := fields(data, func(field fieldNumber, v fieldValue) (err error) {
		switch field {
		case modelIRVersion:
			m.IRVersion = v.int()
		case modelProducer:
			m.Producer = string(v.data)
		case modelOpsets:
			err = readOpset(m.Opsets, v.data)
		case modelMetadata:
			err = readEntry(m.Metadata, v.data)
		case modelGraph:
			m.graph, err = m.readGraph(v.data, 0)
		case modelFunctions:
			err = m.readFunction(v.data)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if m.graph == nil {
		return nil, damaged("there is no graph")
	}
	if len(m.Opsets) == 0 {
		return nil, damaged("no operator set is named")
	}
	return m, nil
}

func readOpset(to map[string]int64, data []byte) error {
	domain, version := "", int64(0)
	err := fields(data, func(field fieldNumber, v fieldValue) error {
		switch field {
		case opsetDomain:
			domain = string(v.data)
		case opsetVersion:
			version = v.int()
		}
		return nil
	})
	to[domainOf(domain)] = version
	return err
}

// domainOf returns the short name of the default domain.
func domainOf(name string) string {
	if name == "ai.onnx" {
		return ""
	}
	return name
}

func readEntry(to map[string]string, data []byte) error {
	key, value := "", ""
	err := fields(data, func(field fieldNumber, v fieldValue) error {
		switch field {
		case entryKey:
			key = string(v.data)
		case entryValue:
			value = string(v.data)
		}
		return nil
	})
	to[key] = value
	return err
}

func (m *Model) readGraph(data []byte, depth int) (*graph, error) {
	if depth > maxNesting {
		return nil, damaged("graphs are nested more than %d times", maxNesting)
	}
	g := &graph{}
	err := fields(data, func(field fieldNumber, v fieldValue) error {
		switch field {
		case graphName:
			g.name = string(v.data)
		case graphNode:
			n, err := m.readNode(v.data, depth)
			g.nodes = append(g.nodes, n)
			return err
		case graphInitializer:
			t, err := readTensor(v.data)
			g.initializers = append(g.initializers, t)
			return err
		case graphSparse:
			s, err := readSparse(v.data)
			if err != nil {
				return err
			}
			t, err := s.dense()
			g.initializers = append(g.initializers, t)
			return err
		case graphInput, graphOutput:
			info, err := readInfo(v.data)
			if field == graphInput {
				g.inputs = append(g.inputs, info)
			} else {
				g.outputs = append(g.outputs, info)
			}
			return err
		}
		return nil
	})
	return g, err
}

func (m *Model) readNode(data []byte, depth int) (*node, error) {
	if m.nodes++; m.nodes > maxNodes {
		return nil, damaged("there are more than %d nodes", maxNodes)
	}
	n := &node{attrs: map[string]*attribute{}}
	err := fields(data, func(field fieldNumber, v fieldValue) error {
		switch field {
		case nodeInput:
			n.inputs = append(n.inputs, string(v.data))
		case nodeOutput:
			n.outputs = append(n.outputs, string(v.data))
		case nodeName:
			n.name = string(v.data)
		case nodeOp:
			n.op = string(v.data)
		case nodeDomain:
			n.domain = domainOf(string(v.data))
		case nodeOverload:
			n.overload = string(v.data)
		case nodeAttribute:
			a, err := m.readAttribute(v.data, depth)
			if err != nil {
				return err
			}
			if n.attrs[a.name] != nil {
				return damaged("node %q has attribute %q twice", n.title(), a.name)
			}
			n.attrs[a.name] = a
		}
		return nil
	})
	return n, err
}

// title returns the name of the node, or of its first output.
func (n *node) title() string {
	if n.name == "" && len(n.outputs) > 0 {
		return n.outputs[0]
	}
	return n.name
}

func (m *Model) readAttribute(data []byte, depth int) (*attribute, error) {
	a := &attribute{}
	err := fields(data, func(field fieldNumber, v fieldValue) (err error) {
		switch field {
		case attrName:
			a.name = string(v.data)
		case attrRef:
			a.ref = string(v.data)
		case attrKind:
			a.kind = v.int()
		case attrF:
			a.f = v.float()
		case attrI:
			a.i = v.int()
		case attrS:
			a.s = string(v.data)
		case attrT:
			a.tensor, err = readTensor(v.data)
		case attrG:
			a.graph, err = m.readGraph(v.data, depth+1)
		case attrSparse:
			a.sparse, err = readSparse(v.data)
		case attrFloats:
			var list []uint64
			list, err = appendNumbers(nil, v, fixed32Form)
			for _, x := range list {
				a.floats = append(a.floats, fieldValue{number: x}.float())
			}
		case attrInts:
			a.ints, err = appendInts(a.ints, v)
		case attrStrings:
			a.strings = append(a.strings, string(v.data))
		}
		return err
	})
	return a, err
}

func (m *Model) readFunction(data []byte) error {
	f := &function{opsets: map[string]int64{}, defaults: map[string]*attribute{}}
	err := fields(data, func(field fieldNumber, v fieldValue) error {
		switch field {
		case functionName:
			f.name = string(v.data)
		case functionDomain:
			f.domain = domainOf(string(v.data))
		case functionOverload:
			f.overload = string(v.data)
		case functionInput:
			f.inputs = append(f.inputs, string(v.data))
		case functionOutput:
			f.outputs = append(f.outputs, string(v.data))
		case functionAttribute:
			f.attrs = append(f.attrs, string(v.data))
		case functionAttributeProto:
			a, err := m.readAttribute(v.data, 0)
			f.defaults[a.name] = a
			return err
		case functionOpset:
			return readOpset(f.opsets, v.data)
		case functionNode:
			n, err := m.readNode(v.data, 0)
			f.nodes = append(f.nodes, n)
			return err
		}
		return nil
	})
	m.functions[f.functionKey] = f
	return err
}

func readInfo(data []byte) (valueInfo, error) {
	var info valueInfo
	err := fields(data, func(field fieldNumber, v fieldValue) error {
		switch field {
		case infoName:
			info.name = string(v.data)
		case infoType:
			return fields(v.data, func(field fieldNumber, v fieldValue) error {
				info.kind = field
				if field != typeTensor {
					return nil
				}
				return info.readTensorType(v.data)
			})
		}
		return nil
	})
	return info, err
}

func (info *valueInfo) readTensorType(data []byte) error {
	return fields(data, func(field fieldNumber, v fieldValue) error {
		switch field {
		case tensorElem:
			info.elem = Element(v.int())
		case tensorShape:
			info.shaped = true
			return fields(v.data, func(field fieldNumber, v fieldValue) error {
				if field != shapeDim {
					return nil
				}
				d, err := readDimension(v.data)
				info.dims = append(info.dims, d)
				return err
			})
		}
		return nil
	})
}

func readDimension(data []byte) (dimension, error) {
	var d dimension
	err := fields(data, func(field fieldNumber, v fieldValue) error {
		switch field {
		case dimValue:
			d.size, d.given = v.int(), true
		case dimParam:
			d.symbol = string(v.data)
		}
		return nil
	})
	return d, err
}

func readSparse(data []byte) (*sparse, error) {
	s := &sparse{}
	err := fields(data, func(field fieldNumber, v fieldValue) (err error) {
		switch field {
		case sparseValues:
			s.values, err = readTensor(v.data)
		case sparseIndices:
			s.indices, err = readTensor(v.data)
		case sparseDims:
			s.dims, err = appendInts(s.dims, v)
		}
		return err
	})
	return s, err
}
