//go:build amd64 || arm64

package driver

/*
#include "cuda_linux.h"
*/
import "C"

import (
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// Map is a tensor map, CUtensorMap: a tensor in device memory from which TMA copies tiles.
type Map [C.rlx_map_bytes]byte

// mapTypes are the numbers of CUtensorMapDataType.
var mapTypes = map[dtype.DType]C.int{dtype.F16: 6, dtype.F32: 7, dtype.BF16: 9}

// NewMap returns the tensor map of a view of an array of f16, bf16 or f32 at an address that is a multiple of 16.
func (d *Device) NewMap(v *loop.TensorMap, t dtype.DType, array Ptr) (Map, error) {
	m, size := Map{}, t.Size()
	view := C.rlx_view{_type: mapTypes[t], axes: C.uint(len(v.Dims)), address: C.rlx_ptr(array + Ptr(v.First*size))}
	for i, n := range v.Dims {
		view.dims[i], view.step[i] = C.uint64_t(n), 1
	}
	for i, n := range v.Strides {
		view.strides[i] = C.uint64_t(n * size)
	}
	for i, n := range v.Size {
		view.size[i] = C.uint(n)
	}
	call := "cuTensorMapEncodeTiled"
	if c := v.Im2col; c != nil {
		call, view.im2col = "cuTensorMapEncodeIm2col", 1
		for i, step := range c.Step {
			view.lower[i], view.upper[i], view.step[i+1] = C.int(c.Lower[i]), C.int(c.Upper[i]), C.uint(step)
		}
	}
	return m, d.check(call, C.rlx_map_encode(d.c, unsafe.Pointer(&m[0]), &view))
}
