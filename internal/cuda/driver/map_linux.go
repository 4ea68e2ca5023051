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

// Map is a tensor map, CUtensorMap: a tensor in device memory from which TMA copies tiles.
type Map [C.rlx_map_bytes]byte

// mapTypes are the numbers of CUtensorMapDataType.
var mapTypes = map[dtype.DType]C.int{dtype.F16: 6, dtype.F32: 7, dtype.BF16: 9}

// NewMap returns the tensor map of a tensor of f16, bf16 or f32 at an address that is a
// multiple of 16. dims lists its dimensions, the contiguous one first, up to 5; strides the
// byte strides of the others; size the tile of a copy, 128 bytes along the first axis.
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
