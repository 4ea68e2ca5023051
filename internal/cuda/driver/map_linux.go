//go:build amd64 || arm64

package driver

/*
#include "cuda_linux.h"
*/
import "C"

import (
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
)

// Map is a view of device memory that kernels copy parts of: CUtensorMap.
type Map [C.rlx_map_bytes]byte

// mapTypes are the numbers of CUtensorMapDataType.
var mapTypes = map[dtype.DType]C.int{dtype.F16: 6, dtype.F32: 7, dtype.BF16: 9}

// NewMap returns the view of elements of f16, bf16 or f32 from an address on, a multiple of
// 16 bytes: dims are its lengths, from the axis on along which elements lie side by side,
// strides how many bytes neighbours are apart along the axes after that one, and size what
// a copy brings, 128 bytes along the first axis. There are up to 5 axes.
func (d *Device) NewMap(t dtype.DType, at Ptr, dims, strides, size []int) (Map, error) {
	var m Map
	long := func(list []int) *C.uint64_t {
		out := make([]C.uint64_t, len(list)+1)
		for i, n := range list {
			out[i] = C.uint64_t(n)
		}
		return &out[0]
	}
	box := make([]C.uint, len(size))
	for i, n := range size {
		box[i] = C.uint(n)
	}
	err := d.check("cuTensorMapEncodeTiled", C.rlx_map_encode(d.c, unsafe.Pointer(&m[0]), mapTypes[t], C.uint(len(dims)),
		C.rlx_ptr(at), long(dims), long(strides), unsafe.SliceData(box)))
	return m, err
}
