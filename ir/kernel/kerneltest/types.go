package kerneltest

import (
	"math"
	"math/bits"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// elementwise is a kernel of one workgroup of n threads that stores to array
// number inputs+j at i what outs[j] is for element i.
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

// histogram counts with atomics, and keeps the place of one count.
func histogram() *Case {
	const n, bins = 512, 8
	x := ints(9, n, bins)
	count, marks := zeros(bins), zeros(bins)
	for _, v := range x {
		count[int(v)]++
		marks[int(v)] = 1
	}
	at := s.LoadAt(0, dtype.I32, iv("i"))
	return &Case{
		Kernel: &loop.Kernel{
			Name: "histogram",
			Arrays: []loop.Array{
				input("x", dtype.I32, n), atomic("count", dtype.U32, bins), output("mark", dtype.F32, bins),
			},
			Workgroup: [3]int{64, 1, 1},
			Groups:    [3]int{n / 64, 1, 1},
			Body: block{
				let("i", loop.GlobalID(0, 64, n/64)),
				&loop.AtomicOp{Op: s.OpAdd, Array: 1, At: at, Value: u32(1), Old: "before"},
				when(s.Eq(uv("before"), u32(0)), store(2, at, f32(1))),
			},
		},
		Arrays: [][]float64{x, zeros(bins), zeros(bins)},
		Want:   [][]float64{nil, count, marks},
	}
}

// gatherChecked reports indices outside the table in the status words.
func gatherChecked() *Case {
	const n, rows = 100, 10
	x, table := ints(10, n, rows+2), floats(11, rows)
	for i := range x {
		x[i]-- // from -1 to rows
	}
	want := make([]float64, n)
	for i, v := range x {
		if v >= 0 && v < rows {
			want[i] = table[int(v)]
		}
	}
	inside := s.And(s.Ge(iv("k"), i32(0)), s.Lt(iv("k"), i32(rows)))
	found := s.LoadAt(1, dtype.F32, s.Clamp(iv("k"), i32(0), i32(rows-1)))
	return &Case{
		Kernel: &loop.Kernel{
			Name: "gather_checked",
			Arrays: []loop.Array{
				input("x", dtype.I32, n), input("table", dtype.F32, rows), output("y", dtype.F32, n), atomic("status", dtype.U32, 4),
			},
			Workgroup: [3]int{32, 1, 1},
			Groups:    [3]int{4, 1, 1},
			Body: block{
				let("i", loop.GlobalID(0, 32, 4)),
				when(s.Lt(iv("i"), i32(n)),
					let("k", s.LoadAt(0, dtype.I32, iv("i"))),
					store(2, iv("i"), s.Check(s.Select(inside, found, f32(0)), inside, 7))),
			},
		},
		Arrays: [][]float64{x, table, zeros(n), zeros(4)},
		Want:   [][]float64{nil, nil, want, {7, 0, 0, 0}},
	}
}

// sliceByCounter copies the slice of x that the count of the inner of two
// repeats says, times the second member of the uniform block.
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

// activations holds the functions whose built-in forms are loose or missing.
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

// integers holds division, shifts and bits of signed numbers, also of the
// smallest one and by zero.
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

// nonZero is the divisor that a zero counts as.
func nonZero(b int32) int32 {
	if b == 0 {
		return 1
	}
	return b
}

// threefry is four rounds of the Threefry mixing function: arithmetic modulo
// 2³² in which every value is used twice.
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

// booleans loads, combines and stores them; a private and a shared array hold
// some on the way.
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

// conversions are those between floats, integers and bits, saturating.
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

// specials stores constants that have no literal, and products that a zero
// masks.
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

// countedState is a kernel that loads what it changes atomically: it counts the
// large elements, once a flag that was there before says so.
func countedState() *Case {
	const n = 64
	x := ints(15, n, 100)
	count := 41.0
	for _, v := range x {
		if v > 50 {
			count++
		}
	}
	old := s.LoadAt(1, dtype.I32, i32(1))
	k := &loop.Kernel{
		Name:      "counted_state",
		Arrays:    []loop.Array{input("x", dtype.I32, n), atomic("state", dtype.I32, 2)},
		Workgroup: [3]int{32, 1, 1},
		Groups:    [3]int{2, 1, 1},
		Body: block{
			let("i", loop.GlobalID(0, 32, 2)),
			when(s.And(s.Lt(old, i32(0)), s.Gt(s.LoadAt(0, dtype.I32, iv("i")), i32(50))),
				&loop.AtomicOp{Op: s.OpAdd, Array: 1, At: i32(0), Value: i32(1)}),
		},
	}
	return &Case{Kernel: k, Arrays: [][]float64{x, {41, -1}}, Want: [][]float64{nil, {count, -1}}}
}

// wideFloats has functions and conversions of f64.
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

// wideIntegers has arithmetic modulo 2⁶⁴ and conversions between widths.
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

// halfPrecision has arithmetic, conversions, constants and vectors of f16.
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
