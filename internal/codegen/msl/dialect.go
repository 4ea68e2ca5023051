package msl

import (
	"fmt"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// dialects are the dialects of MSL, by whether they have the type bfloat.
var dialects = map[bool]*clike.Dialect{false: newDialect(types{}), true: newDialect(types{bfloat: true})}

// newDialect returns the dialect with the given type names.
func newDialect(names types) *clike.Dialect {
	return &clike.Dialect{
		Name:      dialectName,
		Expansion: scalar.Portable,
		Target:    dtype.MSL,
		LazyLogic: true,

		UndefinedOverflow: true,

		Reserved: func(name string) bool { return reserved[name] },
		Type:     func(t dtype.DType) string { return names.of(t) },
		Literal:  names.literal,
		Form:     form,
		Convert:  names.convert,
		Bitcast: func(_ *clike.Writer, x string, _, to dtype.DType) string {
			return "as_type<" + names.of(to) + ">(" + x + ")"
		},
		Let: func(t dtype.DType, name, value string) string {
			return "const " + names.of(t) + " " + name + " = " + value + ";"
		},
		Var: func(t dtype.DType, name, value string) string {
			return names.of(t) + " " + name + " = " + value + ";"
		},
		Vector: func(t dtype.DType, elems []string) string {
			return fmt.Sprintf("%s%d(%s)", names.element(t), len(elems), strings.Join(elems, ", "))
		},
		LetVector: func(a loop.Array, name, value string) string {
			return "const " + names.memory(a) + " " + name + " = " + value + ";"
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
				list[i] = names.of(p.Type) + " " + p.Name
			}
			return "static " + names.of(result) + " " + name + "(" + strings.Join(list, ", ") + ")"
		},
		Fragments: fragmentsOf(names),
		Helpers:   helpers,
	}
}

// dialectName is the name of MSL in errors.
const dialectName = "msl"

var helpers = map[string]string{
	"bf16_to_f32": `static float bf16_to_f32(ushort x) {
  return as_type<float>(uint(x) << 16);
}
`,
	// Round to nearest even. A NaN stays one, even if its payload is all in the lower
	// half.
	"f32_to_bf16": `static ushort f32_to_bf16(float x) {
  const uint bits = as_type<uint>(x);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return ushort(is_nan ? (bits >> 16) | 64u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
`,
}

// floatForms are the float functions that scalar.Expand does not expand.
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

// form returns the form of operations that are not operators.
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

// fragmentsOf returns the fragments of the dialect: SIMD-group matrices, since MSL 2.3
// (Metal Shading Language Specification, "SIMD-group Matrix Functions"). The layout of
// their elements is opaque. Those of bfloat need MSL 3.1.
func fragmentsOf(names types) *clike.Fragments {
	return &clike.Fragments{
		Zero: func(name string) string {
			return "simdgroup_float8x8 " + name + " = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);"
		},
		Load: func(name string, t dtype.DType, array, at string, load *loop.FragmentLoad) []string {
			rows := ""
			if load.Transposed {
				rows = ", ulong2(0, 0), true"
			}
			return []string{
				fmt.Sprintf("simdgroup_%s8x8 %s;", names.of(t), name),
				fmt.Sprintf("simdgroup_load(%s, &%s[%s], %d%s);", name, array, at, load.Stride, rows),
			}
		},
		MulAdd: func(sum, a, b string) string {
			return fmt.Sprintf("simdgroup_multiply_accumulate(%s, %s, %s, %s);", sum, a, b, sum)
		},
		Store: func(name, array, at string, stride int) string {
			return fmt.Sprintf("simdgroup_store(%s, &%s[%s], %d);", name, array, at, stride)
		},
	}
}
