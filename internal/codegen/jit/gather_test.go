package jit

import (
	"math"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestGathersOfOtherTypes loads elements of f64 and of bf16, of which the last is not the first of a pair in memory.
func TestGathersOfOtherTypes(t *testing.T) {
	const n, elems = 64, 9
	if !HasGathers(dtype.F64) || !HasGathers(dtype.BF16) {
		t.Skip("the processor has no gathers")
	}
	place := func(i int) int64 { return int64(i%(elems+3) - 1) }
	want := func(i int) int { return int(min(uint64(place(i)), elems-1)) }
	everyLevel(t, func(t *testing.T) {
		k := &Kernel{Long: true}
		places, x, y := k.Array(), k.Array(), k.Array()
		k.Store(y, dtype.F64, k.Gather(x, dtype.F64, k.Load(places, dtype.I64), elems))
		c := loadKernel(t, k)
		var at [n]int64
		var in [elems]float64
		var out [n]float64
		for i := range in {
			in[i] = float64(i) + 0.5
		}
		for i := range at {
			at[i] = place(i)
		}
		c.Set(places, unsafe.Pointer(&at))
		c.Set(x, unsafe.Pointer(&in))
		c.Set(y, unsafe.Pointer(&out))
		c.Run(n)
		for i, got := range out {
			if got != in[want(i)] {
				t.Fatalf("f64: lane %d is %v, not %v", i, got, in[want(i)])
			}
		}
	})
	everyLevel(t, func(t *testing.T) {
		k := &Kernel{}
		places, x, y := k.Array(), k.Array(), k.Array()
		k.Store(y, dtype.F32, k.Gather(x, dtype.BF16, k.Load(places, dtype.I32), elems))
		c := loadKernel(t, k)
		var at [n]int32
		var in [elems]uint16
		var out [n]float32
		for i := range in {
			in[i] = uint16(math.Float32bits(float32(i)-3) >> 16)
		}
		for i := range at {
			at[i] = int32(place(i))
		}
		c.Set(places, unsafe.Pointer(&at))
		c.Set(x, unsafe.Pointer(&in))
		c.Set(y, unsafe.Pointer(&out))
		c.Run(n)
		for i, got := range out {
			if got != float32(want(i))-3 {
				t.Fatalf("bf16: lane %d is %v, not %v", i, got, float32(want(i))-3)
			}
		}
	})
}

// TestGathersReadTheirPlaces sums elements of many arrays at computed places, some of them outside, in a kernel with more
// values and arrays than registers.
func TestGathersReadTheirPlaces(t *testing.T) {
	const n, arrays, elems = 64, 40, 100
	if !HasGathers(dtype.F32) {
		t.Skip("the processor has no gathers")
	}
	everyLevel(t, func(t *testing.T) {
		k := &Kernel{}
		places := k.Load(k.Array(), dtype.I32)
		var taken [arrays]Value
		for i := range taken {
			at, _ := k.Apply(Operation{scalar.OpAdd, dtype.I32, dtype.I32}, places, k.Const(scalar.ConstI(dtype.I32, int64(i))))
			taken[i] = k.Gather(k.Array(), dtype.F32, at, elems)
		}
		sum := k.Const(scalar.ConstF(dtype.F32, 0))
		for i := arrays - 1; i >= 0; i-- {
			more, _ := k.Apply(Operation{scalar.OpLt, dtype.F32, dtype.Bool}, taken[i], taken[(i+1)%arrays])
			y, _ := k.Apply(Operation{scalar.OpSelect, dtype.F32, dtype.F32}, more, taken[i], taken[(i+3)%arrays])
			sum, _ = k.Apply(Operation{scalar.OpAdd, dtype.F32, dtype.F32}, sum, y)
		}
		k.Store(k.Array(), dtype.F32, sum)
		c := loadKernel(t, k)
		var in [arrays][elems]float32
		var at [n]int32
		var out [n]float32
		for i := range at {
			at[i] = int32(i*5 - 10)
		}
		c.Set(0, unsafe.Pointer(&at))
		for i := range in {
			for j := range in[i] {
				in[i][j] = float32((i*31 + j*17) % 101) // values with exact sums
			}
			c.Set(i+1, unsafe.Pointer(&in[i]))
		}
		c.Set(arrays+1, unsafe.Pointer(&out))
		c.Run(n)
		for j, got := range out {
			want, element := float32(0), func(i int) float32 {
				return in[i][min(uint32(at[j]+int32(i)), elems-1)]
			}
			for i := range in {
				if x := element(i); x < element((i+1)%arrays) {
					want += x
				} else {
					want += element((i + 3) % arrays)
				}
			}
			if got != want {
				t.Fatalf("lane %d is %v, not %v", j, got, want)
			}
		}
	})
}
