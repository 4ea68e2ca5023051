package jit

import (
	"math"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestMoreValuesThanRegisters spills and reloads numbers and booleans, with more arrays than
// registers for their addresses.
func TestMoreValuesThanRegisters(t *testing.T) {
	const arrays, n = 45, 64
	less := Operation{scalar.OpLt, dtype.F32, dtype.Bool}
	choose := Operation{scalar.OpSelect, dtype.F32, dtype.F32}
	add := Operation{scalar.OpAdd, dtype.F32, dtype.F32}
	everyLevel(t, func(t *testing.T) {
		k := &Kernel{}
		var x, smaller [arrays]Value
		for i := range x {
			x[i] = k.Load(k.Array(), dtype.F32)
		}
		for i := range x {
			smaller[i], _ = k.Apply(less, x[i], x[(i+1)%arrays])
		}
		sum := k.Const(scalar.ConstF(dtype.F32, 0))
		for i := arrays - 1; i >= 0; i-- { // the first are used last
			y, _ := k.Apply(choose, smaller[i], x[i], x[(i+7)%arrays])
			sum, _ = k.Apply(add, sum, y)
		}
		k.Store(k.Array(), dtype.F32, sum)
		c := loadKernel(t, k)
		var in [arrays][n]float32
		var out [n]float32
		for i := range in {
			for j := range in[i] {
				in[i][j] = float32((i*37+j*11)%101) - 50 // values with exact sums
			}
			c.Set(i, unsafe.Pointer(&in[i]))
		}
		c.Set(arrays, unsafe.Pointer(&out))
		c.Run(n)
		for j := range out {
			want := float32(0)
			for i := range in {
				if in[i][j] < in[(i+1)%arrays][j] {
					want += in[i][j]
				} else {
					want += in[(i+7)%arrays][j]
				}
			}
			if out[j] != want {
				t.Fatalf("lane %d is %v, not %v", j, out[j], want)
			}
		}
	})
}

// TestScansIgnoreMaskedLanes has other numbers in the masked lanes.
func TestScansIgnoreMaskedLanes(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for n := 1; n <= 3*MaxLanes; n++ {
			k := &Kernel{}
			sum, most := k.Accumulator(dtype.F32, 0), k.Accumulator(dtype.F32, uint64(math.Float32bits(float32(math.Inf(-1)))))
			x := k.Load(k.Array(), dtype.F32)
			next, _ := k.Apply(Operation{scalar.OpAdd, dtype.F32, dtype.F32}, sum, x)
			larger, _ := k.Apply(Operation{scalar.OpMax, dtype.F32, dtype.F32}, most, x)
			k.Next(sum, next)
			k.Next(most, larger)
			k.After()
			out := k.Array()
			for by := Width() / 2; by > 0; by /= 2 {
				sum, _ = k.Apply(Operation{scalar.OpAdd, dtype.F32, dtype.F32}, sum, k.Rotate(sum, by))
				most, _ = k.Apply(Operation{scalar.OpMax, dtype.F32, dtype.F32}, most, k.Rotate(most, by))
			}
			both, _ := k.Apply(Operation{scalar.OpAdd, dtype.F32, dtype.F32}, sum, most)
			k.Store(out, dtype.F32, both)
			c := loadKernel(t, k)
			in, results := make([]float32, 4*MaxLanes), make([]float32, MaxLanes)
			c.Set(out, unsafe.Pointer(&results[0]))
			got, want := float32(0), float32(0)
			for i := range in {
				in[i] = float32(i + 1) // larger outside
			}
			full := n - n%c.Width()
			if full > 0 {
				c.Set(0, unsafe.Pointer(&in[0]))
				c.Run(full)
				got, want = got+results[0], want+float32(full*(full+1)/2+full)
			}
			if full < n {
				c.Set(0, unsafe.Pointer(&in[full]))
				c.RunTail(n - full)
				got, want = got+results[0], want+float32(n*(n+1)/2-full*(full+1)/2+n)
			}
			if got != want {
				t.Fatalf("%d lanes: %v, not %v", n, got, want)
			}
		}
	})
}

