package loop

import (
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// WarpGroup is the number of threads that compute an [MmaShape] together; the first one's index
// is a multiple of it.
const WarpGroup = 128

// MmaShape is the shape of a hardware multiply-add D += A·B: D is 64×N in f32, in the registers
// of a warp group, A is 64×K and B is K×N. It is PTX's wgmma.mma_async (PTX ISA,
// "Asynchronous Warpgroup Level Matrix Instructions"), whose layouts the methods return. Each
// warp holds 16 rows, in the register layout of mma.sync.m16n8 ("Matrix Fragments for mma"),
// so devices without warp groups compute it by N/8 of these per warp
// ([Caps.MmaByWarps]).
type MmaShape struct {
	// Operand is the type of A and B: F16, BF16, or F32 without the last 13 bits of the fraction
	// (TF32).
	Operand dtype.DType
	// N is a multiple of 8 up to 256.
	N int
}

// MmaRows is the number of rows of D.
const MmaRows = 64

// String returns "bf16 64x256x16".
func (a MmaShape) String() string {
	return format.Sprintf("%s %dx%dx%d", a.Operand, MmaRows, a.N, a.K())
}

// K returns the depth of the product: 32 bytes of operands.
func (a MmaShape) K() int { return 32 / a.Operand.Size() }

// Sums returns the number of elements, and registers, of D per thread.
func (a MmaShape) Sums() int { return a.N / 2 }

// leftRegisters is the number of 32-bit registers of A per thread.
const leftRegisters = 4

// Origin returns the origin of the fragments of a thread, given by its index in the warp
// group; [MmaShape.Sum] and [MmaShape.Left] are relative to it.
func (MmaShape) Origin(thread scalar.Expr) (row, column scalar.Expr) {
	warp, lane := scalar.FloorDiv(thread, Int(32)), scalar.Mod(thread, Int(32))
	return scalar.Add(scalar.Mul(warp, Int(16)), scalar.FloorDiv(lane, Int(4))), scalar.Mod(lane, Int(4))
}

// Sum returns the element of D that register i of a thread holds: with the thread's origin
// (r, c), the one at (r + row, 2c + column).
func (MmaShape) Sum(i int) (row, column int) { return i / 2 % 2 * 8, i/4*8 + i%2 }

// LeftType returns the type of the variables of a fragment of A: f32, or u32 for pairs of
// 16-bit elements.
func (a MmaShape) LeftType() dtype.DType {
	if a.Operand == dtype.F32 {
		return dtype.F32
	}
	return dtype.U32
}

// Left returns the element of A that register i of a thread holds: with the thread's origin
// (r, c), the one at (r + row, c + k) for f32. A register of 16-bit elements holds two, the
// one at (r + row, 2c + k) in the lower half and its neighbour along k in the upper.
func (a MmaShape) Left(i int) (row, k int) {
	if a.Operand == dtype.F32 {
		return i % 2 * 8, i / 2 * 4
	}
	return i % 2 * 8, i / 2 * 8
}

// Tile is an operand of an [MmaShape] in shared memory: rows of 128 bytes, swizzled in chunks of
// 16 bytes so that neither the stores of a warp nor the hardware's loads have bank conflicts.
// Chunk p of row r is at p xor r%8 (PTX's 128-byte swizzle).
type Tile struct {
	Array int
	// At is the index of the first element, a multiple of 1,024 bytes.
	At scalar.Expr
	// Depth is 0 if a row holds consecutive k for one position of the free axis (rows of
	// A, columns of B): the operand is K-major. Otherwise a row holds consecutive
	// positions of the free axis for one of Depth positions along k, and such panels
	// follow each other. Operands of f32 have Depth 0.
	Depth int
	// K is the operand's offset along k, a multiple of the atom's K.
	K int
}

// RowElements returns the number of elements of type t in a row of a [Tile].
func RowElements(t dtype.DType) int { return 128 / t.Size() }

// ChunkElements returns the number of elements of type t in a swizzle chunk of a [Tile].
func ChunkElements(t dtype.DType) int { return 16 / t.Size() }

// TileOffset returns the offset in a tile of the element at a position of the free axis and of
// k, for elements of type t and the given [Tile.Depth].
func TileOffset(t dtype.DType, depth int, free, k scalar.Expr) scalar.Expr {
	row, piece := Int(RowElements(t)), Int(ChunkElements(t))
	swizzle := func(r, at scalar.Expr) scalar.Expr { // the offset of element at in row r
		chunk := scalar.Xor(scalar.FloorDiv(at, piece), scalar.Mod(r, Int(8)))
		return scalar.Add(scalar.Mul(chunk, piece), scalar.Mod(at, piece))
	}
	if depth == 0 {
		return scalar.Add(scalar.Mul(free, row), swizzle(free, k))
	}
	panel := scalar.Mul(scalar.FloorDiv(free, row), Int(depth*RowElements(t)))
	return scalar.Add(panel, scalar.Add(scalar.Mul(k, row), swizzle(k, scalar.Mod(free, row))))
}

// Element is [TileOffset] for constant positions in the operand, with k relative to Tile.K.
func (t Tile) Element(d dtype.DType, free, k int) int {
	row, piece := RowElements(d), ChunkElements(d)
	k += t.K
	if t.Depth == 0 {
		return free*row + (k/piece^free%8)*piece + k%piece
	}
	return free/row*t.Depth*row + k*row + (free%row/piece^k%8)*piece + free%piece
}
