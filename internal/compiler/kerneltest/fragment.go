package kerneltest

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// Fragments returns kernels that multiply fragments.
func Fragments() []*Case {
	return []*Case{fragments("fragments", dtype.F32), fragments("fragments_half", dtype.F16), fragments("fragments_bfloat", dtype.BF16)}
}

// Sizes of the fragment product: each of its two subgroups computes eight rows.
const (
	fragmentThreads = 64
	fragmentM       = 16
	fragmentN       = 24
	fragmentK       = 16
	fragmentRow     = fragmentN + 4 // row stride of B and of the results in shared memory
)

// The arrays of a fragment product.
const (
	fragmentA = iota
	fragmentB
	fragmentD
	sharedA // row by row
	sharedB // transposed: column by column
	sharedD
)

// fragments multiplies a 16×16 matrix by a 16×24 one, which is transposed in shared memory.
func fragments(name string, t dtype.DType) *Case {
	thread, subgroup := loop.LocalID(0, fragmentThreads), loop.SubgroupIndex(fragmentThreads/32)
	at := iv("at")
	each := func(n int, body ...loop.Stmt) loop.Stmt {
		return &loop.For{Var: "at", Start: thread, End: i32(n), Step: i32(fragmentThreads), Body: body}
	}
	transposed := add(mul(s.Rem(at, i32(fragmentN)), i32(fragmentK)), s.Div(at, i32(fragmentN)))
	body := block{
		each(fragmentM*fragmentK, store(sharedA, at, s.LoadAt(fragmentA, t, at))),
		each(fragmentK*fragmentN, store(sharedB, transposed, s.LoadAt(fragmentB, t, at))),
		barrier(),
	}
	for j := range fragmentN / loop.FragmentSize {
		body = append(body, &loop.FragmentZero{Name: "d" + string(rune('0'+j))})
	}
	first := mul(subgroup, i32(loop.FragmentSize))
	multiply := block{&loop.FragmentLoad{Name: "a", Array: sharedA, At: add(mul(first, i32(fragmentK)), iv("k")), Stride: fragmentK}}
	for j := range fragmentN / loop.FragmentSize {
		b := "b" + string(rune('0'+j))
		multiply = append(multiply,
			&loop.FragmentLoad{Name: b, Array: sharedB, At: add(i32(j*loop.FragmentSize*fragmentK), iv("k")), Stride: fragmentK, Transposed: true, Right: true},
			&loop.FragmentMulAdd{Sum: "d" + string(rune('0'+j)), A: "a", B: b})
	}
	body = append(body, forRange("k", fragmentK, loop.FragmentSize, multiply...))
	for j := range fragmentN / loop.FragmentSize {
		body = append(body, &loop.FragmentStore{Array: sharedD, At: add(mul(first, i32(fragmentRow)), i32(j*loop.FragmentSize)), Stride: fragmentRow, Name: "d" + string(rune('0'+j))})
	}
	result := add(mul(s.Div(at, i32(fragmentN)), i32(fragmentRow)), s.Rem(at, i32(fragmentN)))
	body = append(body, barrier(), each(fragmentM*fragmentN, store(fragmentD, at, s.LoadAt(sharedD, dtype.F32, result))))
	a, b := floats(1, fragmentM*fragmentK), floats(2, fragmentK*fragmentN)
	for _, x := range [][]float64{a, b} {
		for i := range x {
			x[i] = t.FloatFromBits(t.FloatBits(x[i]))
		}
	}
	want := zeros(fragmentM * fragmentN)
	for i := range want { // exact, because the factors have few bits
		for k := range fragmentK {
			want[i] += a[i/fragmentN*fragmentK+k] * b[k*fragmentN+i%fragmentN]
		}
	}
	return &Case{
		Kernel: &loop.Kernel{
			Name: name,
			Arrays: []loop.Array{
				input("x", t, fragmentM*fragmentK), input("y", t, fragmentK*fragmentN), output("z", dtype.F32, fragmentM*fragmentN),
				shared("left", t, fragmentM*fragmentK), shared("right", t, fragmentK*fragmentN), shared("sums", dtype.F32, fragmentM*fragmentRow),
			},
			Workgroup: [3]int{fragmentThreads, 1, 1}, Groups: [3]int{1, 1, 1}, Subgroup: [2]int{32, 32},
			Body: body,
		},
		Arrays: [][]float64{a, b, zeros(fragmentM * fragmentN)},
		Want:   [][]float64{nil, nil, want},
	}
}
