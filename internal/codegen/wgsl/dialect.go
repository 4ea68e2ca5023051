package wgsl

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// dialect describes WGSL.
var dialect = clike.Dialect{
	Name:      "wgsl",
	Expansion: scalar.Portable,
	Target:    dtype.WGSL,
	Reserved:  func(name string) bool { return reserved[name] },
	Type:      func(t dtype.DType) string { return typeNames[t] },
	Literal:   literal,
	Form:      form,
	Convert: func(_ *clike.Writer, x string, _, to dtype.DType) string {
		return typeNames[to] + "(" + x + ")"
	},
	Bitcast: func(_ *clike.Writer, x string, _, to dtype.DType) string {
		return "bitcast<" + typeNames[to] + ">(" + x + ")"
	},
	Let: func(_ dtype.DType, name, value string) string { return "let " + name + " = " + value + ";" },
	Var: func(_ dtype.DType, name, value string) string { return "var " + name + " = " + value + ";" },
	Vector: func(t dtype.DType, elems []string) string {
		return vectorType(t, len(elems)) + "(" + strings.Join(elems, ", ") + ")"
	},
	LetVector:     func(_ loop.Array, name, value string) string { return "let " + name + " = " + value + ";" },
	VectorMath:    true,
	UnsignedShift: true,
	OpaqueLoops:   true,
	// Tint clamps an index unless it can prove that it is in bounds. It infers the bound
	// from min but not from &. One min for the index replaces a clamp at every access:
	// matrix products ran at 40.1 TFLOP/s instead of 38.9 (matmul 4096, H200).
	LowBits: func(x string, mask int64) string {
		n := strconv.FormatInt(mask, 10) + "u"
		return "i32(min(u32(" + x + ") & " + n + ", " + n + "))"
	},
	AtomicLoad: func(t dtype.DType, element string) string {
		load := "atomicLoad(&" + element + ")"
		if t.IsFloat() {
			return "bitcast<f32>(" + load + ")"
		}
		return load
	},
	AddFloat: addFloat,
	Barrier: func(storage bool) []string {
		if storage {
			return []string{"storageBarrier();", "workgroupBarrier();"}
		}
		return []string{"workgroupBarrier();"}
	},
	Subgroup: func(_ *clike.Writer, op scalar.Op, _ dtype.DType) string { return subgroupCalls[op] },
	Shuffle: func(value string, xor int) string {
		return format.Sprintf("subgroupShuffleXor(%s, %du)", value, xor)
	},
	Function:  function,
	Fragments: fragments,
	Helpers: map[string]string{
		// A constant expression must not be infinite or NaN; a parameter is not
		// constant.
		"from_bits": "fn from_bits(bits: u32) -> f32 {\n  return bitcast<f32>(bits);\n}\n",
	},
}

// typeNames are the types of variables. A bool in memory is a u32.
var typeNames = map[dtype.DType]string{
	dtype.Bool: "bool", dtype.I32: "i32", dtype.U32: "u32", dtype.F32: "f32", dtype.F16: "f16",
}

// elementType returns the type of an element in memory.
func elementType(t dtype.DType) string {
	if t.IsBool() {
		return "u32"
	}
	return typeNames[t]
}

func vectorType(t dtype.DType, width int) string {
	return format.Sprintf("vec%d<%s>", width, elementType(t))
}

// forms are the forms of operations that are not operators. All others have been
// expanded.
var forms = map[scalar.Op]clike.Form{
	scalar.OpAbs:      {Call: "abs"},
	scalar.OpFloor:    {Call: "floor"},
	scalar.OpCeil:     {Call: "ceil"},
	scalar.OpTrunc:    {Call: "trunc"},
	scalar.OpSqrt:     {Call: "sqrt"},
	scalar.OpRsqrt:    {Call: "inverseSqrt"},
	scalar.OpPopCount: {Call: "countOneBits"},
	scalar.OpMin:      {Call: "min"},
	scalar.OpMax:      {Call: "max"},
	scalar.OpSelect:   {Text: "select($2, $1, $0)"},
}

// form returns the form of an operation that is not an operator. Tint and Naga
// compile != to a comparison that is false for NaN, but == to one whose negation is true.
func form(op scalar.Op, t dtype.DType) (clike.Form, bool) {
	if op == scalar.OpNe && t.IsFloat() {
		return clike.Form{Text: "!($0 == $1)"}, true
	}
	f, ok := forms[op]
	return f, ok
}

