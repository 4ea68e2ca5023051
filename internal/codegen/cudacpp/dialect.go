package cudacpp

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// dialect describes CUDA C++.
var dialect = clike.Dialect{
	Name:      "cuda",
	Expansion: scalar.Accurate,
	Target:    dtype.CUDA,
	LazyLogic: true,

	UndefinedOverflow: true,

	Reserved: func(name string) bool { return reserved[name] },
	Type:     func(t dtype.DType) string { return typeNames[t] },
	Literal:  literal,
	Form:     form,
	Convert:  convert,
	Bitcast: func(w *clike.Writer, x string, _, to dtype.DType) string {
		w.Need("as_bits")
		return "as_bits<" + typeNames[to] + ">(" + x + ")"
	},
	Let: func(t dtype.DType, name, value string) string {
		return "const " + typeNames[t] + " " + name + " = " + value + ";"
	},
	Var: func(t dtype.DType, name, value string) string {
		return typeNames[t] + " " + name + " = " + value + ";"
	},
	Vector: func(t dtype.DType, elems []string) string {
		return fmt.Sprintf("make_%s%d(%s)", vectorNames[t], len(elems), strings.Join(elems, ", "))
	},
	LetVector: func(a loop.Array, name, value string) string {
		return "const " + memoryType(a) + " " + name + " = " + value + ";"
	},
	AtomicLoad: func(t dtype.DType, element string) string {
		return "*(volatile const " + typeNames[t] + " *)&" + element
	},
	AddFloat: func(element, value, old string) []string {
		call := "atomicAdd(&" + element + ", " + value + ");"
		if old != "" {
			call = "const float " + old + " = " + call
		}
		return []string{call}
	},
	Barrier: func(bool) []string { return []string{"__syncthreads();"} },
	Subgroup: func(w *clike.Writer, op scalar.Op, _ dtype.DType) string {
		name := "warp_" + op.String()
		w.Need(name)
		return name
	},
	Function: func(name string, params []scalar.Expr, result dtype.DType) string {
		list := make([]string, len(params))
		for i, p := range params {
			list[i] = typeNames[p.Type] + " " + p.Name
		}
		return "static __device__ " + typeNames[result] + " " + name + "(" + strings.Join(list, ", ") + ")"
	},
	Shuffle: shuffle,
	Async:   &async,
	Helpers: helpers,

	Native: func(op scalar.Op, t dtype.DType) bool {
		return t == dtype.F32 && (extremes[op] != "" || op == scalar.OpSigmoid)
	},
	PowerOfTwo: "power_of_two",
	Masked:     "masked_bits",
}

// typeNames are the types of variables. A bool in memory is an unsigned;
// floats of 8 and 16 bits are their bits everywhere.
var typeNames = map[dtype.DType]string{
	dtype.I8: "signed char", dtype.U8: "unsigned char", dtype.I16: "short", dtype.U16: "unsigned short",
	dtype.F8E4M3: "unsigned char", dtype.F8E5M2: "unsigned char", dtype.F16: "unsigned short", dtype.BF16: "unsigned short",
	dtype.Bool: "bool", dtype.I32: "int", dtype.U32: "unsigned", dtype.I64: "i64", dtype.U64: "u64",
	dtype.F32: "float", dtype.F64: "double",
}

// vectorNames are the prefixes of CUDA's vector types.
var vectorNames = map[dtype.DType]string{
	dtype.I8: "char", dtype.U8: "uchar", dtype.I16: "short", dtype.U16: "ushort",
	dtype.F8E4M3: "uchar", dtype.F8E5M2: "uchar", dtype.F16: "ushort", dtype.BF16: "ushort",
	dtype.Bool: "uint", dtype.I32: "int", dtype.U32: "uint", dtype.I64: "longlong", dtype.U64: "ulonglong",
	dtype.F32: "float", dtype.F64: "double",
}

// elementType returns the type of an element in memory.
func elementType(t dtype.DType) string {
	if t.IsBool() {
		return "unsigned"
	}
	return typeNames[t]
}

