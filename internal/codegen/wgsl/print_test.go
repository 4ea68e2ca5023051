package wgsl_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// kernelOn is a kernel of 8 threads with an array called out that it writes and
// one called in that it reads, both of 8 elements of type t.
func kernelOn(t dtype.DType, body ...loop.Stmt) *loop.Kernel {
	return &loop.Kernel{
		Name:      "small",
		Workgroup: [3]int{8, 1, 1},
		Groups:    [3]int{1, 1, 1},
		Arrays: []loop.Array{
			{Name: "in", DType: t, Width: 1, Len: 8, Access: loop.Read},
			{Name: "out", DType: t, Width: 1, Len: 8, Access: loop.ReadWrite},
		},
		Body: body,
	}
}

var (
	local = loop.LocalID(0, 8)
	i32   = func(x int64) s.Expr { return s.ConstI(dtype.I32, x) }
	u32   = func(x int64) s.Expr { return s.ConstI(dtype.U32, x) }
	f32   = func(x float64) s.Expr { return s.ConstF(dtype.F32, x) }
	iv    = func(name string) s.Expr { return s.FreeVar(name, dtype.I32) }
	in    = func(t dtype.DType) s.Expr { return s.LoadAt(0, t, local) }
)

func out(value s.Expr) loop.Stmt { return &loop.Store{Array: 1, At: local, Value: value} }

