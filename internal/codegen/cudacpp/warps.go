package cudacpp

import (
	"fmt"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// warpAsync is [async] for devices without wgmma, from compute capability 8.0: the same
// cp.async, and mma.sync.m16n8, which is synchronous.
// See the PTX ISA, "Warp-level matrix instructions".
var warpAsync = clike.Async{
	Copy: async.Copy, Commit: async.Commit, Wait: async.Wait, Pack: async.Pack,
	Mma: warpMma,
}

// warpLeft and warpRight are the registers of a lane for the left operand, and for two
// adjacent blocks of 8 columns of the right one.
const warpLeft, warpRight = "left0, left1, left2, left3", "right0, right1, right2, right3"

// warpMma calls a function for each MMA.
func warpMma(w *clike.Writer, a loop.MmaShape, terms []clike.MmaTerm) []string {
	var lines []string
	for _, t := range terms {
		left := strings.Join(t.LeftRegisters, ", ")
		if t.LeftRegisters == nil {
			left = fmt.Sprintf("shared_piece(%s, %s)", t.ArrayA, t.PieceA)
		}
		w.Define("shared_piece", sharedPiece)
		name := warpMultiplyAdd(w, a, &t.MmaTerm)
		lines = append(lines, fmt.Sprintf("%s(%s, shared_piece(%s, %s),\n    %s);", name, left, t.ArrayB, t.PieceB, strings.Join(t.Sums, ", ")))
	}
	return lines
}

// sharedPiece returns the address of an operand in shared memory.
const sharedPiece = `static __device__ __forceinline__ unsigned shared_piece(const void *array, int piece) {
  return (unsigned)__cvta_generic_to_shared(array) + 16u * (unsigned)piece;
}
`

// loadTiles loads four 8 × 8 tiles with ldmatrix, transposed or not. Each lane passes the
// address of one row of 16 bytes, to which the swizzle of [loop.Tile] is applied: arrays
// begin at multiples of 1,024 bytes.
func loadTiles(w *clike.Writer, transposed bool) string {
	name, trans := "load_tiles", ""
	if transposed {
		name, trans = "load_transposed_tiles", ".trans"
	}
	w.Define(name, fmt.Sprintf(`static __device__ __forceinline__ void %s(unsigned at, unsigned &x0, unsigned &x1, unsigned &x2, unsigned &x3) {
  at ^= at >> 3 & 0x70u;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 {%%0, %%1, %%2, %%3}, [%%4];"
               : "=r"(x0), "=r"(x1), "=r"(x2), "=r"(x3) : "r"(at) : "memory");
}
`, name, trans))
	return name
}

// warpInstruction defines the function of an MMA of 16 rows and 8 columns by a warp, and
// returns its name.
func warpInstruction(w *clike.Writer, a loop.MmaShape) string {
	typ := ptxTypes[a.Operand]
	name := "mma_" + typ
	w.Define(name, fmt.Sprintf(`static __device__ __forceinline__ void %s(float &d0, float &d1, float &d2, float &d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k%d.row.col.f32.%s.%s.f32 {%%0, %%1, %%2, %%3}, {%%4, %%5, %%6, %%7}, {%%8, %%9}, {%%0, %%1, %%2, %%3};"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
`, name, a.K(), typ, typ))
	return name
}

// warpMultiplyAdd defines the function of an MMA shape computed by a warp, and
// returns its name. Rows and columns are assigned to lanes as in [loop.MmaShape].
func warpMultiplyAdd(w *clike.Writer, a loop.MmaShape, t *loop.MmaTerm) string {
	name := fmt.Sprintf("warps_%s_%d", ptxTypes[a.Operand], a.N)
	params, left := []string{"unsigned a"}, warpLeftTile(w, t)
	if t.LeftRegisters != nil {
		name += "_left"
		params, left = warpLeftRegisters(a)
	} else {
		name += fmt.Sprintf("_a%d", t.A.Depth)
	}
	name += fmt.Sprintf("_b%d", t.B.Depth)
	params = append(params, "unsigned b")
	for i := range a.Sums() {
		params = append(params, fmt.Sprintf("float &d%d", i))
	}
	lines := append([]string{"unsigned " + warpRight + ";", "const unsigned lane = threadIdx.x % 32u;"}, left...)
	if t.First {
		name += "_first"
		for i := range a.Sums() {
			lines = append(lines, fmt.Sprintf("d%d = 0.0f;", i))
		}
	}
	lines = append(lines, warpColumns(w, a, t)...)
	w.Define(name, fmt.Sprintf("static __device__ __forceinline__ void %s(%s) {\n  %s\n}\n", name, strings.Join(params, ", "), strings.Join(lines, "\n  ")))
	return name
}

// warpLeftTile loads the left operand: tiles of rows 0 and 8 for the first half of k,
// then for the second.
func warpLeftTile(w *clike.Writer, t *loop.MmaTerm) []string {
	if t.LeftRegisters != nil {
		return nil
	}
	at := "a + (threadIdx.x / 32u % 4u * 16u + lane % 16u) * 128u + lane / 16u * 16u"
	if t.A.Depth > 0 {
		at = "a + (lane / 16u * 8u + lane % 8u) * 128u + threadIdx.x / 32u % 4u * 32u + lane / 8u % 2u * 16u"
	}
	return []string{"unsigned " + warpLeft + ";", fmt.Sprintf("%s(%s, %s);", loadTiles(w, t.A.Depth > 0), at, warpLeft)}
}

// warpLeftRegisters takes the left operand from registers.
func warpLeftRegisters(a loop.MmaShape) (params, lines []string) {
	for i := range 4 {
		if a.LeftType() == dtype.F32 {
			params = append(params, fmt.Sprintf("float a%d", i))
			lines = append(lines, fmt.Sprintf("const unsigned left%d = __float_as_uint(a%d);", i, i))
		} else {
			params = append(params, fmt.Sprintf("unsigned left%d", i))
		}
	}
	return params, lines
}

// warpColumns loads 16 columns of the right operand at a time, as tiles of columns 0 for
// both halves of k and then of columns 8, and multiplies them. If only 8 columns remain,
// the second pair of tiles is not used.
func warpColumns(w *clike.Writer, a loop.MmaShape, t *loop.MmaTerm) []string {
	instruction, load := warpInstruction(w, a), loadTiles(w, t.B.Depth > 0)
	at := "b + (lane / 16u * 8u + lane % 8u) * 128u + lane / 8u % 2u * 16u"
	if t.B.Depth > 0 {
		at = "b + lane % 16u * 128u + lane / 16u * 16u"
	}
	lines := []string{"const unsigned at = " + at + ";"}
	for column := 0; column < a.N; column += 16 {
		from := column * 128
		if t.B.Depth > 0 {
			from = column/64*t.B.Depth*128 + column%64*2
		}
		if column+8 == a.N { // the upper half of the threads would read beyond the operand
			lines = append(lines, fmt.Sprintf("%s(lane < 16u ? at + %du : b, %s);", load, from, warpRight))
		} else {
			lines = append(lines, fmt.Sprintf("%s(at + %du, %s);", load, from, warpRight))
		}
		for half := 0; half < 2 && column+8*half < a.N; half++ {
			first := column/2 + 4*half
			lines = append(lines, fmt.Sprintf("%s(d%d, d%d, d%d, d%d, %s, right%d, right%d);",
				instruction, first, first+1, first+2, first+3, warpLeft, 2*half, 2*half+1))
		}
	}
	return lines
}
