package msl

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel/clike"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// dialect is what MSL does its own way.
var dialect = clike.Dialect{
	Name:      "msl",
	Level:     scalar.Portable,
	Target:    dtype.MSL,
	LazyLogic: true,

	UndefinedOverflow: true,

	Reserved: func(name string) bool { return reserved[name] },
	Type:     func(t dtype.DType) string { return typeNames[t] },
	Literal:  literal,
	Form:     form,
	Convert:  convert,
	Bitcast: func(_ *clike.Writer, x string, _, to dtype.DType) string {
		return "as_type<" + typeNames[to] + ">(" + x + ")"
	},
	Let: func(t dtype.DType, name, value string) string {
		return "const " + typeNames[t] + " " + name + " = " + value + ";"
	},
	Var: func(t dtype.DType, name, value string) string {
		return typeNames[t] + " " + name + " = " + value + ";"
	},
	Vector: func(t dtype.DType, elems []string) string {
		return fmt.Sprintf("%s%d(%s)", elementType(t), len(elems), strings.Join(elems, ", "))
	},
	LetVector: func(a loop.Array, name, value string) string {
		return "const " + memoryType(a) + " " + name + " = " + value + ";"
	},
	AtomicLoad: func(_ dtype.DType, element string) string {
		return "atomic_load_explicit(&" + element + ", memory_order_relaxed)"
	},
	Atomic: func(op scalar.Op, element, value string) string {
		return fmt.Sprintf("atomic_fetch_%s_explicit(&%s, %s, memory_order_relaxed)", op, element, value)
	},
	Barrier: func(storage bool) []string {
		if storage {
			return []string{"threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);"}
		}
		return []string{"threadgroup_barrier(mem_flags::mem_threadgroup);"}
	},
	Subgroup: func(_ *clike.Writer, op scalar.Op, _ dtype.DType) string { return subgroupCalls[op] },
	Shuffle: func(value string, xor int) string {
		return fmt.Sprintf("simd_shuffle_xor(%s, ushort(%d))", value, xor)
	},
	Function: func(name string, params []scalar.Expr, result dtype.DType) string {
		list := make([]string, len(params))
		for i, p := range params {
			list[i] = typeNames[p.Type] + " " + p.Name
		}
		return "static " + typeNames[result] + " " + name + "(" + strings.Join(list, ", ") + ")"
	},
	Fragments: &fragments,
	Helpers:   helpers,
}

// typeNames are the types of variables. A bool lies in memory as a uint; bf16, whose
// own type is only in MSL 3.1, and floats of 8 bits are their bits everywhere.
var typeNames = map[dtype.DType]string{
	dtype.I8: "char", dtype.U8: "uchar", dtype.I16: "short", dtype.U16: "ushort",
	dtype.F8E4M3: "uchar", dtype.F8E5M2: "uchar", dtype.F16: "half", dtype.BF16: "ushort",
	dtype.Bool: "bool", dtype.I32: "int", dtype.U32: "uint", dtype.I64: "long", dtype.U64: "ulong",
	dtype.F32: "float",
}

// elementType returns the type of an element in memory.
func elementType(t dtype.DType) string {
	if t.IsBool() {
		return "uint"
	}
	return typeNames[t]
}

// memoryType returns the type of what one index of an array holds.
func memoryType(a loop.Array) string {
	switch elem := elementType(a.DType); {
	case a.Access == loop.Atomic:
		return "atomic_" + elem
	case a.Width > 1:
		return elem + strconv.Itoa(a.Width)
	default:
		return elem
	}
}

var helpers = map[string]string{
	"bf16_to_f32": `static float bf16_to_f32(ushort x) {
  return as_type<float>(uint(x) << 16);
}
`,
	// To the nearest, to even where two are: a carry into the upper half. A NaN stays
	// one, though its bits may all be in the lower half.
	"f32_to_bf16": `static ushort f32_to_bf16(float x) {
  const uint bits = as_type<uint>(x);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return ushort(is_nan ? (bits >> 16) | 64u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
`,
}

// floatForms are the functions of floats that are left of scalar.Expand.
var floatForms = map[scalar.Op]string{
	scalar.OpAbs: "fabs", scalar.OpFloor: "floor", scalar.OpCeil: "ceil", scalar.OpTrunc: "trunc",
	scalar.OpSqrt: "sqrt", scalar.OpRsqrt: "rsqrt",
}

var integerForms = map[scalar.Op]string{
	scalar.OpAbs: "abs", scalar.OpMin: "min", scalar.OpMax: "max", scalar.OpPopCount: "popcount",
}

var subgroupCalls = map[scalar.Op]string{
	scalar.OpAdd: "simd_sum", scalar.OpMax: "simd_max", scalar.OpMin: "simd_min",
}

// form returns how operations are written that are not operators.
func form(op scalar.Op, t dtype.DType) (clike.Form, bool) {
	if op == scalar.OpSelect {
		return clike.Form{Text: "($0 ? $1 : $2)"}, true
	}
	if t.IsInteger() {
		name := integerForms[op]
		return clike.Form{Call: name}, name != ""
	}
	name := floatForms[op]
	if t == dtype.F32 && (op == scalar.OpSqrt || op == scalar.OpRsqrt) {
		name = "precise::" + name // whatever the options of the compiler
	}
	return clike.Form{Call: name}, name != ""
}

func convert(w *clike.Writer, x string, from, to dtype.DType) string {
	if from == dtype.BF16 || to == dtype.BF16 { // f32 is the other one
		name := from.String() + "_to_" + to.String()
		w.Need(name)
		return name + "(" + x + ")"
	}
	return typeNames[to] + "(" + x + ")"
}

// literal returns a constant that has its type by itself.
func literal(_ *clike.Writer, n scalar.Expr) string {
	v, _ := n.Value()
	name := typeNames[n.Type]
	switch n.Type {
	case dtype.I32:
		if v.I == math.MinInt32 {
			return "(-2147483647 - 1)" // the minus is no part of a literal
		}
		return strconv.FormatInt(v.I, 10)
	case dtype.U32:
		return strconv.FormatInt(v.I, 10) + "u"
	case dtype.I64:
		if v.I == math.MinInt64 {
			return "(-9223372036854775807l - 1)"
		}
		return strconv.FormatInt(v.I, 10) + "l"
	case dtype.U64:
		return strconv.FormatUint(uint64(v.I), 10) + "ul"
	}
	isFinite := !math.IsInf(v.F, 0) && !math.IsNaN(v.F)
	switch {
	case n.Type.IsInteger():
		return fmt.Sprintf("%s(%d)", name, v.I)
	case n.Type == dtype.F32 && isFinite:
		return clike.FloatLiteral(v.F, 32) + "f"
	case n.Type == dtype.F32:
		return fmt.Sprintf("as_type<float>(0x%08xu)", math.Float32bits(float32(v.F)))
	case n.Type == dtype.F16 && isFinite:
		return "half(" + clike.FloatLiteral(v.F, 32) + "f)"
	case n.Type == dtype.F16:
		return fmt.Sprintf("as_type<half>(ushort(0x%04x))", n.Type.FloatBits(v.F))
	}
	return fmt.Sprintf("%s(0x%0*x)", name, 2*n.Type.Size(), n.Type.FloatBits(v.F))
}