// memoryType returns the type of an array element in memory.
func memoryType(a loop.Array) string {
	if a.Width > 1 {
		return fmt.Sprintf("%s%d", vectorNames[a.DType], a.Width)
	}
	return elementType(a.DType)
}

var helpers = map[string]string{
	"as_bits": `template <class T, class S> static __device__ T as_bits(S from) {
  union { S from; T to; } u;
  u.from = from;
  return u.to;
}
`,
	"f16_to_f32": byInstruction("float f16_to_f32(unsigned short x)", "float", "530", `"cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)`,
		"y = as_bits<_Float16>(x);"),
	"f32_to_f16": byInstruction("unsigned short f32_to_f16(float x)", "unsigned short", "530", `"cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)`,
		"y = as_bits<unsigned short>(_Float16(x));"),
	"bf16_to_f32": `static __device__ float bf16_to_f32(unsigned short x) {
  return as_bits<float>(unsigned(x) << 16);
}
`,
	// Rounding a single number runs on the special function unit at 16 a cycle and
	// multiprocessor; rounding a pair runs at the full rate.
	"f32_to_bf16": byInstruction("unsigned short f32_to_bf16(float x)", "unsigned short", "800",
		`"{ .reg .b32 pair; cvt.rn.bf16x2.f32 pair, 0f00000000, %1; cvt.u16.u32 %0, pair; }" : "=h"(y) : "f"(x)`,
		"const unsigned b = as_bits<unsigned>(x);\n  y = x != x ? b >> 16 | 64u : b + 0x7fffu + (b >> 16 & 1u) >> 16;"),
	// The inverse is correctly rounded, like 1 / x, without the code for subnormal and
	// infinite inverses: x is from 1 to 2 here.
	"sigmoid_of": byInstruction("float inverse_of(float x)", "float", "530",
		`"{ .reg .f32 near, error; rcp.approx.ftz.f32 near, %1; fma.rn.f32 error, %1, near, 0fbf800000; neg.f32 error, error; fma.rn.f32 %0, near, error, near; }" : "=f"(y) : "f"(x)`,
		"y = 1.0f / x;") + `
static __device__ float sigmoid_of(float x) {
  const float t = expf(-fabsf(x));
  const float y = inverse_of(1.0f + t);
  return (x < 0.0f ? t * y : y);
}
`,
	"min_nan": extremeHelper("min", "<"),
	"max_nan": extremeHelper("max", ">"),
	// One instruction with a relative error up to 2⁻²² (PTX ISA, ex2); subnormal results are 0.
	"power_of_two": byInstruction("float power_of_two(float x)", "float", "530", `"ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)`,
		"y = powf(2.0f, x);"),
	// One instruction, whose constants stay in registers (PTX ISA, lop3: 0x6a is a & b ^ c).
	"masked_bits": byInstruction("unsigned masked_bits(unsigned x, unsigned mask, unsigned bits)", "unsigned", "530",
		`"lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(y) : "r"(x), "r"(mask), "r"(bits)`, "y = x & mask ^ bits;"),
	"dot4": byInstruction("int dot4(int a, int b, int c)", "int", "610", `"dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c)`,
		`y = c;
  for (int i = 0; i < 32; i += 8) {
    y += (signed char)(a >> i) * (signed char)(b >> i);
  }`),
	// The hardware saturates, and converts some NaN to 0 and others not.
	"to_whole": `template <class T, class S> static __device__ T to_whole(S x) {
  return x == x ? T(x) : T(0);
}
`,
	"warp_add": warpHelper("add", "x + y"),
	"warp_max": warpHelper("max", "x < y ? y : x"),
	"warp_min": warpHelper("min", "y < x ? y : x"),
}

// byInstruction returns a function that is one PTX instruction from an architecture on,
// and C++ code before it. Headers with such intrinsics are not available.
func byInstruction(head, result, architecture, instruction, otherwise string) string {
	return `static __device__ ` + head + ` {
  ` + result + ` y;
#if __CUDA_ARCH__ >= ` + architecture + `
  asm(` + instruction + `);
#else
  ` + otherwise + `
#endif
  return y;
}
`
}

