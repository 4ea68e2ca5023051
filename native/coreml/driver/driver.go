//go:build cgo && (darwin || linux)

package driver

/*
#include <stdlib.h>
#include "binding.h"

static int rlx_system_of(const rlx_coreml *b, rlx_system *system, rlx_why *why) { return b->system(system, why); }
static int rlx_plan_of(const rlx_coreml *b, void *model, rlx_placement **out, rlx_why *why) { return b->plan(model, out, why); }
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
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml/mil"
)

// Open returns Core ML, or an error of kind [native.ErrUnavailable] that says what
// is missing.
func Open() (Runtime, error) {
	b, err := binding()
	if err != nil {
		return nil, err
	}
	return system{b}, nil
}

// system is Core ML.
type system struct{ binding *C.rlx_coreml }

// System asks Core ML what it is.
func (s system) System() (System, error) {
	var of C.rlx_system
	var why C.rlx_why
	if C.rlx_system_of(s.binding, &of, &why) != 0 {
		return System{}, unavailable(C.GoString(&why.text[0]))
	}
	var parts []string
	for _, p := range setOf(of.processors) {
		parts = append(parts, p.String())
	}
	if of.neural_cores > 0 {
		parts[len(parts)-1] += fmt.Sprintf(" of %d cores", of.neural_cores)
	}
	return System{Description: "Core ML, " + C.GoString(&of.version[0]) + ": " + strings.Join(parts, ", "), Software: standIn}, nil
}

// processors are the bits of sets, in the order of what they are.
var processors = []C.int{C.RLX_CPU, C.RLX_GPU, C.RLX_NEURAL_ENGINE}

func setOf(set C.int) []Processor {
	var out []Processor
	for i, bit := range processors {
		if set&bit != 0 {
			out = append(out, CPU+Processor(i))
		}
	}
	return out
}

// Load compiles a package and loads a function of it. What Core ML says is the error.
func (s system) Load(dir, function string, units Units) (Loaded, error) {
	p, err := mil.Describe(dir)
	if err != nil {
		return nil, err
	}
	f := p.Program.Function(function)
	if f == nil || units < AllUnits || units > CPUAndNeuralEngine {
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

// Predict runs the function. Inputs are read where they lie, and results are put where
// they belong, but for memory that is not aligned.
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
	t, ok := from[name]
	if !ok || C.uint64_t(len(t.Data)) != a.bytes {
		return native.Tensor{}, ir.Shapef("%s has %d bytes, not %d", name, len(t.Data), a.bytes)
	}
	return t, nil
}

// Plan asks Core ML where the operations of the function would run.
func (m *model) Plan() ([]Placement, error) {
	if m.handle == nil {
		return nil, native.ErrClosed
	}
	var list *C.rlx_placement
	var why C.rlx_why
	n := C.rlx_plan_of(m.binding, m.handle, &list, &why)
	switch {
	case n == -2:
		return nil, unavailable(C.GoString(&why.text[0]))
	case n < 0:
		return nil, errors.New(C.GoString(&why.text[0]))
	}
	defer C.free(unsafe.Pointer(list))
	out := make([]Placement, n)
	for i := range unsafe.Slice(list, n) {
		p := &unsafe.Slice(list, n)[i]
		out[i] = Placement{Kind: C.GoString(&p.kind[0]), Name: C.GoString(&p.name[0]), Supported: setOf(p.supported), Cost: float64(p.cost)}
		if preferred := setOf(p.preferred); len(preferred) > 0 {
			out[i].Preferred = preferred[0]
		}
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
