//go:build amd64 || arm64

package driver

/*
#cgo noescape rlx_product_run
#cgo nocallback rlx_product_run
#include <stdlib.h>
#include "cuda_linux.h"
*/
import "C"

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/routine"
)

// Multiplier computes matrix products on a device with cuBLASLt. It caches the chosen
// algorithms.
type Multiplier struct {
	device *Device
	handle C.rlx_handle

	mu       sync.Mutex
	products map[routine.Product]*PreparedProduct
}

// PreparedProduct is a matrix product with its algorithm.
type PreparedProduct struct {
	by *Multiplier
	c  *C.rlx_product // never freed
	routine.Product
}

// NewMultiplier returns a multiplier, or nil if cuBLASLt is missing or does not support the
// device.
func (d *Device) NewMultiplier() (*Multiplier, error) {
	if d.blas == nil {
		return nil, nil
	}
	m := &Multiplier{device: d, products: map[routine.Product]*PreparedProduct{}}
	var handle C.rlx_handle
	err := m.check("cublasLtCreate", C.rlx_blas_create(d.blas, d.c, &handle))
	if errors.Is(err, ErrNoAlgorithm) {
		d.Products = ""
		return nil, nil // as if it were not installed
	}
	m.handle = handle
	return m, err
}

// Product returns a product with an algorithm. The error is [ErrNoAlgorithm] if there is
// none.
func (m *Multiplier) Product(p routine.Product) (*PreparedProduct, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.products[p]; ok {
		return known, nil
	}
	s := shapeOf(p)
	made := &PreparedProduct{m, (*C.rlx_product)(C.calloc(1, C.sizeof_rlx_product)), p}
	d := m.device
	r, name := noted(func(call **C.char) C.int { return C.rlx_product_make(d.blas, m.handle, d.c, &s, made.c, call) })
	if r != 0 {
		C.free(unsafe.Pointer(made.c))
		return nil, m.check(name, r)
	}
	m.products[p] = made
	return made, nil
}

// Numbers of library_types.h and cublas_api.h.
const (
	computeF32Pedantic = 69
	computeF32         = 68
	computeTF32        = 77
	archMismatch       = 8
	notSupported       = 15
)

var elementTypes = map[dtype.DType]C.int{dtype.F32: 0, dtype.F16: 2, dtype.BF16: 14}

// shapeOf describes a product to cuBLASLt, whose matrices are column-major: a row-major
// matrix is its transpose there, and resultᵀ = rightᵀ·leftᵀ. Accumulation is in f32.
func shapeOf(p routine.Product) C.rlx_shape {
	s := C.rlx_shape{
		compute: computeF32, factors: elementTypes[p.Operand], result: elementTypes[p.Result],
		m: C.uint64_t(p.N), n: C.uint64_t(p.M), k: C.uint64_t(p.K), workspace: C.uint64_t(p.Workspace), batch: C.int32_t(p.Batch),
		epilogue: C.rlx_epilogue_none,
	}
	switch {
	case p.TF32:
		s.compute = computeTF32
	case p.Operand == dtype.F32:
		s.compute = computeF32Pedantic
	}
	if p.Bias {
		s.epilogue = C.rlx_epilogue_bias
	}
	if p.Adds {
		s.adds = 1
	}
	for i, l := range []routine.Layout{p.Right, p.Left, p.Out, p.Added} {
		s.row[i], s.step[i] = C.int64_t(l.Row), C.int64_t(l.Step)
		if i < 2 && l.Transposed {
			s.transposed[i] = 1
		}
	}
	return s
}

// Multiply enqueues a product with arrays in the order of [routine.Product]. It sets
// pointers in the library's description of the product, so calls are serialised. The error
// is [ErrNoAlgorithm] if the library refuses the product on this device.
func (s *Stream) Multiply(p *PreparedProduct, arrays []Ptr) error {
	var bias, added C.rlx_ptr
	rest := arrays[4:]
	if p.Bias {
		bias, rest = C.rlx_ptr(rest[0]), rest[1:]
	}
	if p.Adds {
		added = C.rlx_ptr(rest[0])
	}
	p.by.mu.Lock()
	defer p.by.mu.Unlock()
	d := s.device
	return p.by.check("cublasLtMatmul", C.rlx_product_run(d.blas, p.by.handle, d.c, p.c,
		C.rlx_ptr(arrays[1]), C.rlx_ptr(arrays[0]), C.rlx_ptr(arrays[2]), C.rlx_ptr(arrays[3]), bias, added, s.handle))
}

// check converts a status of cuBLASLt to an error: [ErrNoAlgorithm] if it does not
// support the product or the device.
func (m *Multiplier) check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	if code == C.rlx_no_algorithm || code == notSupported || code == archMismatch {
		return ErrNoAlgorithm
	}
	return &Error{Call: call, Code: int(code), Name: C.GoString(C.rlx_blas_status(m.device.blas, code))}
}
