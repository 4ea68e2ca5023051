//go:build cgo && linux

package software

/*
#cgo CFLAGS: -I${SRCDIR}/lib -I${SRCDIR}/../driver
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "software.h"

extern uintptr_t rlxSoftwareLoad(char *package, char *function, rlx_array **in, int *inputs, rlx_array **out, int *outputs, rlx_why *why);
extern int rlxSoftwarePredict(uintptr_t handle, rlx_array *in, rlx_array *out, rlx_why *why);
extern void rlxSoftwareRelease(uintptr_t handle);

extern int rlxSoftwarePlan(uintptr_t handle, rlx_placement **out);
extern int rlxSoftwareState(uintptr_t handle, char *name, rlx_array *array, int write);

static uintptr_t do_load(const char *p, const char *f, rlx_array **in, int *n, rlx_array **out, int *m, rlx_why *why) {
	return rlxSoftwareLoad((char *)p, (char *)f, in, n, out, m, why);
}
static int do_predict(uintptr_t h, const rlx_array *in, rlx_array *out, rlx_why *why) {
	return rlxSoftwarePredict(h, (rlx_array *)in, out, why);
}
static int do_state(uintptr_t h, const char *name, rlx_array *a, int write) { return rlxSoftwareState(h, (char *)name, a, write); }
static const char *install(const char *path) {
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) return dlerror();
	void (*f)(const rlx_evaluator *) = dlsym(library, "rlx_software_install");
	rlx_evaluator e = {do_load, rlxSoftwarePlan, do_predict, do_state, rlxSoftwareRelease};
	f(&e);
	return NULL;
}
static void older(const char *path, int yes) {
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	void (*f)(int) = dlsym(library, "rlx_software_older");
	f(yes);
}
static long count(const char *path, const char *what) {
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	long (*f)(void) = dlsym(library, what);
	return f();
}
*/
import "C"

import (
	"errors"
	"os"
	"runtime/cgo"
	"slices"
	"unsafe"

	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Install builds the library in a directory, makes package driver use it and returns its path. The
// error names what is missing: clang 19, GNUstep, the runtime of blocks.
func Install(dir string) (library string, err error) {
	library, err = build(dir)
	if err != nil {
		return "", err
	}
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	if why := C.install(path); why != nil {
		return "", errors.New(C.GoString(why))
	}
	return library, os.Setenv(driver.LibraryVariable, library)
}

// Alive returns the number of models, arrays and states that the library holds.
func Alive(library string) int { return count(library, "rlx_software_alive") }

// Compiled returns the number of packages it has compiled.
func Compiled(library string) int { return count(library, "rlx_software_compiled") }

// Input returns the address of the last input of the last prediction.
func Input(library string) uintptr { return uintptr(count(library, "rlx_software_input")) }

// Units returns the last requested units, a value of MLComputeUnits.
func Units(library string) int { return count(library, "rlx_software_units") }

func count(library, what string) int {
	path, name := C.CString(library), C.CString(what)
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(name))
	return int(C.count(path, name))
}

// Older simulates a system before macOS 14.4, or the newest.
func Older(library string, older bool) {
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	yes := C.int(0)
	if older {
		yes = 1
	}
	C.older(path, yes)
}

// function is a loaded function with the types of its inputs, outputs and states.
type function struct {
	driver.Loaded
	ops             []*mil.Op
	in, out, states []mil.Input
}

//export rlxSoftwareLoad
func rlxSoftwareLoad(dir, name *C.char, in **C.rlx_array, inputs *C.int, out **C.rlx_array, outputs *C.int, why *C.rlx_why) C.uintptr_t {
	p, err := mil.Describe(C.GoString(dir))
	if err != nil {
		return fail(why, err)
	}
	f := p.Program.Functions[0]
	if name != nil {
		f = p.Program.Function(C.GoString(name))
	}
	if f == nil || name == nil && len(p.Program.Functions) > 1 {
		return fail(why, errors.New("unknown function, or no name given and several functions"))
	}
	loaded, err := (&Runtime{}).Load(C.GoString(dir), f.Name, driver.AllUnits)
	if err != nil {
		return fail(why, err)
	}
	l := function{Loaded: loaded, ops: f.Ops}
	for _, i := range f.Inputs {
		if i.State {
			l.states = append(l.states, i)
		} else {
			l.in = append(l.in, i)
		}
	}
	for _, o := range f.Outputs {
		l.out = append(l.out, mil.Input{Name: o, Type: f.TypeOf(o)})
	}
	*in, *inputs = arrays(l.in)
	*out, *outputs = arrays(l.out)
	return C.uintptr_t(cgo.NewHandle(l))
}

