package kerneltest

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// Short forms for the kernels of this package.

type (
	block = []loop.Stmt
	expr  = s.Expr
)

func i32(x int) expr        { return s.ConstI(dtype.I32, int64(x)) }
func u32(x int64) expr      { return s.ConstI(dtype.U32, x) }
func f32(x float64) expr    { return s.ConstF(dtype.F32, x) }
func iv(name string) expr   { return s.FreeVar(name, dtype.I32) }
func uv(name string) expr   { return s.FreeVar(name, dtype.U32) }
func fv(name string) expr   { return s.FreeVar(name, dtype.F32) }
func add(a, b expr) expr    { return s.Add(a, b) }
func mul(a, b expr) expr    { return s.Mul(a, b) }
func mad(a, b, c expr) expr { return s.Add(s.Mul(a, b), c) }

func let(name string, e expr) loop.Stmt    { return &loop.Let{Name: name, Value: e} }
func newVar(name string, e expr) loop.Stmt { return &loop.Var{Name: name, Init: e} }
func assign(name string, e expr) loop.Stmt { return &loop.Assign{Name: name, Value: e} }
func barrier() loop.Stmt                   { return &loop.Barrier{} }

func store(array int, at, value expr) loop.Stmt {
	return &loop.Store{Array: array, At: at, Value: value}
}

func when(cond expr, then ...loop.Stmt) loop.Stmt { return &loop.If{Cond: cond, Then: then} }

// forRange is a loop of v from 0 below end.
func forRange(v string, end, step int, body ...loop.Stmt) *loop.For {
	return &loop.For{Var: v, Start: i32(0), End: i32(end), Step: i32(step), Body: body}
}

func unroll(v string, end int, body ...loop.Stmt) *loop.For {
	f := forRange(v, end, 1, body...)
	f.Unroll = true
	return f
}

func input(name string, t dtype.DType, n int) loop.Array {
	return loop.Array{Name: name, DType: t, Width: 1, Len: n, Access: loop.Read}
}

func output(name string, t dtype.DType, n int) loop.Array {
	return loop.Array{Name: name, DType: t, Width: 1, Len: n, Access: loop.ReadWrite}
}

func atomic(name string, t dtype.DType, n int) loop.Array {
	return loop.Array{Name: name, DType: t, Width: 1, Len: n, Access: loop.Atomic}
}

func shared(name string, t dtype.DType, n int) loop.Array {
	return loop.Array{Name: name, DType: t, Width: 1, Len: n, Space: loop.Shared}
}

func private(name string, t dtype.DType, n int) loop.Array {
	return loop.Array{Name: name, DType: t, Width: 1, Len: n, Space: loop.Private}
}

// vec4 returns the array as one of vectors of four.
func vec4(a loop.Array) loop.Array {
	a.Width, a.Len = 4, a.Len/4
	return a
}

// floats returns n pseudo-random numbers between -2 and 2, determined by the seed; all are
// multiples of 1/256, which f32 represents exactly.
func floats(seed uint32, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		seed = seed*1664525 + 1013904223
		out[i] = float64(int(seed>>22)-512) / 256
	}
	return out
}

// ints returns n pseudo-random integers in [0, below), determined by the seed.
func ints(seed uint32, n, below int) []float64 {
	out := make([]float64, n)
	for i := range out {
		seed = seed*1664525 + 1013904223
		out[i] = float64(int(seed>>8) % below)
	}
	return out
}

func zeros(n int) []float64 { return make([]float64, n) }

// mapped applies f to every element and rounds to f32.
func mapped(x []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(float32(f(v)))
	}
	return out
}
