//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
)

// mapsOf makes the tensor maps of a kernel with its storage arrays at the given addresses. A
// launch and a graph hold them by value.
func (d *device) mapsOf(k *plan.Kernel, arrays []driver.Ptr) ([]driver.Map, error) {
	var out []driver.Map
	for i := range k.TensorMaps {
		b := &k.TensorMaps[i]
		m, err := d.NewMap(&b.TensorMap, b.DType, arrays[b.Array])
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
