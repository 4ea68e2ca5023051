package mil

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rlx-go/rlx/ir"
)

// decoder reads a model.
type decoder struct {
	weights blobFile
	program Program
	meta    map[string]string
	version uint64
	first   string // the default function
	shown   []*shownFunction
}

// shownFunction is the description of a function in a model.
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
		err = fmt.Errorf("%w: the model is not an ML program", ErrPackage)
	}
	return err
}

func (d *decoder) readProgram(data []byte) error {
	return each(data, func(field protowire.Number, number uint64, inner []byte) error {
		switch {
		case field == programVersion && number != 1:
			return fmt.Errorf("%w: unknown program version %d", ErrPackage, number)
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
		return &Error{f.Name, "", ir.Errorf(ir.ErrUnsupported, "unknown opset %q, or not one block for one opset of all functions: have CoreML5 to CoreML9", opset)}
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
