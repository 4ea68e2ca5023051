package kerneltest

import (
	"math"
	"math/bits"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// integers tests division, shifts and bit operations on signed numbers, including the smallest
// one and division by zero.
func integers() *Case {
	a := []float64{7, -7, 7, -7, 0, -1, math.MaxInt32, math.MinInt32, 100, 12}
	b := []float64{3, 3, -3, -3, 5, 4, 2, 3, 0, -5}
	n := len(a)
	x, y := s.LoadAt(0, dtype.I32, iv("i")), s.LoadAt(1, dtype.I32, iv("i"))
	funcs := []struct {
		name string
		e    expr
		f    func(a, b int32) int32
	}{
		{"quot", s.Div(x, y), func(a, b int32) int32 { return a / nonZero(b) }},
		{"rest", s.Rem(x, y), func(a, b int32) int32 { return a % nonZero(b) }},
		{"floor", s.FloorDiv(x, y), func(a, b int32) int32 { return int32(math.Floor(float64(a) / float64(nonZero(b)))) }},
		{"modulo", s.Mod(x, i32(5)), func(a, _ int32) int32 { return (a%5 + 5) % 5 }},
		{"shift", s.Xor(s.Shl(x, i32(3)), s.Shr(x, s.And(y, i32(31)))), func(a, b int32) int32 { return a<<3 ^ a>>(b&31) }},
		{"mixed", add(s.PopCount(x), s.Not(s.Max(x, i32(math.MinInt32)))), func(a, _ int32) int32 { return int32(bits.OnesCount32(uint32(a))) + ^a }},
	}
	c := &Case{Arrays: [][]float64{a, b}, Want: [][]float64{nil, nil}}
	arrays := []loop.Array{input("a", dtype.I32, n), input("b", dtype.I32, n)}
	var outs []expr
	for _, f := range funcs {
		arrays = append(arrays, output(f.name, dtype.I32, n))
		outs = append(outs, f.e)
		want := make([]float64, n)
		for i := range want {
			want[i] = float64(f.f(int32(a[i]), int32(b[i])))
		}
		c.Arrays, c.Want = append(c.Arrays, zeros(n)), append(c.Want, want)
	}
	c.Kernel = elementwise("integers", n, arrays, 2, outs...)
	return c
}

// nonZero replaces a zero divisor by one.
func nonZero(b int32) int32 {
	if b == 0 {
		return 1
	}
	return b
}

// threefry is four rounds of the Threefry mixing function: arithmetic modulo 2³² that uses
// every value twice.
func threefry() *Case {
	const n = 32
	rotations := []int{13, 15, 26, 6}
	x0, x1 := s.Convert(iv("i"), dtype.U32), u32(0x9E3779B9)
	w0, w1 := make([]float64, n), make([]float64, n)
	for i := range n {
		a, b := uint32(i), uint32(0x9E3779B9)
		for _, r := range rotations {
			a += b
			b = bits.RotateLeft32(b, r) ^ a
		}
		w0[i], w1[i] = float64(a), float64(b)
	}
	for _, r := range rotations {
		x0 = add(x0, x1)
		x1 = s.Xor(s.Or(s.Shl(x1, u32(int64(r))), s.Shr(x1, u32(int64(32-r)))), x0)
	}
	return &Case{
		Kernel: elementwise("threefry", n, []loop.Array{output("y0", dtype.U32, n), output("y1", dtype.U32, n)}, 0, x0, x1),
		Arrays: [][]float64{zeros(n), zeros(n)},
		Want:   [][]float64{w0, w1},
	}
}

// booleans loads, combines and stores booleans, through a private and a shared array.
func booleans() *Case {
	const n = 16
	p, q := ints(13, n, 2), ints(14, n, 2)
	and, differ := make([]float64, n), make([]float64, n)
	for i := range n {
		and[i] = p[i] * (1 - q[i])
		if p[i] != q[(i+1)%n] {
			differ[i] = 1
		}
	}
	load := func(array int, at expr) expr { return s.LoadAt(array, dtype.Bool, at) }
	next := s.Rem(add(iv("i"), i32(1)), i32(n))
	return &Case{
		Kernel: &loop.Kernel{
			Name: "booleans",
			Arrays: []loop.Array{
				input("p", dtype.Bool, n), input("q", dtype.Bool, n), output("both", dtype.Bool, n), output("differ", dtype.Bool, n),
				shared("all_q", dtype.Bool, n), private("mine", dtype.Bool, 2),
			},
			Workgroup: [3]int{n, 1, 1},
			Groups:    [3]int{1, 1, 1},
			Body: block{
				let("i", loop.LocalID(0, n)),
				store(4, iv("i"), load(1, iv("i"))),
				store(5, s.Rem(iv("i"), i32(2)), load(0, iv("i"))),
				barrier(),
				let("mine_p", load(5, s.Rem(iv("i"), i32(2)))),
				store(2, iv("i"), s.And(s.FreeVar("mine_p", dtype.Bool), s.Not(load(1, iv("i"))))),
				store(3, iv("i"), s.Ne(s.FreeVar("mine_p", dtype.Bool), load(4, next))),
			},
		},
		Arrays: [][]float64{p, q, zeros(n), zeros(n)},
		Want:   [][]float64{nil, nil, and, differ},
	}
}