func extremeHelper(name, better string) string {
	return byInstruction("float "+name+"_nan(float a, float b)", "float", "800", `"`+name+`.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)`,
		"y = a "+better+" b || a != a ? a : b;")
}

func warpHelper(name, combine string) string {
	return `template <class T> static __device__ T warp_` + name + `(T x) {
  for (int lanes = 16; lanes > 0; lanes >>= 1) {
    const T y = __shfl_xor_sync(0xffffffffu, x, lanes);
    x = ` + combine + `;
  }
  return x;
}
`
}

// mathNames are the C functions of float operations; those on f32 have the suffix f.
var mathNames = map[scalar.Op]string{
	scalar.OpAbs: "fabs", scalar.OpFloor: "floor", scalar.OpCeil: "ceil", scalar.OpRound: "rint", scalar.OpTrunc: "trunc",
	scalar.OpExp: "exp", scalar.OpExpm1: "expm1", scalar.OpLog: "log", scalar.OpLog1p: "log1p", scalar.OpPow: "pow",
	scalar.OpSqrt: "sqrt", scalar.OpRsqrt: "rsqrt", scalar.OpSin: "sin", scalar.OpCos: "cos", scalar.OpTan: "tan",
	scalar.OpAsin: "asin", scalar.OpAcos: "acos", scalar.OpAtan: "atan", scalar.OpAtan2: "atan2",
	scalar.OpSinh: "sinh", scalar.OpCosh: "cosh", scalar.OpTanh: "tanh", scalar.OpErf: "erf", scalar.OpErfc: "erfc",
	scalar.OpRem: "fmod",
}

// extremes are the helpers of f32 that propagate NaN.
var extremes = map[scalar.Op]string{scalar.OpMin: "min_nan", scalar.OpMax: "max_nan"}

// uncontracted is form with products that the compiler adds nothing to (CUDA Math API, __fmul_rn).
func uncontracted(op scalar.Op, t dtype.DType) (clike.Form, bool) {
	switch {
	case op == scalar.OpMul && t == dtype.F32:
		return clike.Form{Call: "__fmul_rn"}, true
	case op == scalar.OpMul && t == dtype.F64:
		return clike.Form{Call: "__dmul_rn"}, true
	}
	return form(op, t)
}

// form returns the form of operations that are not operators.
func form(op scalar.Op, t dtype.DType) (clike.Form, bool) {
	switch op {
	case scalar.OpSelect:
		return clike.Form{Text: "($0 ? $1 : $2)"}, true
	case scalar.OpIsNaN:
		return clike.Form{Call: "isnan"}, true
	case scalar.OpIsFinite:
		return clike.Form{Call: "isfinite"}, true
	}
	if name := extremes[op]; name != "" && t == dtype.F32 {
		return clike.Form{Call: name, Helper: name}, true
	}
	if op == scalar.OpSigmoid && t == dtype.F32 {
		return clike.Form{Call: "sigmoid_of", Helper: "sigmoid_of"}, true
	}
	if name := mathNames[op]; name != "" && t == dtype.F32 {
		return clike.Form{Call: name + "f"}, true
	} else if name != "" && t == dtype.F64 {
		return clike.Form{Call: name}, true
	}
	if !t.IsInteger() {
		return clike.Form{}, false
	}
	switch op {
	case scalar.OpMin:
		return clike.Form{Call: "min"}, true
	case scalar.OpMax:
		return clike.Form{Call: "max"}, true
	case scalar.OpAbs:
		return clike.Form{Call: map[bool]string{false: "abs", true: "llabs"}[t == dtype.I64]}, true
	case scalar.OpDot4:
		return clike.Form{Call: "dot4", Helper: "dot4"}, true
	case scalar.OpPopCount:
		call := "__popc"
		if t.Size() == 8 {
			call = "__popcll"
		}
		return clike.Form{Text: typeNames[t] + "(" + call + "($0))"}, true
	}
	return clike.Form{}, false
}

