//go:build cgo && (darwin || linux)

package driver

/*
#include <stdlib.h>
#include "binding.h"

static int rlx_predict(const rlx_coreml *b, void *model, const rlx_array *in, int inputs, rlx_array *out, int outputs, rlx_why *why) {
	return b->predict(model, in, inputs, out, outputs, why);
}
static int rlx_state_of(const rlx_coreml *b, void *model, const rlx_array *a, int write, rlx_why *why) { return b->state(model, a, write, why); }
static void rlx_release(const rlx_coreml *b, void *model) { b->release(model); }
*/
import "C"

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// model is a loaded function.
type model struct {
	system
	arrays
	handle    unsafe.Pointer
	temporary string // the folder that it was loaded from, "" for one of the cache
}

// Predict runs the function. It reads inputs and writes results in place if the memory is aligned.
func (m *model) Predict(in, out map[string]native.Tensor) error {
	if m.handle == nil {
		return native.ErrClosed
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	for i := range m.inputs {
		t, err := placed(&m.inputs[i], in)
		if err != nil {
			return err
		}
		if !t.Aligned() {
			t = t.Clone()
		}
		point(&pin, &m.inputs[i], t.Data)
	}
	var copies [][2][]byte
	for i := range m.outputs {
		t, err := placed(&m.outputs[i], out)
		if err != nil {
			return err
		}
		if !t.Aligned() {
			aligned := t.Clone()
			copies = append(copies, [2][]byte{t.Data, aligned.Data})
			t = aligned
		}
		point(&pin, &m.outputs[i], t.Data)
	}
	var why C.rlx_why
	failed := C.rlx_predict(m.binding, m.handle, unsafe.SliceData(m.inputs), C.int(len(m.inputs)),
		unsafe.SliceData(m.outputs), C.int(len(m.outputs)), &why)
	if failed != 0 {
		return errors.New(C.GoString(&why.text[0]))
	}
	for _, c := range copies {
		copy(c[0], c[1])
	}
	return nil
}

// placed returns the tensor of an input or an output.
func placed(a *C.rlx_array, from map[string]native.Tensor) (native.Tensor, error) {
	name := C.GoString(a.name)
	return from[name], fits(a, from[name])
}

func fits(a *C.rlx_array, t native.Tensor) error {
	if C.uint64_t(len(t.Data)) != a.bytes {
		return ir.Shapef("%s has %d bytes; it must have %d", C.GoString(a.name), len(t.Data), a.bytes)
	}
	return nil
}

// SetState sets a state.
func (m *model) SetState(name string, t native.Tensor) error { return m.moveState(name, t, 1) }

// State reads the values of a state.
func (m *model) State(name string, t native.Tensor) error { return m.moveState(name, t, 0) }

func (m *model) moveState(name string, t native.Tensor, write C.int) error {
	if m.handle == nil {
		return native.ErrClosed
	}
	i := slices.IndexFunc(m.states, func(a C.rlx_array) bool { return C.GoString(a.name) == name })
	if i < 0 {
		return ir.Errorf(ir.ErrName, "unknown state %q", name)
	}
	a := m.states[i]
	if err := fits(&a, t); err != nil {
		return err
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	point(&pin, &a, t.Data)
	var why C.rlx_why
	if C.rlx_state_of(m.binding, m.handle, &a, write, &why) != 0 {
		return errors.New(C.GoString(&why.text[0]))
	}
	return nil
}

// point lets an array have its data in memory of Go, until it is unpinned.
func point(pin *runtime.Pinner, a *C.rlx_array, data []byte) {
	p := unsafe.Pointer(unsafe.SliceData(data))
	pin.Pin(p)
	a.data = p
}

// Close releases the model.
func (m *model) Close() error {
	if m.handle == nil {
		return native.ErrClosed
	}
	C.rlx_release(m.binding, m.handle)
	m.handle = nil
	m.free()
	if m.temporary != "" {
		return os.RemoveAll(m.temporary)
	}
	return nil
}
