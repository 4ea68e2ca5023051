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
				return ir.Errorf(ir.ErrUnsupported, "the operation has more than one result")
			}
			op.Name, op.Type, _, err = readNamedType(inner)
		case operationAttributes:
			key, value, err := entryOf(inner)
			if err != nil || key != "name" && key != "val" {
				return fmt.Errorf("%w: unknown attribute %q of an operation", ErrPackage, key)
			}
			v, err := d.value(value)
			switch {
			case err != nil:
				return err
			case key == "val":
				op.Value = v
			case op.Name == "": // a write to a state, which has no result
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
				return ir.Errorf(ir.ErrUnsupported, "parameter %q has an immediate value; it must be a name", name)
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
		return ir.Errorf(ir.ErrUnsupported, "the type is not a tensor")
	})
	if err == nil && !countable(t.Dims) {
		err = ir.Shapef("dims are %v; they have too many elements", t.Dims)
	}
	return t, state, err
}

// countable reports whether an int holds the number of elements and of their bytes.
func countable(dims []int) bool {
	n := 1
	for _, d := range dims {
		if d > 0 && n > math.MaxInt/8/d {
			return false
		}
		n *= max(d, 1)
	}
	return true
}

// readSize reads a constant dimension.
func readSize(data []byte) (size int, err error) {
	size = -1
	err = each(data, func(field protowire.Number, _ uint64, inner []byte) error {
		if field != dimensionConst {
			return ir.Errorf(ir.ErrSymbol, "a size is symbolic; it must be constant")
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
					return fmt.Errorf("%w: unknown weights file %q", ErrPackage, name)
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
		v.Data, err = d.weights.read(offset, v.Type)
		v.elsewhere = d.weights.skip
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

// read reads the elements of an immediate value, packed or single.
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
		return ir.Errorf(ir.ErrUnsupported, "unknown form %d of immediate values", field)
	}
	return nil
}
