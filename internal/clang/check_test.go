package clang_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/clang"
)

// softmax uses what generated kernels use: shared memory, a barrier, shuffles, vectors,
// device math, bit casts and atomics.
const softmax = `
extern "C" __global__ void __launch_bounds__(128) softmax(const float *__restrict__ x, float *__restrict__ y, unsigned *status, unsigned n) {
  __shared__ float part[4];
  const float *row = x + blockIdx.x * n;
  float m = __int_as_float(0xff800000);
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, row[i]);
  for (int o = 16; o > 0; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = m;
  __syncthreads();
  m = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
  if (!isfinite(m)) atomicMax(status, 1u);
  float4 v = reinterpret_cast<const float4 *>(row)[threadIdx.x];
  y[blockIdx.x * n + threadIdx.x] = expf(v.x - m) + tanhf(v.y) + min(v.z, v.w);
}
`

func TestKernelBecomesPTX(t *testing.T) {
	ptx, err := clang.Compile(softmax)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".target sm_90", ".visible .entry softmax", "bar.sync", "shfl.sync.bfly", "ld.global.nc.v4", "%tid.x", ".maxntid 128"} {
		if !strings.Contains(ptx, want) {
			t.Errorf("PTX lacks %q", want)
		}
	}
}

func TestEveryFamilyOfDeviceFunctionsCompiles(t *testing.T) {
	source, err := os.ReadFile("testdata/device.cu")
	if err != nil {
		t.Fatal(err)
	}
	ptx, err := clang.Compile(string(source))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"atom.global.add.f32", "atom.global.cas.b32", "shfl.sync.down.b32", "vote.sync.ballot", "membar.gl", "cvt.rn.f16.f32"} {
		if !strings.Contains(ptx, want) {
			t.Errorf("PTX lacks %q", want)
		}
	}
}

func TestBadSourceIsRefusedWithItsPlace(t *testing.T) {
	const head = "extern \"C\" __global__ void k(float *x) {\n"
	tests := []struct{ name, body, want string }{
		{"unknown name", "  x[0] = nope;\n}", "kernel.cu:2:10: error: use of undeclared identifier 'nope'"},
		{"unknown function", "  x[0] = texture_of(x);\n}", "kernel.cu:2:10: error: use of undeclared identifier 'texture_of'"},
		{"wrong type", "  x[0] = \"a\";\n}", "kernel.cu:2:10: error: assigning to 'float'"},
		{"unset variable", "  float y;\n  x[0] = y;\n}", "kernel.cu:3:10: error: variable 'y' is uninitialized"},
		{"missing brace", "  x[0] = 1.0f;\n", "error: expected '}'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, compiled := clang.Compile(head + tt.body)
			for _, err := range []error{compiled, clang.Check(head + tt.body)} {
				var refused *clang.CompileError
				if !errors.As(err, &refused) || !strings.Contains(refused.Output, tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			}
		})
	}
}