// TestEqualKernelsShareTheirCode compiles one kernel twice, and another one.
func TestEqualKernelsShareTheirCode(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		kernel := func(c float64) *Kernel {
			k := &Kernel{}
			x, _ := k.Apply(Operation{scalar.OpMul, dtype.F32, dtype.F32}, k.Load(k.Array(), dtype.F32), k.Const(scalar.ConstF(dtype.F32, c)))
			k.Store(k.Array(), dtype.F32, x)
			return k
		}
		set := &Set{}
		a, b, c := set.Compile(One(kernel(2))), set.Compile(One(kernel(2))), set.Compile(One(kernel(3)))
		if a != b || a == c {
			t.Error("equal kernels have their own code, or different ones share it")
		}
	})
}

// TestRowsInPlace doubles rows of any number of lanes where they are, and the lanes of doubles: those of the last vector that the
// one before has are doubled once.
func TestRowsInPlace(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		testRowsInPlace[float32](t, dtype.F32, false)
		testRowsInPlace[float64](t, dtype.F64, true)
	})
}

func testRowsInPlace[T float32 | float64](t *testing.T, typ dtype.DType, long bool) {
	if !HasOverlap() {
		return
	}
	const rows = 3
	k := &Kernel{Long: long}
	x := k.Load(k.Array(), typ)
	twice, _ := k.Apply(Operation{scalar.OpAdd, typ, typ}, x, x)
	k.Store(k.Array(), typ, twice)
	if !k.StoresOnce() {
		t.Errorf("a kernel of %s stores other elements", typ)
	}
	for n := k.Width(); n <= 3*k.Width(); n++ {
		set := &Set{}
		step := n * typ.Size()
		code := set.Compile(&Rows{Kernels: []*Kernel{k}, Strides: []int{step, step}, Counter: -1, Overlap: true, InPlace: true})
		if err := set.Load(); err != nil {
			t.Fatal(err)
		}
		values := make([]T, rows*n+1) // the last is not written
		for i := range values {
			values[i] = T(i + 1)
		}
		c := code.NewCall()
		c.Set(0, unsafe.Pointer(&values[0]))
		c.Set(1, unsafe.Pointer(&values[0]))
		c.RunRows(rows, n)
		for i, x := range values {
			want := 2 * T(i+1)
			if i == rows*n {
				want /= 2
			}
			if x != want {
				t.Fatalf("rows of %d lanes: element %d is %v, not %v", n, i, x, want)
			}
		}
	}
}

// TestRowsOverlap has rows of one to three vectors and a part of one: the last vector is computed from the
// row's end on, and its lanes are summed once.
func TestRowsOverlap(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		if !HasOverlap() {
			return
		}
		const rows = 3
		for n := Width(); n <= 3*Width(); n++ {
			k := &Kernel{}
			x := k.Load(k.Array(), dtype.F32)
			twice, _ := k.Apply(Operation{scalar.OpAdd, dtype.F32, dtype.F32}, x, x)
			k.Store(k.Array(), dtype.F32, twice)
			sum := k.Accumulator(dtype.F32, 0)
			next, _ := k.Apply(Operation{scalar.OpAdd, dtype.F32, dtype.F32}, sum, x)
			k.Next(sum, next)
			k.After()
			for by := Width() / 2; by > 0; by /= 2 {
				sum, _ = k.Apply(Operation{scalar.OpAdd, dtype.F32, dtype.F32}, sum, k.Rotate(sum, by))
			}
			k.StoreFirst(k.Array(), sum)
			set := &Set{}
			code := set.Compile(&Rows{Kernels: []*Kernel{k}, Strides: []int{4 * n, 4 * n, 4}, Counter: -1, Overlap: true})
			if err := set.Load(); err != nil {
				t.Fatal(err)
			}
			in, out, sums := make([]float32, rows*n), make([]float32, rows*n+1), make([]float32, rows)
			for i := range in {
				in[i] = float32(i % 97)
			}
			out[rows*n] = -1 // not written
			c := code.NewCall()
			for i, a := range [][]float32{in, out, sums} {
				c.Set(i, unsafe.Pointer(&a[0]))
			}
			c.RunRows(rows, n)
			for row := range rows {
				want := float32(0)
				for i, x := range in[row*n : (row+1)*n] {
					if want += x; out[row*n+i] != 2*x {
						t.Fatalf("row %d of %d lanes: lane %d is %v, not %v", row, n, i, out[row*n+i], 2*x)
					}
				}
				if sums[row] != want {
					t.Fatalf("row %d of %d lanes: the sum is %v, not %v", row, n, sums[row], want)
				}
			}
			if out[rows*n] != -1 {
				t.Fatalf("%d lanes: the lane after them was written", n)
			}
		}
	})
}
