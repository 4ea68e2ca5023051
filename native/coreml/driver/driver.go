//go:build cgo && (darwin || linux)

package driver

/*
#include <stdlib.h>
#include "binding.h"

static void *rlx_load(const rlx_coreml *b, const char *package, const char *function, int units, int states, rlx_why *why) {
	return b->load(package, function, units, states, why);
}
static int rlx_predict(const rlx_coreml *b, void *model, const rlx_array *in, int inputs, rlx_array *out, int outputs, rlx_why *why) {
	return b->predict(model, in, inputs, out, outputs, why);
}
static void rlx_release(const rlx_coreml *b, void *model) { b->release(model); }
*/
import "C"

import (
	"errors"
	"runtime"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
	"github.com/rlx-go/rlx/native/coreml/mil"
)

// Runtime returns Core ML, or an error of kind [native.ErrUnavailable] that says what
// is missing.
func Runtime() (coreml.Runtime, error) {
	b, err := binding()
	if err != nil {
		return nil, err
	}
	return system{b}, nil
}

// system is Core ML.
type system struct{ binding *C.rlx_coreml }

// Load compiles a package and loads a function of it. What Core ML says is the error.
func (s system) Load(dir, function string, units coreml.Units) (coreml.Loaded, error) {
	p, err := mil.Read(dir)
	if err != nil {
		return nil, err
	}
	f := p.Program.Function(function)
	if f == nil || units < coreml.AllUnits || units > coreml.CPUAndNeuralEngine {
		return nil, ir.Errorf(ir.ErrName, "no function %q, or no units %d", function, units)
	}
	path := C.CString(dir)
	defer C.free(unsafe.Pointer(path))
	var name *C.char // of the only function none is given, which old systems know
	if len(p.Program.Functions) > 1 {
		name = C.CString(function)
		defer C.free(unsafe.Pointer(name))
	}
	m := &model{system: s, function: f}
	states := C.int(0)
	for _, in := range f.Inputs {
		if in.State {
			states = 1
		} else {
			m.inputs = append(m.inputs, array(in.Name, in.Type))
		}
	}
	for _, out := range f.Outputs {
		m.outputs = append(m.outputs, array(out, f.TypeOf(out)))
	}
	var why C.rlx_why
	if m.handle = C.rlx_load(s.binding, path, name, C.int(units), states, &why); m.handle == nil {
		m.free()
		return nil, errors.New(C.GoString(&why.text[0]))
	}
	return m, nil
}

// model is a loaded function. Its arrays lie in memory of C, but for their data.
type model struct {
	system
	function        *mil.Function
	handle          unsafe.Pointer
	inputs, outputs []C.rlx_array
}

// arrayTypes are the numbers of element types in Core ML.
var arrayTypes = map[mil.DType]C.int{mil.Float16: C.RLX_FLOAT16, mil.Float32: C.RLX_FLOAT32, mil.Int32: C.RLX_INT32}

func array(name string, t mil.Type) C.rlx_array {
	a := C.rlx_array{name: C.CString(name), _type: arrayTypes[t.DType], rank: C.int(len(t.Dims))}
	for i, d := range t.Dims {
		a.dims[i] = C.int64_t(d)
	}
	size := 4
	if t.DType == mil.Float16 {
		size = 2
	}
	a.bytes = C.uint64_t(t.Len() * size)
	return a
}

// Predict runs the function. Inputs are read where they lie.
func (m *model) Predict(in map[string]native.Tensor) (map[string]native.Tensor, error) {
	if m.handle == nil {
		return nil, native.ErrClosed
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	for i := range m.inputs {
		a := &m.inputs[i]
		t, ok := in[C.GoString(a.name)]
		if !ok || C.uint64_t(len(t.Data)) != a.bytes {
			return nil, ir.Shapef("input %s has %d bytes, not %d", C.GoString(a.name), len(t.Data), a.bytes)
		}
		if !t.Aligned() {
			t = t.Clone()
		}
		point(&pin, a, t.Data)
	}
	out := map[string]native.Tensor{}
	for i := range m.outputs {
		name := m.function.Outputs[i]
		t := m.function.TypeOf(name)
		tensor := native.Zeros(map[mil.DType]ir.DType{mil.Float16: ir.F16, mil.Float32: ir.F32, mil.Int32: ir.I32}[t.DType], t.Dims...)
		point(&pin, &m.outputs[i], tensor.Data)
		out[name] = tensor
	}
	var why C.rlx_why
	failed := C.rlx_predict(m.binding, m.handle, unsafe.SliceData(m.inputs), C.int(len(m.inputs)),
		unsafe.SliceData(m.outputs), C.int(len(m.outputs)), &why)
	if failed != 0 {
		return nil, errors.New(C.GoString(&why.text[0]))
	}
	return out, nil
}

// point lets an array have its data in memory of Go, until it is unpinned.
func point(pin *runtime.Pinner, a *C.rlx_array, data []byte) {
	p := unsafe.Pointer(unsafe.SliceData(data))
	pin.Pin(p)
	a.data = p
}

// Close gives back the model.
func (m *model) Close() error {
	if m.handle == nil {
		return native.ErrClosed
	}
	C.rlx_release(m.binding, m.handle)
	m.handle = nil
	m.free()
	return nil
}

func (m *model) free() {
	for _, a := range append(m.inputs, m.outputs...) {
		C.free(unsafe.Pointer(a.name))
	}
}
