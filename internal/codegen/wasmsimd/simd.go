// Package simd prints kernels of the loop IR as WebAssembly with vectors of 128
// bits. A kernel is a function of one thread: the workgroups of its grid are a
// loop, and a workgroup has one thread. [Link] makes a module of the functions
// of a plan.
//
// A function's parameters are i32: the addresses of the kernel's storage arrays
// in order, that of the entry's row of scalars where it reads any, and the counts
// of the repeats around it. Where the grid has several workgroups, three more say
// which of them to run, from the first to below the second, and where their
// workgroup memory lies: threads may share a grid. Where it has one, that memory
// lies at address 0. A bool is a word in memory. Elements of 8
// and 16 bits are loaded and stored as such: kernels come widened ([loop.Widen]).
//
// Loops marked Lanes take four turns at once where their statements have a form
// in vectors of 32-bit words (lanes.go), and one at a time where not.
//
// With relaxed instructions, sums with products are computed as the device does
// it fastest: rounded once or twice.
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

// UnsupportedError names what the dialect lacks. It is of the kind
// [ir.ErrUnsupported].
type UnsupportedError struct{ Kernel, What string }

// Error returns "wasm: kernel k: no erf of f64".
func (e *UnsupportedError) Error() string { return "wasm: kernel " + e.Kernel + ": no " + e.What }

// Unwrap returns [ir.ErrUnsupported].
func (e *UnsupportedError) Unwrap() error { return ir.ErrUnsupported }

// Dialect returns dtype.WASM.
func (Printer) Dialect() dtype.Dialect { return dtype.WASM }

// KernelName is the name by which a module exports kernel i.
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
		w.fail("grid of several axes")
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

// writer writes one loop.
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
	vectorized bool   // a loop over lanes is being written, four turns at once
}

// location is where an array lies.
type location struct {
	hasBase bool
	param   uint32 // the address that it lies behind, where it is based
	offset  uint64 // from there
	// registers are the vectors that hold a private array, where it has some.
	registers []uint32
}

// fail records what the dialect lacks.
func (w *writer) fail(text string, args ...any) {
	if w.err == nil {
		w.err = &UnsupportedError{w.k.Name, format.Sprintf(text, args...)}
	}
}

// assignParams numbers the parameters and gives arrays their places.
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

// placeArrays gives arrays their places, those of workgroup memory behind own.
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

// grid writes a loop over the workgroups that are asked for, and inside it the
// body.
func (w *writer) grid() {
	if !w.hasGrid() {
		w.block(w.k.Body)
		return
	}
	w.f.begin(opLoop)
	w.block(w.k.Body)
	w.f.get(w.group)
	w.f.constI32(1)
	w.f.op(opI32Add)
	w.f.tee(w.group)
	w.f.get(w.group + 1)
	w.f.op(opI32LtS)
	w.f.with(opBranchIf, 0)
	w.f.end()
}

// Plans compiles a module ahead of time for every engine: with relaxed SIMD and
// without, to be the variants of a plan in this order. Its errors are those of
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
