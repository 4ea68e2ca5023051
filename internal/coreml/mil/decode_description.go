package mil

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

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

// read reads the features of a function. The field number of its name is that of an input in a
// description, where it is a message.
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
				return fmt.Errorf("%w: feature %q is not a multi-array", ErrPackage, f.name)
			})
		}
		return nil
	})
	return f, err
}
