package main

import (
	"maps"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/format/npz"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/safetensors"
)

// readTensors reads the tensors of a file by name: NumPy's npz by that ending, else safetensors.
func readTensors(name string) (rlx.Inputs, error) {
	if filepath.Ext(name) != ".npz" {
		tensors, _, err := safetensors.ReadFile(name)
		return tensors, err
	}
	f, err := npz.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := rlx.Inputs{}
	for _, array := range f.Names() {
		a, err := f.Array(array)
		if err != nil {
			return nil, err
		}
		out[array] = native.FromArray(a)
	}
	return out, nil
}

// writeTensors writes tensors to a file, in the format of its ending as [readTensors] has it.
func writeTensors(name string, tensors map[string]rlx.Tensor) (err error) {
	if filepath.Ext(name) != ".npz" {
		return safetensors.WriteFile(name, tensors, nil)
	}
	arrays := map[string]*ir.Array{}
	for tensor, x := range tensors {
		if arrays[tensor], err = x.Array(); err != nil {
			return err
		}
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := npz.Write(f, arrays); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// readAll reads the tensors of several files; those of later files replace those of earlier ones.
func readAll(files []string) (rlx.Inputs, error) {
	out := rlx.Inputs{}
	for _, file := range files {
		tensors, err := readTensors(file)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, tensors)
	}
	return out, nil
}

// fitted returns a tensor converted to an element type. NumPy's arrays are f64 and i64 by default:
// floats are rounded to f32, and integers narrowed if all fit. A tensor that cannot be converted is
// returned unchanged, for the device to refuse.
func fitted(x rlx.Tensor, to dtype.DType) rlx.Tensor {
	rounds, narrows := x.DType == ir.F64 && to == ir.F32, x.DType == ir.I64 && to == ir.I32
	if !rounds && !narrows {
		return x
	}
	from, err := x.Array()
	if err != nil {
		return x
	}
	made := ir.NewArray(to, x.Dims...)
	copy(made.F, from.F)
	for i, n := range from.I {
		if int64(int32(n)) != n {
			return x
		}
		made.I[i] = n
	}
	made.Round()
	return native.FromArray(made)
}
