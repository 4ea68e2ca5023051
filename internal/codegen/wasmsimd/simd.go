// Package wasmsimd is the code generator for WebAssembly with 128-bit SIMD. Its input is
// a kernel of the loop IR with one thread per workgroup, its output the binary code of a
// function, in which the grid is a loop. [Link] links the functions
// of a plan into a module. Read this file first, then stmt.go, expr.go and lanes.go, the
// vectoriser.
//
// A function's parameters are i32: the addresses of the kernel's storage arrays
// in order, that of the entry's row of scalars if it reads any, and the counters
// of the enclosing repeats. If the grid has several workgroups, three more parameters are
// the first workgroup to run, the end, and the address of their workgroup memory, so that
// threads can share a grid. With one workgroup that memory
// is at address 0. A bool is a word in memory. Elements of 8
// and 16 bits are only loaded and stored: kernels are widened first ([loop.Widen]).
//
// Loops marked Lanes run four iterations at once if their statements can be
// vectorised in 32-bit lanes (lanes.go), and one at a time otherwise.
//
// With relaxed instructions, multiply-adds are rounded once or twice, whichever is
// faster on the device.
package wasmsimd

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// Printer prints WebAssembly; it is a printer that package plan takes.
type Printer struct {
	// Relaxed allows relaxed_madd, for engines with relaxed SIMD.
	Relaxed bool
}

// UnsupportedError names a feature that the dialect lacks. It is of the kind
// [ir.ErrUnsupported].
type UnsupportedError struct{ Kernel, What string }

// Error returns "wasm: kernel k: no erf of f64".
func (e *UnsupportedError) Error() string { return "wasm: kernel " + e.Kernel + ": no " + e.What }

// Unwrap returns [ir.ErrUnsupported].
func (e *UnsupportedError) Unwrap() error { return ir.ErrUnsupported }

// Dialect returns dtype.WASM.
func (Printer) Dialect() dtype.Dialect { return dtype.WASM }

// KernelName returns the export name of kernel i.
func KernelName(i int) string { return "k" + strconv.Itoa(i) }

// Link makes the module of a plan, see the function [Link].
func (Printer) Link(sources []string) (module []byte, names []string) {
	for i := range sources {
		names = append(names, KernelName(i))
	}
	return Link(sources), names
}

// Print returns the code of a kernel, for [Link]. The error is a
// *loop.CheckError, or an *UnsupportedError for workgroups of several threads
// and for types and operations that the dialect lacks.
func (p Printer) Print(k *loop.Kernel) (string, error) {
	if err := loop.Check(k); err != nil {
		return "", err
	}
	w := &writer{k: loop.Unroll(k), relaxed: p.Relaxed, env: map[string]binding{}}
	if k.Threads() != 1 {
		w.fail("workgroup of %d threads", k.Threads())
	}
	if k.Groups[1]*k.Groups[2] != 1 {
		w.fail("a grid of several axes")
	}
	w.assignParams()
	w.grid()
	if w.err != nil {
		return "", w.err
	}
	header := appendUnsigned(nil, uint64(w.f.params))
	header = append(header, 0)
	if w.math {
		header[len(header)-1] = 1
	}
	return string(header) + string(w.f.bytes()), nil
}

// writer writes one kernel.
type writer struct {
	k          *loop.Kernel
	relaxed    bool
	f          function
	err        error
	math       bool // a function of Math is called
	env        map[string]binding
	locations  []location
	scalarRow  uint32 // the parameter that is the address of scalars
	counters   uint32 // the first parameter that is a count
	group      uint32 // the parameter that is the workgroup, where there are several
	vectorized bool   // in a vectorised loop: four iterations at once
}

// location is the location of an array.
type location struct {
	hasBase bool
	param   uint32 // the parameter with the base address, if hasBase
	offset  uint64 // from the base address, or from 0
	// registers are the vector locals of an array in registers, or nil.
	registers []uint32
}

// fail records a feature that the dialect lacks.
func (w *writer) fail(text string, args ...any) {
	if w.err == nil {
		w.err = &UnsupportedError{w.k.Name, format.Sprintf(text, args...)}
	}
}

// assignParams numbers the parameters and places the arrays.
func (w *writer) assignParams() {
	for _, a := range w.k.Arrays {
		if a.Space == loop.Storage {
			w.f.params++
		}
	}
	w.scalarRow = uint32(w.f.params)
	if len(w.k.Scalars) > 0 {
		w.f.params++
	}
	w.counters = uint32(w.f.params)
	w.f.params += w.k.Counters
	own := location{}
	if w.hasGrid() {
		w.group = uint32(w.f.params)
		own = location{hasBase: true, param: w.group + 2}
		w.f.params += 3
	}
	w.placeArrays(own)
}

// hasGrid reports whether the grid has several workgroups.
func (w *writer) hasGrid() bool { return w.k.Groups[0] > 1 }

// placeArrays assigns arrays their locations, those of workgroup memory after own.
func (w *writer) placeArrays(own location) {
	inRegisters, storage := w.registerArrays(), uint32(0)
	for i, a := range w.k.Arrays {
		if a.DType.On(dtype.WASM) == dtype.Unsupported {
			w.fail("type %s", a.DType)
		}
		p := own
		switch {
		case a.Space == loop.Storage:
			p = location{hasBase: true, param: storage}
			storage++
		case inRegisters[i]:
			p = location{}
			for range a.Len / lanes {
				p.registers = append(p.registers, w.f.local(typeV128))
			}
		default:
			own.offset += uint64(a.Bytes()+15) &^ 15
		}
		w.locations = append(w.locations, p)
	}
}

// grid writes a loop over the requested workgroups around the body.
func (w *writer) grid() {
	if !w.hasGrid() {
		statements{vectorWriter{w}}.block(w.k.Body)
		return
	}
	w.f.begin(opLoop)
	statements{vectorWriter{w}}.block(w.k.Body)
	w.f.get(w.group)
	w.f.constI32(1)
	w.f.op(opI32Add)
	w.f.tee(w.group)
	w.f.get(w.group + 1)
	w.f.op(opI32LtS)
	w.f.with(opBranchIf, 0)
	w.f.end()
}

// Plans compiles a module ahead of time for all engines: with relaxed SIMD and
// without, as variants of a plan in this order. Its errors are those of
// [plan.Compile].
func Plans(m *ir.Module) ([]*plan.Plan, error) {
	var out []*plan.Plan
	for _, relaxed := range []bool{true, false} {
		p, err := plan.Compile(m, plan.WebAssembly(relaxed), Printer{Relaxed: relaxed})
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
