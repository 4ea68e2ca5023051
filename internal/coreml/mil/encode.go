package mil

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// blobElements is the minimum number of elements of a constant in the weight file, that of
// coremltools.
const blobElements = 10

// encoder encodes a model and collects its weights.
type encoder struct{ blobs *blobs }

// model returns the Model message of a package.
func (e *encoder) model(p *Package) message {
	var m message
	m.number(modelSpecificationVersion, uint64(p.Program.Opset.Specification()))
	m.bytes(modelDescription, e.description(p))
	m.bytes(modelMLProgram, e.program(&p.Program))
	return m
}

// description lists the features of the functions. Those of a single function are in the
// description itself, as in models before CoreML8.
func (e *encoder) description(p *Package) message {
	var m message
	if fs := p.Program.Functions; len(fs) == 1 {
		e.features(&m, fs[0], descriptionInput, descriptionOutput, descriptionState)
	} else {
		for _, f := range fs {
			var d message
			d.text(functionName, f.Name)
			e.features(&d, f, functionInput, functionOutput, functionState)
			m.bytes(descriptionFunctions, d)
		}
		m.text(descriptionDefaultFunction, fs[0].Name)
	}
	var meta message
	for _, key := range slices.Sorted(keys(p.Metadata)) {
		meta.entry(metadataUserDefined, key, message(p.Metadata[key]))
	}
	m.bytes(descriptionMetadata, meta)
	return m
}

// features returns the inputs, outputs and states of a function.
func (e *encoder) features(m *message, f *Function, input, output, state protowire.Number) {
	for _, in := range f.Inputs {
		if in.State {
			m.bytes(state, feature(in.Name, in.Type, true))
		} else {
			m.bytes(input, feature(in.Name, in.Type, false))
		}
	}
	for _, name := range f.Outputs {
		m.bytes(output, feature(name, f.TypeOf(name), false))
	}
}

// TypeOf returns the type of the result with the given name, the zero Type if there is none.
func (f *Function) TypeOf(name string) Type {
	for i := len(f.Ops) - 1; i >= 0; i-- { // outputs are last
		if f.Ops[i].Name == name && f.Ops[i].hasResult() {
			return f.Ops[i].Type
		}
	}
	return Type{}
}

func feature(name string, t Type, state bool) message {
	var array message
	for _, d := range t.Dims {
		array.number(arrayShape, uint64(d))
	}
	array.number(arrayDataType, arrayTypes[t.DType])
	kind := in(featureMultiArray, array)
	if state {
		kind = in(featureState, in(stateArray, array))
	}
	var m message
	m.text(featureName, name)
	m.bytes(featureType, kind)
	return m
}

func (e *encoder) program(p *Program) message {
	var m message
	m.number(programVersion, 1)
	for _, f := range p.Functions {
		m.entry(programFunctions, f.Name, e.function(f, p.Opset))
	}
	return m
}

func (e *encoder) function(f *Function, opset Opset) message {
	var m, block message
	for _, in := range f.Inputs {
		m.bytes(milFunctionInputs, namedType(in.Name, in.Type, in.State))
	}
	m.text(milFunctionOpset, opset.String())
	for _, name := range f.Outputs {
		block.text(blockOutputs, name)
	}
	for _, op := range f.Ops {
		block.bytes(blockOperations, e.operation(op))
	}
	m.entry(milFunctionBlocks, opset.String(), block)
	return m
}

func (e *encoder) operation(op *Op) message {
	var m message
	m.text(operationType, op.Kind)
	for _, a := range op.Inputs {
		var bindings message
		for _, name := range a.Values {
			var b message
			b.text(bindingName, name)
			bindings.bytes(argumentBindings, b)
		}
		m.entry(operationInputs, a.Parameter, bindings)
	}
	if op.hasResult() {
		m.bytes(operationOutputs, namedType(op.Name, op.Type, false))
	}
	m.entry(operationAttributes, "name", e.value(&Value{Type: TypeOf(String), Text: op.Name}))
	if op.Kind == opConst {
		m.entry(operationAttributes, "val", e.value(op.Value))
	}
	return m
}

func namedType(name string, t Type, state bool) message {
	var m message
	m.text(namedName, name)
	m.bytes(namedValueType, typeMessage(t, state))
	return m
}

func typeMessage(t Type, state bool) message {
	var tensor message
	tensor.number(tensorDataType, uint64(t.DType))
	tensor.number(tensorRank, uint64(len(t.Dims)))
	for _, d := range t.Dims {
		var size message
		size.number(constantSize, uint64(d))
		tensor.bytes(tensorDimensions, in(dimensionConst, size))
	}
	m := in(typeTensor, tensor)
	if state {
		m = in(typeState, in(stateWrapped, m))
	}
	return m
}

// isWeight reports whether a constant is stored in the weight file: a large one of a type other
// than string, int32 and bool.
func (v *Value) isWeight() bool {
	d := v.Type.DType
	if d == Int32 || dtypes[d].blob == 0 {
		return false
	}
	return v.Type.Len() >= blobElements || dtypes[d].bits < 8
}

// value encodes a constant in the program or the weight file.
func (e *encoder) value(v *Value) message {
	var m message
	m.bytes(valueType, typeMessage(v.Type, false))
	if v.isWeight() {
		var blob message
		blob.text(blobFileName, weightFile)
		blob.number(blobOffset, e.blobs.add(v))
		m.bytes(valueBlob, blob)
		return m
	}
	m.bytes(valueImmediate, in(immediateTensor, tensorMessage(v)))
	return m
}

// tensorMessage writes the elements of a constant.
func tensorMessage(v *Value) message {
	switch v.Type.DType {
	case String:
		return in(tensorStrings, in(repeatedValues, message(v.Text)))
	case Float32:
		return in(tensorFloats, in(repeatedValues, v.Data))
	case Int32:
		var numbers message
		for _, i := range v.Ints() {
			numbers = protowire.AppendVarint(numbers, uint64(int64(i)))
		}
		return in(tensorInts, in(repeatedValues, numbers))
	case Bool:
		return in(tensorBools, in(repeatedValues, v.Data))
	}
	return in(tensorBytes, in(repeatedValues, v.Data))
}
