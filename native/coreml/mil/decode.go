package mil

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rlx-go/rlx/ir"
)

// decoder reads a model.
type decoder struct {
	weights []byte // the weight file
	program Program
	meta    map[string]string
	version uint64
	first   string // the default function
	shown   []*shownFunction
}

// shownFunction is what the description of a model says of a function.
type shownFunction struct {
	name           string
	inputs, states []shownFeature
	outputs        []shownFeature
}

type shownFeature struct {
	name string
	kind uint64
	dims []int
}

func (d *decoder) model(data []byte) error {
	d.meta = map[string]string{}
	found := false
	err := each(data, func(field protowire.Number, number uint64, inner []byte) error {
		switch field {
		case modelSpecificationVersion:
			d.version = number
		case modelDescription:
			return d.description(inner)
		case modelMLProgram:
			found = true
			return d.readProgram(inner)
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: the model is no ML program", ErrPackage)
	}
	return err
}

func (d *decoder) description(data []byte) error {
	alone := &shownFunction{}
	err := each(data, func(field protowire.Number, _ uint64, inner []byte) error {
		switch field {
		case descriptionFunctions:
			f := &shownFunction{}
			d.shown = append(d.shown, f)
			return f.read(inner, functionInput, functionOutput, functionState)
		case descriptionDefaultFunction:
			d.first = string(inner)
		case descriptionMetadata:
			return each(inner, func(field protowire.Number, _ uint64, entry []byte) error {
				if field != metadataUserDefined {
					return nil
				}
				key, value, err := entryOf(entry)
				d.meta[key] = string(value)
				return err
			})
		}
		return nil
	})
	if err == nil && len(d.shown) == 0 {
		d.shown = append(d.shown, alone)
		err = alone.read(data, descriptionInput, descriptionOutput, descriptionState)
	}
	return err
}

// read reads the features of a function; its name has the number of an input of
// a description, which a name is not.
func (f *shownFunction) read(data []byte, input, output, state protowire.Number) error {
	return each(data, func(field protowire.Number, _ uint64, inner []byte) (err error) {
		var got shownFeature
		switch field {
		case input:
			got, err = readFeature(inner)
			f.inputs = append(f.inputs, got)
		case output:
			got, err = readFeature(inner)
			f.outputs = append(f.outputs, got)
		case state:
			got, err = readFeature(inner)
			f.states = append(f.states, got)
		case functionName:
			f.name = string(inner)
		}
		return err
	})
}

func readFeature(data []byte) (f shownFeature, err error) {
	array := func(field protowire.Number, number uint64, inner []byte) error {
		switch field {
		case arrayDataType:
			f.kind = number
		case arrayShape:
			if inner == nil { // not packed
				f.dims = append(f.dims, int(number))
			}
			for len(inner) > 0 {
				v, n := protowire.ConsumeVarint(inner)
				if n < 0 {
					return fmt.Errorf("%w: %w", ErrPackage, protowire.ParseError(n))
				}
				f.dims, inner = append(f.dims, int(v)), inner[n:]
			}
		}
		return nil
	}
	err = each(data, func(field protowire.Number, _ uint64, inner []byte) error {
		switch field {
		case featureName:
			f.name = string(inner)
		case featureType:
			return each(inner, func(field protowire.Number, _ uint64, kind []byte) error {
				switch field {
				case featureMultiArray:
					return each(kind, array)
				case featureState:
					return each(kind, func(_ protowire.Number, _ uint64, inner []byte) error { return each(inner, array) })
				}
				return fmt.Errorf("%w: feature %q is no multi-array", ErrPackage, f.name)
			})
		}
		return nil
	})
	return f, err
}

func (d *decoder) readProgram(data []byte) error {
	return each(data, func(field protowire.Number, number uint64, inner []byte) error {
		switch {
		case field == programVersion && number != 1:
			return fmt.Errorf("%w: program of version %d", ErrPackage, number)
		case field == programFunctions:
			name, value, err := entryOf(inner)
			if err != nil {
				return err
			}
			f := &Function{Name: name}
			d.program.Functions = append(d.program.Functions, f)
			return d.function(f, value)
		}
		return nil
	})
}

func (d *decoder) function(f *Function, data []byte) error {
	opset, blocks := "", map[string][]byte{}
	err := each(data, func(field protowire.Number, _ uint64, inner []byte) error {
		switch field {
		case milFunctionInputs:
			name, t, state, err := readNamedType(inner)
			f.Inputs = append(f.Inputs, Input{name, t, state})
			return err
		case milFunctionOpset:
			opset = string(inner)
		case milFunctionBlocks:
			key, block, err := entryOf(inner)
			blocks[key] = block
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	o, known := opsetNamed(opset)
	block, there := blocks[opset]
	if !known || !there || d.program.Opset != 0 && d.program.Opset != o {
		return &Error{f.Name, "", ir.Errorf(ir.ErrUnsupported, "opset %q: known are CoreML5 to CoreML9, one for all functions, with a block of the name", opset)}
	}
	d.program.Opset = o
	return each(block, func(field protowire.Number, _ uint64, inner []byte) error {
		switch field {
		case blockOutputs:
			f.Outputs = append(f.Outputs, string(inner))
		case blockOperations:
			op, err := d.operation(inner)
			if err != nil {
				return &Error{f.Name, op.String(), err}
			}
			f.Ops = append(f.Ops, op)
		}
		return nil
	})
}

func (d *decoder) operation(data []byte) (*Op, error) {
	op := &Op{}
	err := each(data, func(field protowire.Number, _ uint64, inner []byte) (err error) {
		switch field {
		case operationType:
			op.Kind = string(inner)
		case operationInputs:
			return op.readArgument(inner)
		case operationOutputs:
			if op.Type.DType != 0 {
				return ir.Errorf(ir.ErrUnsupported, "more than one result")
			}
			op.Name, op.Type, _, err = readNamedType(inner)
		case operationAttributes:
			key, value, err := entryOf(inner)
			if err != nil || key != "name" && key != "val" {
				return fmt.Errorf("%w: attribute %q of an operation", ErrPackage, key)
			}
			v, err := d.value(value)
			switch {
			case err != nil:
				return err
			case key == "val":
				op.Value = v
			case op.Name == "": // of a write to a state, which has no result
				op.Name = v.Text
			}
		}
		return err
	})
	slices.SortStableFunc(op.Inputs, func(a, b Argument) int { return strings.Compare(a.Parameter, b.Parameter) })
	return op, err
}

func (op *Op) readArgument(data []byte) error {
	name, value, err := entryOf(data)
	if err != nil {
		return err
	}
	a := Argument{Parameter: name}
	err = each(value, func(field protowire.Number, _ uint64, binding []byte) error {
		return each(binding, func(field protowire.Number, _ uint64, inner []byte) error {
			if field != bindingName {
				return ir.Errorf(ir.ErrUnsupported, "parameter %q holds its value, and not the name of one", name)
			}
			a.Values = append(a.Values, string(inner))
			return nil
		})
	})
	op.Inputs = append(op.Inputs, a)
	return err
}

func readNamedType(data []byte) (name string, t Type, state bool, err error) {
	err = each(data, func(field protowire.Number, _ uint64, inner []byte) (err error) {
		switch field {
		case namedName:
			name = string(inner)
		case namedValueType:
			t, state, err = readType(inner)
		}
		return err
	})
	return name, t, state, err
}

func readType(data []byte) (t Type, state bool, err error) {
	err = each(data, func(field protowire.Number, _ uint64, inner []byte) (err error) {
		switch field {
		case typeTensor:
			return each(inner, func(field protowire.Number, number uint64, dimension []byte) error {
				switch field {
				case tensorDataType:
					t.DType = DType(number)
				case tensorDimensions:
					size, err := readSize(dimension)
					t.Dims = append(t.Dims, size)
					return err
				}
				return nil
			})
		case typeState:
			state = true
			return each(inner, func(_ protowire.Number, _ uint64, wrapped []byte) (err error) {
				t, _, err = readType(wrapped)
				return err
			})
		}
		return ir.Errorf(ir.ErrUnsupported, "a type that is no tensor")
	})
	return t, state, err
}

// readSize reads a constant dimension.
func readSize(data []byte) (size int, err error) {
	size = -1
	err = each(data, func(field protowire.Number, _ uint64, inner []byte) error {
		if field != dimensionConst {
			return ir.Errorf(ir.ErrSymbol, "a size is not constant")
		}
		size = 0
		return each(inner, func(_ protowire.Number, number uint64, _ []byte) error {
			size = int(min(number, math.MaxInt32))
			return nil
		})
	})
	return size, err
}

func (d *decoder) value(data []byte) (*Value, error) {
	v := &Value{}
	var immediate []byte
	offset := uint64(math.MaxUint64)
	err := each(data, func(field protowire.Number, _ uint64, inner []byte) (err error) {
		switch field {
		case valueType:
			v.Type, _, err = readType(inner)
		case valueImmediate:
			immediate = inner
		case valueBlob:
			offset = 0
			return each(inner, func(field protowire.Number, number uint64, name []byte) error {
				if field == blobFileName && string(name) != weightFile {
					return fmt.Errorf("%w: weights in a file %q", ErrPackage, name)
				}
				offset = max(offset, number)
				return nil
			})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if offset != math.MaxUint64 {
		v.Data, err = readBlob(d.weights, offset, v.Type)
		return v, err
	}
	err = each(immediate, func(_ protowire.Number, _ uint64, tensor []byte) error {
		return each(tensor, func(field protowire.Number, _ uint64, repeated []byte) error {
			return each(repeated, func(_ protowire.Number, number uint64, values []byte) error {
				return v.read(field, number, values)
			})
		})
	})
	if err == nil {
		err = v.check()
	}
	return v, err
}

// read takes the elements of an immediate value, packed or one alone.
func (v *Value) read(field protowire.Number, number uint64, values []byte) error {
	switch field {
	case tensorStrings:
		v.Text = string(values)
	case tensorInts:
		if values == nil {
			v.Data = binary.LittleEndian.AppendUint32(v.Data, uint32(number))
		}
		for len(values) > 0 {
			x, n := protowire.ConsumeVarint(values)
			if n < 0 {
				return fmt.Errorf("%w: %w", ErrPackage, protowire.ParseError(n))
			}
			v.Data, values = binary.LittleEndian.AppendUint32(v.Data, uint32(x)), values[n:]
		}
	case tensorFloats, tensorBools, tensorBytes:
		v.Data = append(v.Data, values...)
	default:
		return ir.Errorf(ir.ErrUnsupported, "immediate values of form %d", field)
	}
	return nil
}
