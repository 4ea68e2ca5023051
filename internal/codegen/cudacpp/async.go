package cudacpp

import (
	"fmt"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// async is cp.async and, on sm_90a, wgmma. See the PTX ISA, "Data Movement and
// Conversion Instructions: Asynchronous copy" and "Asynchronous Warpgroup Level
// Matrix Instructions".
var async = clike.Async{
	Copy:   copyAsync,
	Commit: `asm volatile("cp.async.commit_group;" ::: "memory");`,
	Fence:  `asm volatile("fence.proxy.async.shared::cta;" ::: "memory");`,
	Wait: func(pending int) string {
		return fmt.Sprintf(`asm volatile("cp.async.wait_group %d;" ::: "memory");`, pending)
	},
	Mma:     mma,
	MmaWait: mmaWait,
	Pack:    pack,
	Roles:   &roles,
}

// shuffle is the value of another lane of the warp.
func shuffle(value string, xor int) string {
	return fmt.Sprintf("__shfl_xor_sync(0xffffffffu, %s, %d)", value, xor)
}

// copyAsync bypasses L1 for copies of 16 bytes: no other warp of the multiprocessor
// reads them.
func copyAsync(w *clike.Writer, bytes int, to, from, valid string) string {
	cache := "ca"
	if bytes == 16 {
		cache = "cg"
	}
	name := fmt.Sprintf("copy_async_%d", bytes)
	w.Define(name, fmt.Sprintf(`static __device__ __forceinline__ void %s(void *to, const void *from, bool valid = true) {
  asm volatile("cp.async.%s.shared.global [%%0], [%%1], %d, %%2;"
               :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(valid ? %d : 0) : "memory");
}
`, name, cache, bytes, bytes))
	if valid != "" {
		valid = ", " + valid
	}
	return name + "(" + to + ", " + from + valid + ");"
}

// ptxTypes are the names of operand types in MMA instructions.
var ptxTypes = map[dtype.DType]string{dtype.F16: "f16", dtype.BF16: "bf16", dtype.F32: "tf32"}

// mma fences the registers, issues the wgmma instructions and commits them as a group.
func mma(w *clike.Writer, a loop.MmaShape, terms []clike.MmaTerm) []string {
	lines := []string{`asm volatile("wgmma.fence.sync.aligned;" ::: "memory");`}
	for _, t := range terms {
		w.Define("tile_of", tileOf)
		left := strings.Join(t.LeftRegisters, ", ")
		if t.LeftRegisters == nil {
			left = tile(t.A, t.ArrayA, t.PieceA)
		}
		name := multiplyAdd(w, a, &t.MmaTerm)
		lines = append(lines, fmt.Sprintf("%s(%s, %s,\n    %s);", name, left, tile(t.B, t.ArrayB, t.PieceB), strings.Join(t.Sums, ", ")))
	}
	return append(lines, `asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");`)
}

// tileOf builds the descriptor of an operand in shared memory: its address, the stride between
// panels, that between groups of 8 rows of 128 bytes, and the 128-byte swizzle. Addresses are below
// 2¹⁸, so the descriptor is a sum; all its terms except piece are loop-invariant.
const tileOf = `static __device__ __forceinline__ unsigned long long tile_of(const void *array, int piece, int panel) {
  const unsigned low = ((unsigned)__cvta_generic_to_shared(array) >> 4) + ((unsigned)panel >> 4 << 16) + (unsigned)piece;
  return (unsigned long long)low | 64ull << 32 | 1ull << 62;
}
`

func tile(t loop.Tile, array, piece string) string {
	panel := 16 // ignored by the hardware without panels
	if t.Depth > 0 {
		panel = 128 * t.Depth
	}
	return fmt.Sprintf("tile_of(%s, %s, %d)", array, piece, panel)
}

// multiplyAdd defines the function of a wgmma instruction and returns its name.
func multiplyAdd(w *clike.Writer, a loop.MmaShape, t *loop.MmaTerm) string {
	typ, sums := ptxTypes[a.Operand], a.Sums()
	name := fmt.Sprintf("wgmma_%s_%d", typ, a.N)
	in := func(i int) string { return fmt.Sprintf("%%%d", sums+i) }
	params, inputs, left, next := []string{"unsigned long long a"}, []string{`"l"(a)`}, in(0), 1
	if t.LeftRegisters != nil {
		name += "_left"
		params, inputs, left, next = leftOperand(a, in)
	}
	params, inputs = append(params, "unsigned long long b"), append(inputs, `"l"(b)`)
	transposed := ""
	if a.Operand != dtype.F32 {
		transposed = fmt.Sprintf(", %d, %d", bit(t.A.Depth > 0), bit(t.B.Depth > 0))
		if t.LeftRegisters != nil { // registers cannot be transposed
			transposed = fmt.Sprintf(", %d", bit(t.B.Depth > 0))
		}
		name += fmt.Sprintf("_%d%d", bit(t.A.Depth > 0), bit(t.B.Depth > 0))
	}
	access, add := "+", 1
	if t.First {
		access, add = "=", 0
		name += "_first"
	}
	var registers, outputs []string
	for i := range sums {
		registers, outputs = append(registers, fmt.Sprintf("%%%d", i)), append(outputs, fmt.Sprintf(`"%sf"(d%d)`, access, i))
		params = append(params, fmt.Sprintf("float &d%d", i))
	}
	instruction := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s", a.N, a.K(), typ, typ)
	w.Define(name, fmt.Sprintf(`static __device__ __forceinline__ void %s(%s) {
  asm volatile("%s {%s}, %s, %s, %d, 1, 1%s;"
               : %s
               : %s);
}
`, name, strings.Join(params, ", "), instruction, strings.Join(registers, ", "), left, in(next), add, transposed,
		strings.Join(outputs, ", "), strings.Join(inputs, ", ")))
	return name
}

// leftOperand returns the parameters and inputs of A in registers.
func leftOperand(a loop.MmaShape, in func(int) string) (params, inputs []string, text string, next int) {
	var places []string
	for i := range 4 {
		if a.LeftType() == dtype.F32 {
			params = append(params, fmt.Sprintf("float a%d", i))
			inputs = append(inputs, fmt.Sprintf(`"r"(__float_as_uint(a%d))`, i))
		} else {
			params, inputs = append(params, fmt.Sprintf("unsigned a%d", i)), append(inputs, fmt.Sprintf(`"r"(a%d)`, i))
		}
		places = append(places, in(i))
	}
	return params, inputs, "{" + strings.Join(places, ", ") + "}", 4
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// mmaWait lists the variables that are used after it as outputs, so that the compiler
// does not move their uses before it.
func mmaWait(pending int, list []clike.Variable) string {
	operands := make([]string, len(list))
	for i, v := range list {
		operands[i] = map[dtype.DType]string{dtype.F32: `"+f"(`, dtype.U32: `"+r"(`}[v.Type] + v.Name + ")"
	}
	return fmt.Sprintf(`asm volatile("wgmma.wait_group.sync.aligned %d;" : %s :: "memory");`, pending, strings.Join(operands, ", "))
}

// pack rounds two floats by one instruction, whose first operand is the upper half.
func pack(w *clike.Writer, t dtype.DType, to, low, high string) string {
	name := "pack_" + t.String()
	w.Define(name, fmt.Sprintf(`static __device__ __forceinline__ unsigned %s(float low, float high) {
  unsigned y;
  asm("cvt.rn.%sx2.f32 %%0, %%1, %%2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
`, name, t))
	return fmt.Sprintf("%s = %s(%s, %s);", to, name, low, high)
}
