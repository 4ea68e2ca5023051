package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/wholefile"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/format/npz"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/safetensors"
)

// readTensors reads the tensors of a file by name: NumPy's npz by that ending, else safetensors.
func readTensors(name string) (rlx.Inputs, error) {
	switch filepath.Ext(name) {
	case ".npz":
	case ".npy":
		return nil, fmt.Errorf("%s has an array without a name: numpy.savez writes arrays with names to an npz file", name)
	default:
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
func writeTensors(name string, tensors map[string]rlx.Tensor) error {
	if filepath.Ext(name) != ".npz" {
		return safetensors.WriteFile(name, tensors, nil)
	}
	arrays := map[string]*ir.Array{}
	for tensor, x := range tensors {
		a, err := x.Array()
		if err != nil {
			return err
		}
		arrays[tensor] = a
	}
	return replaceFile(name, func(w io.Writer) error { return npz.Write(w, arrays) })
}

// replaceFile writes a file as a whole, so that an error leaves the old one, or writes to a device or a pipe.
func replaceFile(name string, write func(w io.Writer) error) error {
	if info, err := os.Stat(name); err != nil || info.Mode().IsRegular() {
		return wholefile.Replace(name, write)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// checkWritable returns the error of opening a file to write, before the work whose results it is for.
func checkWritable(name string) error {
	if name == "" {
		return nil
	}
	info, missing := os.Stat(name)
	if missing == nil && !info.Mode().IsRegular() && weightsFormat(name) != npzFormat {
		return fmt.Errorf("%s is no regular file: safetensors files are replaced as a whole", name)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil || missing == nil {
		return err
	}
	return os.Remove(name)
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

// fitted returns a tensor converted to the element type of an input or parameter. NumPy's arrays are f64 and i64 by default, and
// those of images and labels often u8: floats become f32, rounded, and integers i32 if all fit. A tensor that cannot be converted is
// returned unchanged, for the device to refuse.
func fitted(x rlx.Tensor, to dtype.DType) rlx.Tensor {
	floats, integers := x.DType.IsFloat() && to == ir.F32, x.DType.IsInteger() && to == ir.I32
	if x.DType == to || x.DType.IsPacked() || !floats && !integers {
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
