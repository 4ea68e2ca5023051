//go:build cgo && (darwin || linux)

package driver

/*
#include <stdlib.h>
#include "binding.h"

static char *rlx_compile(const rlx_coreml *b, const char *package, rlx_why *why) { return b->compile(package, why); }
static void *rlx_load(const rlx_coreml *b, const char *compiled, const char *function, int units, int states, rlx_why *why) {
	return b->load(compiled, function, units, states, why);
}
*/
import "C"

import (
	"errors"
	"os"
	"unsafe"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
)

// Load compiles a package, or finds it compiled in the cache, and loads a function of it. The error
// is Core ML's.
func (s system) Load(dir, function string, units Units) (Loaded, error) {
	p, err := mil.Describe(dir)
	if err != nil {
		return nil, err
	}
	f := p.Program.Function(function)
	if f == nil || units < DefaultUnits || units > CPUAndNeuralEngine {
		return nil, ir.Errorf(ir.ErrName, "unknown function %q or units %d", function, units)
	}
	m := &model{system: s, arrays: arraysOf(f)}
	name := function
	if len(p.Program.Functions) == 1 {
		name = "" // supported by old systems
	}
	if m.handle, m.temporary, err = s.fromCache(dir, func(compiled string) (unsafe.Pointer, error) {
		return s.load(compiled, name, units.For(len(m.states) > 0), len(m.states) > 0)
	}); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

// fromCache calls load with the compiled package: from the cache, or compiled now and, if
// possible, added to it. temporary is the folder to remove after use, "" for one in the
// cache.
func (s system) fromCache(dir string, load func(compiled string) (unsafe.Pointer, error)) (handle unsafe.Pointer, temporary string, err error) {
	entry := cacheEntry(dir, s.version())
	if entry.there() {
		if handle, err = load(string(entry)); err == nil {
			return handle, "", nil
		}
		entry.remove() // it is damaged, or nothing that this Core ML loads
	}
	if temporary, err = s.compile(dir); err != nil {
		return nil, "", err
	}
	compiled := temporary
	if entry.keep(temporary) {
		compiled, temporary = string(entry), ""
	}
	if handle, err = load(compiled); err != nil && temporary != "" {
		os.RemoveAll(temporary)
	}
	return handle, temporary, err
}

// compile returns the folder of the package compiled by Core ML.
func (s system) compile(dir string) (string, error) {
	path := C.CString(dir)
	defer C.free(unsafe.Pointer(path))
	var why C.rlx_why
	compiled := C.rlx_compile(s.binding, path, &why)
	if compiled == nil {
		return "", errors.New(C.GoString(&why.text[0]))
	}
	defer C.free(unsafe.Pointer(compiled))
	return C.GoString(compiled), nil
}

// load loads a function of a compiled package, "" for the only one.
func (s system) load(compiled, function string, units Units, states bool) (unsafe.Pointer, error) {
	path := C.CString(compiled)
	defer C.free(unsafe.Pointer(path))
	var name *C.char
	if function != "" {
		name = C.CString(function)
		defer C.free(unsafe.Pointer(name))
	}
	stateful := C.int(0)
	if states {
		stateful = 1
	}
	var why C.rlx_why
	handle := C.rlx_load(s.binding, path, name, C.int(units), stateful, &why)
	if handle == nil {
		return nil, errors.New(C.GoString(&why.text[0]))
	}
	return handle, nil
}

// arrays describes the inputs and outputs of a function, in C memory except for their data.
type arrays struct{ inputs, outputs, states []C.rlx_array }

func arraysOf(f *mil.Function) arrays {
	var a arrays
	for _, in := range f.Inputs {
		if in.State {
			a.states = append(a.states, array(in.Name, in.Type))
		} else {
			a.inputs = append(a.inputs, array(in.Name, in.Type))
		}
	}
	for _, out := range f.Outputs {
		a.outputs = append(a.outputs, array(out, f.TypeOf(out)))
	}
	return a
}

// arrayTypes maps element types to Core ML's numbers.
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

func (a arrays) free() {
	for _, list := range [][]C.rlx_array{a.inputs, a.outputs, a.states} {
		for i := range list {
			C.free(unsafe.Pointer(list[i].name))
		}
	}
}
