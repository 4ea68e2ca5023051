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
	everyLevel(t, func(t *testing.T) {
		checkGathers[int64, float64, float64](t, true, dtype.F64, func(i int) (stored, loaded float64) { x := float64(i) + 0.5; return x, x })
	})
	everyLevel(t, func(t *testing.T) {
		checkGathers[int32, uint16, float32](t, false, dtype.BF16, func(i int) (stored uint16, loaded float32) {
			x := float32(i) - 3
			return uint16(math.Float32bits(x) >> 16), x
		})
	})
}

// checkGathers loads elements of a type at places of type P, some of them outside, and compares them with results of type R.
func checkGathers[P int32 | int64, E any, R float32 | float64](t *testing.T, long bool, of dtype.DType, element func(i int) (E, R)) {
	const n, elems = 64, 9
	place, result := dtype.I32, dtype.F32
	if long {
		place, result = dtype.I64, dtype.F64
	}
	k := &Kernel{Long: long}
	places, x, y := k.Array(), k.Array(), k.Array()
	k.Store(y, result, k.Gather(x, of, k.Load(places, place), elems))
	c := loadKernel(t, k)
	var at [n]P
	var in [elems]E
	var loaded [elems]R
	var out [n]R
	for i := range in {
		in[i], loaded[i] = element(i)
	}
	for i := range at {
		at[i] = P(i%(elems+3) - 1)
	}
	c.Set(places, unsafe.Pointer(&at))
	c.Set(x, unsafe.Pointer(&in))
	c.Set(y, unsafe.Pointer(&out))
	c.Run(n)
	for i, got := range out {
		if want := loaded[min(uint64(at[i]), elems-1)]; got != want {
			t.Fatalf("%s: lane %d is %v, not %v", of, i, got, want)
		}
	}
}

// TestGathersReadTheirPlaces sums elements of many arrays at computed places, some of them outside, in a kernel with more
// values and arrays than registers.
func TestGathersReadTheirPlaces(t *testing.T) {
	const n, arrays, elems = 64, 40, 100
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