// fail reports an error and returns no handle.
func fail(why *C.rlx_why, err error) C.uintptr_t {
	text := C.CString(err.Error())
	defer C.free(unsafe.Pointer(text))
	C.strncpy(&why.text[0], text, C.size_t(len(why.text)-1))
	why.text[len(why.text)-1] = 0
	return 0
}

// arrays describes inputs or outputs in memory of C.
func arrays(list []mil.Input) (*C.rlx_array, C.int) {
	size := max(len(list), 1) * int(unsafe.Sizeof(C.rlx_array{}))
	out := (*C.rlx_array)(C.calloc(1, C.size_t(size)))
	for i := range list {
		a := &unsafe.Slice(out, len(list))[i]
		a.name = C.CString(list[i].Name)
		describe(a, list[i].Type)
	}
	return out, C.int(len(list))
}

// describe sets the type of an array.
func describe(a *C.rlx_array, t mil.Type) {
	a._type, a.rank = C.RLX_FLOAT32, C.int(len(t.Dims))
	switch t.DType {
	case mil.Float16:
		a._type = C.RLX_FLOAT16
	case mil.Int32:
		a._type = C.RLX_INT32
	}
	for k, d := range t.Dims {
		a.dims[k] = C.int64_t(d)
	}
	a.bytes = C.uint64_t(len(tensorOf(t).Data))
}

func tensorOf(t mil.Type) native.Tensor {
	d := map[mil.DType]ir.DType{mil.Float16: ir.F16, mil.Float32: ir.F32, mil.Int32: ir.I32}[t.DType]
	return native.Zeros(d, t.Dims...)
}

//export rlxSoftwarePredict
func rlxSoftwarePredict(handle C.uintptr_t, in, out *C.rlx_array, why *C.rlx_why) C.int {
	l := cgo.Handle(handle).Value().(function)
	given := map[string]native.Tensor{}
	for i, a := range unsafe.Slice(in, len(l.in)) {
		t := tensorOf(l.in[i].Type)
		copy(t.Data, unsafe.Slice((*byte)(a.data), a.bytes))
		given[l.in[i].Name] = t
	}
	got := map[string]native.Tensor{}
	for _, o := range l.out {
		got[o.Name] = tensorOf(o.Type)
	}
	if err := l.Predict(given, got); err != nil {
		fail(why, err)
		return 1
	}
	for i, a := range unsafe.Slice(out, len(l.out)) {
		copy(unsafe.Slice((*byte)(a.data), a.bytes), got[l.out[i].Name].Data)
	}
	return 0
}

//export rlxSoftwareState
func rlxSoftwareState(handle C.uintptr_t, name *C.char, a *C.rlx_array, write C.int) C.int {
	f := cgo.Handle(handle).Value().(function)
	i := slices.IndexFunc(f.states, func(s mil.Input) bool { return s.Name == C.GoString(name) })
	if i < 0 {
		return 0
	}
	t := tensorOf(f.states[i].Type)
	var err error
	if write != 0 {
		copy(t.Data, unsafe.Slice((*byte)(a.data), a.bytes))
		err = f.SetState(f.states[i].Name, t)
	} else {
		err = f.State(f.states[i].Name, t)
		describe(a, f.states[i].Type)
		a.data = C.CBytes(t.Data)
	}
	if err != nil {
		return 0
	}
	return 1
}

// rlxSoftwarePlan places results of fp16 on the Neural Engine, of fp32 on the GPU and others on the
// CPU; all have equal cost.
//
//export rlxSoftwarePlan
func rlxSoftwarePlan(handle C.uintptr_t, out **C.rlx_placement) C.int {
	ops := cgo.Handle(handle).Value().(function).ops
	*out = (*C.rlx_placement)(C.calloc(C.size_t(len(ops)), C.sizeof_rlx_placement))
	for i, op := range ops {
		p := &unsafe.Slice(*out, len(ops))[i]
		put(p.kind[:], op.Kind)
		put(p.name[:], op.Name)
		p.cost = -1
		if op.Value != nil {
			continue
		}
		p.cost, p.preferred, p.supported = 1/C.double(len(ops)), C.RLX_CPU, C.RLX_CPU
		switch op.Type.DType {
		case mil.Float16:
			p.preferred, p.supported = C.RLX_NEURAL_ENGINE, C.RLX_CPU|C.RLX_GPU|C.RLX_NEURAL_ENGINE
		case mil.Float32:
			p.preferred, p.supported = C.RLX_GPU, C.RLX_CPU|C.RLX_GPU
		}
	}
	return C.int(len(ops))
}

// put writes a text with a 0 at its end.
func put(to []C.char, text string) {
	for i := range min(len(text), len(to)-1) {
		to[i] = C.char(text[i])
	}
}

//export rlxSoftwareRelease
func rlxSoftwareRelease(handle C.uintptr_t) {
	h := cgo.Handle(handle)
	_ = h.Value().(function).Close()
	h.Delete()
}