func TestPrintedForms(t *testing.T) {
	x, h := in(dtype.F32), in(dtype.F16)
	i, u, b := in(dtype.I32), in(dtype.U32), in(dtype.Bool)
	half := func(x float64) s.Expr { return s.ConstF(dtype.F16, x) }
	shift := func(a, n s.Expr) s.Expr { return s.Shl(a, n) }
	long := x
	for k := range 12 {
		long = s.Mul(s.Add(long, f32(float64(k)+0.125)), s.LoadAt(0, dtype.F32, i32(int64(k%8))))
	}
	folder := t.TempDir()
	for _, c := range []struct {
		name string
		k    *loop.Kernel
		want string
	}{
		{"sums need no parentheses on the left", kernelOn(dtype.F32, out(s.Sub(s.Add(x, f32(1)), f32(2)))), "out[local_x] = in[local_x] + 1.0 - 2.0;"},
		{"sums need them on the right", kernelOn(dtype.F32, out(s.Sub(f32(2), s.Add(x, f32(1))))), "= 2.0 - (in[local_x] + 1.0);"},
		{"products of sums", kernelOn(dtype.F32, out(s.Mul(s.Add(x, f32(1)), s.Neg(x)))), "(t0 + 1.0) * -t0;"},
		{"a negative literal", kernelOn(dtype.F32, out(s.Sub(f32(-1.5), x))), "= -1.5 - in[local_x];"},
		{"a sum with a negative literal", kernelOn(dtype.F32, out(s.Sub(x, f32(-1.5)))), "in[local_x] + 1.5;"},
		{"a sum with the smallest integer", kernelOn(dtype.I32, out(s.Add(i, i32(math.MinInt32)))), "in[local_x] + i32(-2147483648);"},
		{"bits and sums", kernelOn(dtype.U32, out(s.And(s.Add(u, u32(1)), shift(u, u32(3))))), "(t0 + 1u) & (t0 << 3u);"},
		{"low bits of an index, bounded", kernelOn(dtype.I32, out(s.And(local, i32(3)))), "out[local_x] = i32(min(u32(local_x) & 3u, 3u));"},
		{"low bits of what may be negative", kernelOn(dtype.I32, out(s.And(i, i32(3)))), "in[local_x] & 3;"},
		{"shifts count in u32", kernelOn(dtype.I32, out(shift(i, i32(3)))), "in[local_x] << 3u;"},
		{"a minus for unsigned numbers", kernelOn(dtype.U32, out(s.Neg(u))), "0u - in[local_x];"},
		{"logic and comparisons", kernelOn(dtype.Bool, out(s.Or(s.And(b, s.Lt(local, i32(3))), s.Not(b)))), "u32((t0 & (local_x < 3)) | (!t0));"},
		{"a chain of one operator", kernelOn(dtype.Bool, out(s.And(s.And(s.Lt(local, i32(5)), b), s.Ge(local, i32(2))))), "u32((local_x < 5) & (in[local_x] != 0u) & (local_x >= 2));"},
		{"the smallest integer", kernelOn(dtype.I32, out(s.Min(i, i32(math.MinInt32)))), "i32(-2147483648)"},
		{"large words in hexadecimal", kernelOn(dtype.U32, out(s.Xor(u, u32(0x9E3779B9)))), "in[local_x] ^ 0x9e3779b9u;"},
		{"the largest float", kernelOn(dtype.F32, out(s.Add(x, f32(math.MaxFloat32)))), "3.4028234663852886e+38"},
		{"infinity", kernelOn(dtype.F32, out(s.Mul(x, f32(math.Inf(-1))))), "from_bits(0xff800000u)"},
		{"a multiply-add", kernelOn(dtype.F32, out(s.Fma(x, f32(2), f32(1)))), "1.0 + in[local_x] * 2.0;"},
		{"half precision", kernelOn(dtype.F16, out(s.Add(s.Mul(h, half(0.5)), half(-1)))), "in[local_x] * 0.5h - 1.0h;"},
		{"functions of half precision", kernelOn(dtype.F16, out(s.Tanh(h))), "tanh_f16(in[local_x]);"},
		{"a shared part is bound", kernelOn(dtype.F32, out(s.Mul(s.Floor(x), s.Floor(x)))), "let t0 = floor(in[local_x]);\n  out[local_x] = t0 * t0;"},
		{"a long part is bound", kernelOn(dtype.F32, out(long)), "let t0 = "},
		{"a step of a variable", kernelOn(dtype.F32,
			&loop.Var{Name: "v", Init: f32(0)}, &loop.Assign{Name: "v", Value: s.Fma(x, x, s.FreeVar("v", dtype.F32))},
		), "v += t0 * t0;"},
		{"a bound that changes is taken once", kernelOn(dtype.I32,
			&loop.Var{Name: "n", Init: i},
			&loop.For{Var: "k", Start: i32(0), End: iv("n"), Step: i32(2), Body: []loop.Stmt{&loop.Assign{Name: "n", Value: s.Add(iv("n"), i32(1))}}},
		), "let t0 = n;\n  for (var k = 0; k < t0; k += 2) {\n    n += 1;"},
		{"both branches", kernelOn(dtype.I32, &loop.If{
			Cond: s.Lt(local, i32(4)), Then: []loop.Stmt{out(i32(1))}, Else: []loop.Stmt{out(i32(2))},
		}), "if (local_x < 4) {\n    out[local_x] = 1;\n  } else {\n    out[local_x] = 2;\n  }"},
		{
			"reserved names", kernelOn(dtype.I32, &loop.Let{Name: "self", Value: i}, &loop.Let{Name: "max", Value: i}, out(s.Max(iv("self"), iv("max")))),
			"let self_ = in[local_x];\n  let max_ = in[local_x];\n  out[local_x] = max(self_, max_);",
		},
		{"a name of a vector's element, used again", func() *loop.Kernel {
			k := kernelOn(dtype.F32,
				&loop.If{Cond: s.Lt(local, i32(1)), Then: []loop.Stmt{
					&loop.LoadVec{Names: []string{"a", "b"}, Array: 2, At: local}, out(s.FreeVar("b", dtype.F32)),
				}},
				&loop.Let{Name: "b", Value: x}, out(s.FreeVar("b", dtype.F32)))
			k.Arrays = append(k.Arrays, loop.Array{Name: "pairs", DType: dtype.F32, Width: 2, Len: 8, Access: loop.Read})
			return k
		}(), "out[local_x] = v0.y;\n  }\n  let b = in[local_x];\n  out[local_x] = b;"},
		{"names like the printer's own", kernelOn(dtype.I32, &loop.Let{Name: "t0", Value: i}, out(s.Mul(s.PopCount(i), s.PopCount(i)))), "let t1 = countOneBits(in[local_x]);"},
		{"a bool of the run", func() *loop.Kernel {
			k := kernelOn(dtype.Bool, out(loop.RunScalar(0, dtype.Bool)))
			k.Scalars = []dtype.DType{dtype.Bool}
			return k
		}(), "let scalar0 = run.scalar0 != 0u;"},
		{"a barrier that storage waits for", kernelOn(dtype.I32, out(i), &loop.Barrier{}, out(s.LoadAt(1, dtype.I32, local))), "storageBarrier();\n  workgroupBarrier();"},
		{"a barrier behind what is only read, though bound for writing", func() *loop.Kernel {
			k := kernelOn(dtype.I32, &loop.Let{Name: "x", Value: i}, &loop.Barrier{}, out(iv("x")))
			k.Arrays[0].Access = loop.ReadWrite
			return k
		}(), "let x = in[local_x];\n  workgroupBarrier();"},
	} {
		got, err := wgsl.Print(c.k)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in\n%s", c.name, c.want, got)
		}
		file := filepath.Join(folder, strings.ReplaceAll(c.name, " ", "_")+".wgsl")
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := node(t, nil, "check/tint.mjs", folder); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTypesThatWGSLLacksAreRefused(t *testing.T) {
	for _, typ := range []dtype.DType{dtype.F64, dtype.I64, dtype.U64, dtype.I8, dtype.U16, dtype.BF16, dtype.C64} {
		var e *clike.UnsupportedError
		if _, err := wgsl.Print(kernelOn(typ, out(in(typ)))); !errors.As(err, &e) || !strings.Contains(err.Error(), typ.String()) {
			t.Errorf("%s: error %v", typ, err)
		}
	}
	var e *clike.UnsupportedError
	if _, err := wgsl.Print(kernelOn(dtype.F32, out(s.Convert(s.Sqrt(s.Convert(in(dtype.F32), dtype.F64)), dtype.F32)))); !errors.As(err, &e) {
		t.Errorf("an f64 on the way: error %v", err)
	}
	k := kernelOn(dtype.F32)
	k.Scalars = []dtype.DType{dtype.F16}
	if _, err := wgsl.Print(k); !errors.As(err, &e) {
		t.Errorf("a uniform f16: error %v", err)
	}
}

func TestBrokenKernelsAreNotPrinted(t *testing.T) {
	var e *loop.CheckError
	if _, err := wgsl.Print(kernelOn(dtype.F32, out(iv("nowhere")))); !errors.As(err, &e) {
		t.Errorf("error %v", err)
	}
}
