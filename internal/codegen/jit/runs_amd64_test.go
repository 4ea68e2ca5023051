package jit

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestRunsAreWhereTheirFormulaSays loads runs of consecutive and of equal elements and stores them
// as runs, in an unrolled kernel with more arrays than registers for their addresses.
func TestRunsAreWhereTheirFormulaSays(t *testing.T) {
	const n, pairs = 128, 5
	at := func(r Runs, i int) int { return i/r.Length*r.Jump + i%r.Length*r.Stride }
	everyLevel(t, func(t *testing.T) {
		for _, r := range []Runs{{4, 7, 1}, {4, 2, 0}, {8, 8, 1}, {8, 30, 1}, {8, 1, 0}, {16, 40, 1}, {16, 0, 1}, {16, 3, 0}, {32, 33, 1}, {64, 1, 0}, {256, 5, 1}} {
			if !HasRuns(r, dtype.F32, false) {
				t.Fatalf("kernels have no runs %v", r)
			}
			t.Run(fmt.Sprint(r), func(t *testing.T) {
				k, to := &Kernel{}, Runs{r.Length, r.Length + 3, 1}
				var in [pairs][]float32
				var out [pairs][]float32
				for range pairs {
					from, into := k.Array(), k.Array()
					for v := range 2 {
						k.At(v)
						k.StoreRuns(into, dtype.F32, to, k.LoadRuns(from, dtype.F32, r))
					}
				}
				c := loadKernel(t, k)
				for p := range pairs {
					in[p], out[p] = make([]float32, r.Extent(n)), make([]float32, to.Extent(n))
					for i := range in[p] {
						in[p][i] = float32(i + 1000*p)
					}
					c.Set(2*p, unsafe.Pointer(&in[p][0]))
					c.Set(2*p+1, unsafe.Pointer(&out[p][0]))
				}
				c.Run(n)
				for p := range pairs {
					for i := range n {
						if got, want := out[p][at(to, i)], float32(at(r, i)+1000*p); got != want {
							t.Fatalf("lane %d is %v, not %v", i, got, want)
						}
					}
				}
			})
		}
	})
}

// TestShiftsMoveLoadsAndStores adds elements of one array at several places, in an unrolled kernel.
func TestShiftsMoveLoadsAndStores(t *testing.T) {
	if !HasShifts() {
		t.Fatal("kernels have no shifts")
	}
	shifts := []int{0, 1, 5, 40}
	everyLevel(t, func(t *testing.T) {
		k := &Kernel{}
		from, into := k.Array(), k.Array()
		for v := range 2 {
			k.At(v)
			k.Shift(shifts[0])
			sum := k.Load(from, dtype.F32)
			for _, by := range shifts[1:] {
				k.Shift(by)
				sum, _ = k.Apply(Operation{scalar.OpAdd, dtype.F32, dtype.F32}, sum, k.Load(from, dtype.F32))
			}
			k.Shift(3)
			k.Store(into, dtype.F32, sum)
		}
		c := loadKernel(t, k)
		const n = 64
		in, out := make([]float32, n+shifts[len(shifts)-1]), make([]float32, n+3)
		for i := range in {
			in[i] = float32(i * i)
		}
		c.Set(0, unsafe.Pointer(&in[0]))
		c.Set(1, unsafe.Pointer(&out[0]))
		c.Run(n)
		for i := range n {
			want := float32(0)
			for _, by := range shifts {
				want += in[i+by]
			}
			if out[i+3] != want {
				t.Fatalf("lane %d is %v, not %v", i, out[i+3], want)
			}
		}
	})
}
