package kerneltest

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// elementwise returns a kernel of one workgroup of n threads that stores outs[j] for element i
// to array inputs+j at i.
func elementwise(name string, n int, arrays []loop.Array, inputs int, outs ...expr) *loop.Kernel {
	body := block{let("i", loop.LocalID(0, n))}
	for j, e := range outs {
		body = append(body, store(inputs+j, iv("i"), e))
	}
	return &loop.Kernel{
		Name:      name,
		Arrays:    arrays,
		Workgroup: [3]int{n, 1, 1},
		Groups:    [3]int{1, 1, 1},
		Body:      body,
	}
}

// sliceByCounter copies the slice of x selected by the iteration of the inner of two repeats,
// times the second member of the uniform block.
func sliceByCounter() *Case {
	const n, slices = 16, 5
	x := floats(12, n*slices)
	at := mad(loop.Counter(1), i32(n), iv("i"))
	scale := s.Convert(loop.RunScalar(1, dtype.I32), dtype.F32)
	k := elementwise("slice_by_counter", n,
		[]loop.Array{input("x", dtype.F32, n*slices), output("y", dtype.F32, n)}, 1,
		mul(s.LoadAt(0, dtype.F32, at), scale))
	k.Scalars = []dtype.DType{dtype.Invalid, dtype.I32}
	k.Counters = 2
	return &Case{
		Kernel:   k,
		Arrays:   [][]float64{x, zeros(n)},
		Scalars:  []s.Value{{}, {I: -3}},
		Counters: []int{1, 3},
		Want:     [][]float64{nil, mapped(x[3*n:4*n], func(v float64) float64 { return -3 * v })},
	}
}

// activations tests functions whose built-in versions are inaccurate or missing.
func activations() *Case {
	x := []float64{-100, -20, -5, -2, -1, -0.5, -0.125, -1e-3, 0, 1e-6, 0.01, 0.3, 0.75, 1, 1.5, 3, 7, 15, 40, 88}
	n := len(x)
	v := s.LoadAt(0, dtype.F32, iv("i"))
	funcs := []struct {
		name string
		e    expr
		f    func(float64) float64
	}{
		{"exp", s.Exp(v), math.Exp},
		{"tanh", s.Tanh(v), math.Tanh},
		{"erf", s.Erf(v), math.Erf},
		{"sin", s.Sin(v), math.Sin},
		{"cos", s.Cos(v), math.Cos},
		{"sigmoid", s.Sigmoid(v), func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"log1p", s.Log1p(s.Abs(v)), func(x float64) float64 { return math.Log1p(math.Abs(x)) }},
	}
	c := &Case{Arrays: [][]float64{x}, Want: [][]float64{nil}, Tolerance: 2e-6}
	arrays := []loop.Array{input("x", dtype.F32, n)}
	var outs []expr
	for _, f := range funcs {
		arrays = append(arrays, output(f.name+"_x", dtype.F32, n))
		outs = append(outs, f.e)
		c.Arrays = append(c.Arrays, zeros(n))
		c.Want = append(c.Want, mapped(mapped(x, func(v float64) float64 { return v }), f.f))
	}
	c.Kernel = elementwise("activations", n, arrays, 1, outs...)
	return c
}

// conversions tests saturating conversions between floats, integers and bits.
func conversions() *Case {
	x := []float64{-3e9, -2.75, -0.5, 0, 0.5, 2.75, 16777216, 3e9, 5e9}
	n := len(x)
	v := s.LoadAt(0, dtype.F32, iv("i"))
	toI, toU, back, bitsOf := zeros(n), zeros(n), zeros(n), zeros(n)
	for i := range x {
		x[i] = float64(float32(x[i]))
		toI[i] = math.Trunc(min(max(x[i], math.MinInt32), math.MaxInt32))
		toU[i] = math.Trunc(min(max(x[i], 0), math.MaxUint32))
		back[i] = float64(float32(toI[i])) + float64(float32(toU[i]))
		back[i] = float64(float32(back[i]))
		bitsOf[i] = float64(math.Float32bits(float32(x[i])))
	}
	asI, asU := s.Convert(v, dtype.I32), s.Convert(v, dtype.U32)
	k := elementwise("conversions", n, []loop.Array{
		input("x", dtype.F32, n), output("to_i32", dtype.I32, n), output("to_u32", dtype.U32, n),
		output("back", dtype.F32, n), output("bits", dtype.U32, n),
	}, 1, asI, asU, add(s.Convert(asI, dtype.F32), s.Convert(asU, dtype.F32)), s.Bitcast(v, dtype.U32))
	return &Case{
		Kernel: k,
		Arrays: [][]float64{x, zeros(n), zeros(n), zeros(n), zeros(n)},
		Want:   [][]float64{nil, toI, toU, back, bitsOf},
	}
}

// specials stores constants that have no literal, and products masked by a zero.
func specials() *Case {
	const n = 4
	x := []float64{0, 1, -2, 0}
	v := s.LoadAt(0, dtype.F32, iv("i"))
	inf := f32(math.Inf(1))
	pick := s.Select(s.Eq(iv("i"), i32(1)), f32(math.Inf(-1)), s.Select(s.Eq(iv("i"), i32(2)), f32(math.NaN()), inf))
	k := elementwise("specials", n, []loop.Array{
		input("x", dtype.F32, n), output("picked", dtype.F32, n), output("masked", dtype.F32, n), output("smallest", dtype.F32, n),
	}, 1, pick, s.MulZero(v, inf), s.Select(s.Gt(v, f32(0)), f32(math.MaxFloat32), f32(0x1p-126)))
	return &Case{
		Kernel: k,
		Arrays: [][]float64{x, zeros(n), zeros(n), zeros(n)},
		Want: [][]float64{
			nil,
			{math.Inf(1), math.Inf(-1), math.NaN(), math.Inf(1)},
			{0, math.Inf(1), math.Inf(-1), 0},
			{0x1p-126, math.MaxFloat32, 0x1p-126, 0x1p-126},
		},
	}
}
