package loop

import (
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// WarpGroup is how many neighbouring threads, from a multiple of as many on,
// compute an [Atom] together.
const WarpGroup = 128

// Atom is a multiply-add D += A·B that the hardware does at once: D of 64×N in
// f32, in the registers of a warp group, A of 64×K and B of K×N. It is PTX's
// wgmma.mma_async (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions"),
// whose layouts the methods tell. A warp has 16 of the rows, in the registers that
// mma.sync.m16n8 has them in ("Matrix Fragments for mma"), so that devices without
// warp groups compute an atom by N/8 of these in each warp ([Caps.MmaByWarps]).
type Atom struct {
	// Operand is the type of A and B: F16, BF16, or F32, whose last 13 bits of
	// fraction do not count (TF32).
	Operand dtype.DType
	// N is a multiple of 8 up to 256.
	N int
}

// AtomRows is the number of rows of D.
const AtomRows = 64

// String returns "bf16 64x256x16".
func (a Atom) String() string { return format.Sprintf("%s %dx%dx%d", a.Operand, AtomRows, a.N, a.K()) }

// K is the length of the sums: 32 bytes of operands.
func (a Atom) K() int { return 32 / a.Operand.Size() }

// Sums is how many elements of D a thread has, in as many registers.
func (a Atom) Sums() int { return a.N / 2 }

// leftRegisters is how many registers of 32 bits a thread's part of A takes.
const leftRegisters = 4

// Origin returns where the parts of a thread, numbered within its warp group,
// begin: see [Atom.Sum] and [Atom.Left].
func (Atom) Origin(thread scalar.Expr) (row, column scalar.Expr) {
	warp, lane := scalar.FloorDiv(thread, Int(32)), scalar.Mod(thread, Int(32))
	return scalar.Add(scalar.Mul(warp, Int(16)), scalar.FloorDiv(lane, Int(4))), scalar.Mod(lane, Int(4))
}

// Sum returns which element of D register i of a thread holds: from the thread's
// origin (r, c), it is the one at (r + row, 2c + column).
func (Atom) Sum(i int) (row, column int) { return i / 2 % 2 * 8, i/4*8 + i%2 }

// LeftType is the type of the variables that hold a thread's part of A: f32, or u32
// for pairs of 16 bits.
func (a Atom) LeftType() dtype.DType {
	if a.Operand == dtype.F32 {
		return dtype.F32
	}
	return dtype.U32
}

// Left returns which element of A register i of a thread holds. From the thread's
// origin (r, c), it is the one at (r + row, c + k) where A is f32. Of 16 bits there
// are two, in the lower half the one at (r + row, 2c + k) and then its neighbour
// along k.
func (a Atom) Left(i int) (row, k int) {
	if a.Operand == dtype.F32 {
		return i % 2 * 8, i / 2 * 4
	}
	return i % 2 * 8, i / 2 * 8
}

// Tile is an operand of an [Atom] in shared memory. It is made of rows of 128
// bytes in which pieces of 16 bytes are exchanged, so that neither the stores of
// a warp nor the hardware's loads meet in a bank: piece p of row r is at place
// p xor r%8 (PTX calls this the swizzle of 128 bytes).
type Tile struct {
	Array int
	// At is the index of the first element, a multiple of 1,024 bytes.
	At scalar.Expr
	// Depth is 0 where a row holds neighbours along k, for one position of the
	// free axis (rows of A, columns of B). Otherwise a row holds neighbours
	// along the free axis for one of Depth positions along k, and such panels
	// lie behind each other. Operands of f32 have Depth 0.
	Depth int
	// K is where along k the operand begins, a multiple of the atom's K.
	K int
}

// RowElements is how many elements of type t a row of a [Tile] holds.
func RowElements(t dtype.DType) int { return 128 / t.Size() }

// PieceElements is how many elements of type t stay together in a [Tile].
func PieceElements(t dtype.DType) int { return 16 / t.Size() }

// TilePlace returns where, from its first element, a tile of elements of type t
// and the given [Tile.Depth] has the one at a position of the free axis and of k.
func TilePlace(t dtype.DType, depth int, free, k scalar.Expr) scalar.Expr {
	row, piece := Int(RowElements(t)), Int(PieceElements(t))
	turn := func(r, at scalar.Expr) scalar.Expr { // the place of at in row r
		turned := scalar.Xor(scalar.FloorDiv(at, piece), scalar.Mod(r, Int(8)))
		return scalar.Add(scalar.Mul(turned, piece), scalar.Mod(at, piece))
	}
	if depth == 0 {
		return scalar.Add(scalar.Mul(free, row), turn(free, k))
	}
	panel := scalar.Mul(scalar.FloorDiv(free, row), Int(depth*RowElements(t)))
	return scalar.Add(panel, scalar.Add(scalar.Mul(k, row), turn(k, scalar.Mod(free, row))))
}

// Element is [TilePlace] for the element of an operand, counted from where along
// k it begins.
func (t Tile) Element(d dtype.DType, free, k int) int {
	row, piece := RowElements(d), PieceElements(d)
	k += t.K
	if t.Depth == 0 {
		return free*row + (k/piece^free%8)*piece + k%piece
	}
	return free/row*t.Depth*row + k*row + (free%row/piece^k%8)*piece + free%piece
}