// addFloat is a compare-and-exchange loop on the bits of a float, because WGSL's atomics
// are of integers only. It is inline, since functions cannot take pointers to storage.
func addFloat(element, value, old string) []string {
	lines := []string{
		"{",
		"  let spot = &" + element + ";",
		"  var seen = atomicLoad(spot);",
		"  loop {",
		"    let swap = atomicCompareExchangeWeak(spot, seen, bitcast<u32>(bitcast<f32>(seen) + " + value + "));",
		"    if (swap.exchanged) { break; }",
		"    seen = swap.old_value;",
		"  }",
		"}",
	}
	if old == "" {
		return lines
	}
	last := len(lines) - 1
	return slices.Concat([]string{"var " + old + ": f32;"}, lines[:last], []string{"  " + old + " = bitcast<f32>(seen);", "}"})
}

var subgroupCalls = map[scalar.Op]string{
	scalar.OpAdd: "subgroupAdd", scalar.OpMax: "subgroupMax", scalar.OpMin: "subgroupMin",
}

func function(name string, params []scalar.Expr, result dtype.DType) string {
	list := make([]string, len(params))
	for i, p := range params {
		list[i] = p.Name + ": " + typeNames[p.Type]
	}
	return "fn " + name + "(" + strings.Join(list, ", ") + ") -> " + typeNames[result]
}

// literal returns a constant whose type does not depend on its context: 1.5, 3u, 0.5h.
func literal(w *clike.Writer, n scalar.Expr) string {
	v, _ := n.Value()
	switch n.Type {
	case dtype.U32:
		if v.I > math.MaxUint16 {
			return format.Sprintf("0x%xu", v.I) // probably a bit pattern
		}
		return strconv.FormatInt(v.I, 10) + "u"
	case dtype.I32:
		if v.I == math.MinInt32 {
			return "i32(" + strconv.FormatInt(v.I, 10) + ")"
		}
		return strconv.FormatInt(v.I, 10)
	case dtype.F16:
		if isFinite(v.F) {
			return clike.FloatLiteral(v.F, 32) + "h"
		}
		return "f16(" + fromBits(w, v.F) + ")"
	}
	if !isFinite(v.F) {
		return fromBits(w, v.F)
	}
	s := clike.FloatLiteral(v.F, 32)
	if x, _ := strconv.ParseFloat(s, 64); math.Abs(x) > math.MaxFloat32 || float64(float32(x)) != v.F {
		// A literal is parsed as an f64 first: it must not exceed the largest
		// f32, nor round to another f32.
		return clike.FloatLiteral(v.F, 64)
	}
	return s
}

func isFinite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }

func fromBits(w *clike.Writer, x float64) string {
	w.Need("from_bits")
	return format.Sprintf("from_bits(0x%08xu)", math.Float32bits(float32(x)))
}

// reserved holds the names that a kernel's variables cannot have: keywords and
// reserved words, and the functions and types of the generated code.
var reserved = clike.Words(`
	alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if
	let loop override requires return struct switch true var while
	NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become cast catch class
	co_await co_return co_yield coherent column_major common compile compile_fragment concept const_cast consteval
	constexpr constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit export
	extends extern external fallthrough filter final finally friend from fxgroup get goto groupshared highp impl
	implements import inline instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut
	mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null nullptr of
	operator package packoffset partition pass patch pixelfragment precise precision premerge priv protected pub public
	readonly ref regardless register reinterpret_cast require resource restrict self set shared sizeof smooth snorm
	static static_assert static_cast std subroutine super target template this thread_local throw trait try type
	typedef typeid typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where with
	writeonly yield
	array atomic bool f16 f32 i32 u32 vec2 vec3 vec4 bitcast
	abs ceil countOneBits floor inverseSqrt max min select sqrt trunc
	atomicAdd atomicCompareExchangeWeak atomicLoad atomicMax atomicMin atomicOr seen spot swap subgroupAdd subgroupMax subgroupMin subgroupShuffleXor
	storageBarrier workgroupBarrier
	main run Run from_bits local_id local_number group_id subgroup_number subgroup_lane subgroup_lanes repeat0 repeat1 repeat2 repeat3`)
