//go:build cgo && linux

package msl_test

import (
	"encoding/binary"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/msl"
	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/metal/driver"
	"github.com/rlx-go/rlx/internal/metal/software"
)

func TestGoldenKernelsEqualPlainLoops(t *testing.T) {
	software.Install(t, true)
	d, err := driver.Open()
	must(t, err)
	functions := map[string]driver.Function{}
	cases := golden(t)
	for _, c := range cases { // all before the first pipeline, so that they are compiled at once
		functions[c.name], err = d.Compile(c.source, msl.EntryPoint(c.Kernel))
		must(t, err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.Compare(run(t, d, functions[c.name], c.Case)); err != nil {
				t.Error(err)
			}
		})
	}
}

// run runs the kernel of a case and returns its arrays.
func run(t *testing.T, d *driver.Device, f driver.Function, c *kerneltest.Case) [][]float64 {
	p, err := d.NewPipeline(f, c.Kernel.Threads(), driver.Archive{}, false)
	must(t, err)
	f.Release()
	defer p.Release()
	var contents [][]byte
	var sizes []int
	for i, a := range c.Storage() {
		contents = append(contents, kerneltest.Encode(a.DType, c.Arrays[i]))
	}
	if len(c.Kernel.Scalars) > 0 {
		contents = append(contents, kerneltest.EncodeScalars(c.Kernel.Scalars, c.Scalars))
	}
	for _, data := range contents {
		sizes = append(sizes, max(len(data), 4))
	}
	heap, err := d.NewHeap(sizes)
	must(t, err)
	defer heap.Release()
	dispatch := driver.Dispatch{Pipeline: p, Groups: c.Kernel.Groups, Threads: c.Kernel.Workgroup, Counters: c.Counters[:c.Kernel.Counters]}
	for i, b := range heap.Buffers {
		copy(b.Bytes, contents[i])
		dispatch.Bindings = append(dispatch.Bindings, driver.Place{Buffer: b})
	}
	list := driver.NewList(c.Kernel.Name)
	defer list.Release()
	list.Dispatch(dispatch)
	finish(t, d, list)
	var got [][]float64
	for i, a := range c.Storage() {
		got = append(got, kerneltest.Decode(a.DType, heap.Buffers[i].Bytes[:len(contents[i])]))
	}
	return got
}

// finish commits a list and waits for it.
func finish(t *testing.T, d *driver.Device, list *driver.List) {
	t.Helper()
	r, err := d.Commit(list)
	must(t, err)
	defer r.Forget()
	for {
		done, err := r.Done()
		must(t, err)
		if done {
			return
		}
	}
}

// A dispatch with an indirect grid runs the number of groups that is in memory when it
// starts, and none if that is 0.
func TestIndirectGridLimitsWorkgroups(t *testing.T) {
	software.Install(t, true)
	d, err := driver.Open()
	must(t, err)
	f, err := d.Compile(`#include <metal_stdlib>
using namespace metal;
[[max_total_threads_per_threadgroup(4)]]
kernel void k_mark(
    device uint *x [[buffer(0)]],
    device uint *grid [[buffer(1)]],
    uint local_number [[thread_index_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  x[group_id.x * 4u + local_number] += 1u;
  grid[0] = 2u;
}
`, "k_mark")
	must(t, err)
	defer f.Release()
	p, err := d.NewPipeline(f, 4, driver.Archive{}, false)
	must(t, err)
	defer p.Release()
	heap, err := d.NewHeap([]int{64, 256, 256})
	must(t, err)
	defer heap.Release()
	x, grid, other := heap.Buffers[0], heap.Buffers[1], heap.Buffers[2]
	for _, b := range heap.Buffers {
		clear(b.Bytes)
	}
	binary.LittleEndian.PutUint32(grid.Bytes[4:], 1)
	binary.LittleEndian.PutUint32(grid.Bytes[8:], 1)
	mark := func(writes driver.Buffer, at driver.Buffer) driver.Dispatch {
		return driver.Dispatch{
			Pipeline: p, Bindings: []driver.Place{{Buffer: x}, {Buffer: writes}},
			Groups: [3]int{1, 1, 1}, Threads: [3]int{4, 1, 1}, Grid: driver.Place{Buffer: at},
		}
	}
	list := driver.NewList("mark")
	defer list.Release()
	list.Dispatch(mark(other, grid))           // no groups yet
	list.Dispatch(mark(grid, driver.Buffer{})) // one group, which makes the grid two
	list.Dispatch(mark(other, grid))           // two groups
	finish(t, d, list)
	for i, want := range []uint32{2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0} {
		if got := binary.LittleEndian.Uint32(x.Bytes[4*i:]); got != want {
			t.Errorf("element %d was marked %d times, not %d", i, got, want)
		}
	}
}