func convert(w *clike.Writer, x string, from, to dtype.DType) string {
	if isHalf(from) || isHalf(to) { // f32 is the other one
		name := from.String() + "_to_" + to.String()
		w.Need("as_bits")
		w.Need(name)
		return name + "(" + x + ")"
	}
	if from.IsFloat() && to.IsInteger() {
		w.Need("to_whole")
		return "to_whole<" + typeNames[to] + ">(" + x + ")"
	}
	if name := typeNames[to]; !strings.Contains(name, " ") {
		return name + "(" + x + ")"
	}
	return "(" + typeNames[to] + ")(" + x + ")" // a type name of two words has no functional cast
}

func isHalf(t dtype.DType) bool { return t == dtype.F16 || t == dtype.BF16 }

// literal returns a constant with the suffix of its type.
func literal(w *clike.Writer, n scalar.Expr) string {
	v, _ := n.Value()
	if size := n.Type.Size(); size < 4 && n.Type.IsFloat() {
		return fmt.Sprintf("(%s)0x%0*x", typeNames[n.Type], 2*size, n.Type.FloatBits(v.F))
	}
	switch n.Type {
	case dtype.I8, dtype.I16, dtype.U8, dtype.U16:
		return fmt.Sprintf("(%s)%d", typeNames[n.Type], v.I)
	case dtype.U32:
		return strconv.FormatInt(v.I, 10) + "u"
	case dtype.U64:
		return strconv.FormatUint(uint64(v.I), 10) + "ull"
	case dtype.I32:
		if v.I == math.MinInt32 {
			return "(-2147483647 - 1)" // the minus is no part of a literal
		}
		return strconv.FormatInt(v.I, 10)
	case dtype.I64:
		if v.I == math.MinInt64 {
			return "(-9223372036854775807ll - 1)"
		}
		return strconv.FormatInt(v.I, 10) + "ll"
	}
	finite := !math.IsInf(v.F, 0) && !math.IsNaN(v.F)
	switch {
	case n.Type == dtype.F32 && finite:
		return clike.FloatLiteral(v.F, 32) + "f"
	case n.Type == dtype.F32:
		w.Need("as_bits")
		return fmt.Sprintf("as_bits<float>(0x%08xu)", math.Float32bits(float32(v.F)))
	case finite:
		return clike.FloatLiteral(v.F, 64)
	}
	w.Need("as_bits")
	return fmt.Sprintf("as_bits<double>(0x%016xull)", math.Float64bits(v.F))
}

// reserved holds the names that a kernel's variables cannot have: keywords, and
// the functions and types of the generated code.
var reserved = func() map[string]bool {
	out := clike.Words(clike.KeywordsOfCPP, `
		threadIdx blockIdx blockDim gridDim warpSize i64 u64 run Run repeat0 repeat1 repeat2 repeat3 repeat4 repeat5 repeat6
		abs llabs min max isnan isfinite atomicAdd atomicMax atomicMin atomicOr as_bits to_whole warp_add warp_max
		warp_min f16_to_f32 f32_to_f16 bf16_to_f32 f32_to_bf16
		TensorMap box0 box1 copy_box_2 copy_box_3 copy_box_4 copy_box_5 copy_pixels_3 copy_pixels_4 copy_pixels_5 arrive_at await_phase begin_barrier
		tile_of shared_piece load_tiles load_transposed_tiles masked_bits dynamic_shared pack_f16 pack_bf16 power_of_two min_nan max_nan sigmoid_of inverse_of copy_async_4 copy_async_8 copy_async_16`)
	for _, name := range mathNames {
		out[name], out[name+"f"] = true, true
	}
	for _, name := range vectorNames {
		for _, width := range []string{"2", "4"} {
			out[name+width], out["make_"+name+width] = true, true
		}
	}
	return out
}()
