//go:build cgo && linux

package msl_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/metal/driver"
	"github.com/rlx-go/rlx/internal/metal/software"
)

// kernelWith is a kernel of 64 threads with a body.
func kernelWith(body string) string {
	return `#include <metal_stdlib>
using namespace metal;
[[max_total_threads_per_threadgroup(64)]]
kernel void k_fault(
    device float *x [[buffer(0)]],
    uint local_number [[thread_index_in_threadgroup]]) {
  const int i = int(local_number);
  threadgroup float s[64];
  float p[4];
  s[i] = x[i];
  p[0] = s[i];
` + body + "\n}\n"
}

// What the software device watches for, each in a kernel that does it: a test that passes
// on it has done none of it.
func TestSoftwareDeviceFindsFaultsOfKernels(t *testing.T) {
	software.Install(t, true)
	d, err := driver.Open()
	must(t, err)
	for want, body := range map[string]string{
		"":                                          "x[i] = p[0] + 1.0f;",
		"element 64 of a buffer of 64":              "x[i + 1] = p[0];",
		"element -1 of a buffer of 64":              "x[i] = x[i - 1];",
		"an index outside an array":                 "x[i] = s[(i + 63) * 2];",
		"a sum overflows":                           "x[i] = float(i + 2147483647);",
		"a product overflows":                       "x[i] = float((i + 1) * 1073741824);",
		"a shift by too much":                       "x[i] = float(1u << uint(i));",
		"a division by zero":                        "x[i] = float(7 / i);",
		"a float that the integer type":             "x[i] = float(int(p[0] * 1e20f));",
		"threads part: 16 of 64 are at a":           "if (i < 16) {\n    threadgroup_barrier(mem_flags::mem_threadgroup);\n  }\n  x[i] = s[63 - i];",
		"threads part: 64 of 64 are at a":           "if (i < 16) {\n    threadgroup_barrier(mem_flags::mem_threadgroup);\n  } else {\n    threadgroup_barrier(mem_flags::mem_threadgroup);\n  }",
		"1 at a SIMD-group function, 63":            "if (i == 5) {\n    x[i] = simd_sum(p[0]);\n  }",
		"do not mean one matrix":                    "simdgroup_float8x8 m;\n  simdgroup_load(m, &s[i % 2], 8);",
		"at a SIMD-group function, 32 are done":     "if (i < 16) {\n    simdgroup_float8x8 m;\n    simdgroup_load(m, &s[0], 8);\n  }\n  if (i < 32) {\n    threadgroup_barrier(mem_flags::mem_threadgroup);\n  }",
		"a barrier, 0 at a SIMD-group function, 63": "for (int j = 0; j < (i == 5 ? 2 : 1); j++) {\n    threadgroup_barrier(mem_flags::mem_threadgroup);\n  }",
	} {
		t.Run(want, func(t *testing.T) {
			err := fault(t, d, kernelWith(body))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// fault runs a kernel on 64 threads and returns the device's error.
func fault(t *testing.T, d *driver.Device, source string) error {
	f, err := d.Compile(source, "k_fault")
	must(t, err)
	defer f.Release()
	p, err := d.NewPipeline(f, 64, driver.Archive{}, false)
	must(t, err)
	defer p.Release()
	heap, err := d.NewHeap([]int{256})
	must(t, err)
	defer heap.Release()
	for i := range heap.Buffers[0].Bytes {
		heap.Buffers[0].Bytes[i] = []byte{0, 0, 0x40, 0x40}[i%4]
	}
	list := driver.NewList("fault")
	defer list.Release()
	list.Dispatch(driver.Dispatch{Pipeline: p, Bindings: []driver.Place{{Buffer: heap.Buffers[0]}}, Groups: [3]int{1, 1, 1}, Threads: [3]int{64, 1, 1}})
	r, err := d.Commit(list)
	must(t, err)
	defer r.Forget()
	for {
		if done, err := r.Done(); done {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// A pointer keeps to its address space, as Apple's compiler demands.
func TestClangDistinguishesAddressSpaces(t *testing.T) {
	for name, body := range map[string]string{
		"a threadgroup's as a thread's": "thread float *q = &s[0];\n  x[i] = *q;",
		"a device's as a threadgroup's": "threadgroup float *q = x;\n  x[i] = *q;",
		"a constant that is written":    "constant float *q = 0;\n  *q = 1.0f;",
		"a name that there is not":      "x[i] = nothing(p[0]);",
	} {
		t.Run(name, func(t *testing.T) {
			var bad *clang.CompileError
			if err := clang.CheckMetal(kernelWith(body)); !errors.As(err, &bad) {
				t.Errorf("error %v", err)
			}
		})
	}
	if err := clang.CheckMetal(kernelWith("x[i] = p[0];")); err != nil {
		t.Error(err)
	}
}
