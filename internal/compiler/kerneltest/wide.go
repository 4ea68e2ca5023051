package kerneltest

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// wideFloats tests functions and conversions of f64.
func wideFloats() *Case {
	x := []float64{-3.5, -1, -0.25, 0, 1e-9, 0.5, 1, 2.75, 30}
	n := len(x)
	v := s.LoadAt(0, dtype.F64, iv("i"))
	f64 := func(x float64) expr { return s.ConstF(dtype.F64, x) }
	funcs := []struct {
		name string
		e    expr
		f    func(float64) float64
	}{
		{"tanh_x", s.Tanh(v), math.Tanh},
		{"gauss", s.Exp(s.Neg(mul(v, v))), func(x float64) float64 { return math.Exp(-x * x) }},
		{"sigmoid_x", s.Sigmoid(v), func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"top", s.Max(v, f64(0.1)), func(x float64) float64 { return max(x, 0.1) }},
		{"narrow", s.Convert(s.Convert(v, dtype.F32), dtype.F64), func(x float64) float64 { return float64(float32(x)) }},
		{"whole", s.Convert(s.Convert(mul(v, f64(1e10)), dtype.I64), dtype.F64), func(x float64) float64 { return math.Trunc(x * 1e10) }},
		{"far", s.Select(s.Gt(v, f64(0)), f64(math.Inf(1)), f64(math.SmallestNonzeroFloat64)), func(x float64) float64 {
			if x > 0 {
				return math.Inf(1)
			}
			return math.SmallestNonzeroFloat64
		}},
	}
	c := &Case{Arrays: [][]float64{x}, Want: [][]float64{nil}, Tolerance: 1e-14}
	arrays := []loop.Array{input("x", dtype.F64, n)}
	var outs []expr
	for _, f := range funcs {
		arrays = append(arrays, output(f.name, dtype.F64, n))
		outs = append(outs, f.e)
		want := make([]float64, n)
		for i := range x {
			want[i] = f.f(x[i])
		}
		c.Arrays, c.Want = append(c.Arrays, zeros(n)), append(c.Want, want)
	}
	c.Kernel = elementwise("wide_floats", n, arrays, 1, outs...)
	return c
}

// wideIntegers tests arithmetic modulo 2⁶⁴ and conversions between widths.
func wideIntegers() *Case {
	const n = 12
	x := ints(16, n, 1<<20)
	mixed, short := zeros(n), zeros(n)
	for i, v := range x {
		h := uint64(int64(v)) * 6364136223846793005
		h ^= h >> 33
		mixed[i] = float64(h >> 40)
		short[i] = float64(int32(uint32(h)) / 7)
	}
	v := s.Convert(s.LoadAt(0, dtype.I64, iv("i")), dtype.U64)
	u64 := func(x int64) expr { return s.ConstI(dtype.U64, x) }
	h := mul(v, u64(6364136223846793005))
	h = s.Xor(h, s.Shr(h, u64(33)))
	return &Case{
		Kernel: elementwise("wide_integers", n, []loop.Array{
			input("x", dtype.I64, n), output("mixed", dtype.U64, n), output("short_word", dtype.I32, n),
		}, 1, s.Shr(h, u64(40)), s.Div(s.Convert(h, dtype.I32), i32(7))),
		Arrays: [][]float64{x, zeros(n), zeros(n)},
		Want:   [][]float64{nil, mixed, short},
	}
}

// halfPrecision tests arithmetic, conversions, constants and vectors of f16.
func halfPrecision() *Case {
	const n = 16
	x := floats(17, n)
	half := func(x float64) expr { return s.ConstF(dtype.F16, x) }
	hv := func(name string) expr { return s.FreeVar(name, dtype.F16) }
	line, wide := zeros(n), zeros(n)
	var lines []expr
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		lines = append(lines, add(mul(hv(name), half(0.5)), half(-1)))
	}
	for i, v := range x {
		line[i] = dtype.F16.Round(v*0.5 - 1)
		wide[i] = float64(float32(line[i])) / 3
	}
	quad := mad(iv("i"), i32(4), i32(0))
	body := block{
		let("i", loop.LocalID(0, n/4)),
		&loop.LoadVec{Names: names, Array: 0, At: iv("i")},
		&loop.StoreVec{Array: 1, At: iv("i"), Values: lines},
	}
	for j, e := range lines {
		body = append(body, store(2, add(quad, i32(j)), s.Div(s.Convert(e, dtype.F32), f32(3))))
	}
	return &Case{
		Kernel: &loop.Kernel{
			Name: "half_precision",
			Arrays: []loop.Array{
				vec4(input("x", dtype.F16, n)), vec4(output("line", dtype.F16, n)), output("wide", dtype.F32, n),
			},
			Workgroup: [3]int{n / 4, 1, 1},
			Groups:    [3]int{1, 1, 1},
			Body:      body,
		},
		Arrays:    [][]float64{x, zeros(n), zeros(n)},
		Want:      [][]float64{nil, line, wide},
		Tolerance: 1e-3,
	}
}
