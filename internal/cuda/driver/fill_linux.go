//go:build amd64 || arm64

package driver

/*
#include <stdlib.h>
#include "cuda_linux.h"
*/
import "C"

import (
	"errors"
)

// ErrUnchanged means that the driver refused to edit a graph.
var ErrUnchanged = errors.New("the graph cannot be updated")

// FillName is the kernel of [FillSource].
const FillName = "k_fill"

// FillSource is the kernel that fills rows of memory with a repeated word, in the graphs of
// [Stream.Capture]. The driver launches a linear graph of kernels in 2 to 4 µs, however
// long; each node of another kind, such as cuBLASLt's fill of its workspace, adds 1.1 µs
// (H200, driver for CUDA 13.0).
const FillSource = `extern "C" __global__ void __launch_bounds__(256) k_fill(unsigned char *to, unsigned width, unsigned rows, unsigned pitch, unsigned word) {
  const unsigned first = blockIdx.x * 256u + threadIdx.x, all = gridDim.x * 256u;
  for (unsigned row = 0; row < rows; row++) {
    unsigned char *at = to + (unsigned long long)row * pitch;
    const bool whole = (((unsigned long long)at | width) & 3u) == 0;
    for (unsigned i = first; whole && i < width / 4u; i += all) {
      ((unsigned *)at)[i] = word;
    }
    for (unsigned i = first; !whole && i < width; i += all) {
      at[i] = (unsigned char)(word >> (i & 3u) * 8u);
    }
  }
}
`

// EditsGraphs reports whether the driver can edit graphs.
func (d *Device) EditsGraphs() bool { return C.rlx_edits(d.library.cu) != 0 }

// replaceFills replaces the fill nodes of a graph before its instantiation.
func (d *Device) replaceFills(graph C.rlx_handle, fill Function) error {
	r, name := noted(func(call **C.char) C.int { return C.rlx_fills_to_kernels(d.c, graph, fill.handle, call) })
	return d.check(name, r)
}

// kinds counts the nodes of a graph by kind, before its instantiation.
func (d *Device) kinds(graph C.rlx_handle) (out [NodeKinds]int, err error) {
	if !d.EditsGraphs() {
		return out, nil
	}
	var kinds [NodeKinds]C.int
	r, name := noted(func(call **C.char) C.int { return C.rlx_count_nodes(d.c, graph, &kinds[0], NodeKinds, call) })
	if r != 0 {
		return out, d.check(name, r)
	}
	for i, n := range kinds {
		out[i] = int(n)
	}
	return out, nil
}
