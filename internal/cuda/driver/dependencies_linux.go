//go:build amd64 || arm64

package driver

/*
#include <stdlib.h>
#include "cuda_linux.h"
*/
import "C"

import "unsafe"

// Node is a node of a graph during capture.
type Node C.rlx_handle

// maxDependencies bounds the direct dependencies of a node.
const maxDependencies = 4096

// Dependencies returns the capture dependencies of the stream: the nodes before the next
// captured node. It requires [Device.Branches].
func (s *Stream) Dependencies() ([]Node, error) {
	list := nodeList(maxDependencies)
	defer C.free(unsafe.Pointer(list))
	var n C.size_t
	err := s.device.check("cuStreamGetCaptureInfo", C.rlx_dependencies_get(s.device.c, s.handle, list, maxDependencies, &n))
	var out []Node
	for _, node := range unsafe.Slice(list, min(int(n), maxDependencies)) {
		out = append(out, Node(node))
	}
	return out, err
}

// SetDependencies sets the capture dependencies of the stream.
func (s *Stream) SetDependencies(nodes []Node) error {
	list := nodeList(len(nodes))
	defer C.free(unsafe.Pointer(list))
	for i, node := range nodes {
		unsafe.Slice(list, len(nodes))[i] = C.rlx_handle(node)
	}
	return s.device.check("cuStreamUpdateCaptureDependencies", C.rlx_dependencies_set(s.device.c, s.handle, list, C.size_t(len(nodes))))
}

// HasPriorities reports whether the kernels of a graph may have priorities.
func (d *Device) HasPriorities() bool {
	return d.Branches() && d.EditsGraphs() && d.library.cu.priorities != 0
}

// SetPriority sets the priority of a captured node if it is a kernel: blocks of kernels with a lower number are scheduled first, from 0
// to −5 on current devices, which bound the number. [Stream.Capture] then makes a graph that has the priorities of its
// kernels.
func (s *Stream) SetPriority(n Node, priority int) error {
	s.ranked = true
	return s.device.check("cuGraphKernelNodeSetAttribute", C.rlx_node_priority(s.device.c, C.rlx_handle(n), C.int(priority)))
}

func nodeList(n int) *C.rlx_handle {
	return (*C.rlx_handle)(C.calloc(C.size_t(n+1), C.size_t(unsafe.Sizeof(C.rlx_handle(nil)))))
}
