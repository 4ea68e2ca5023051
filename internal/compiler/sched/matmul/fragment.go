package matmul

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// FragmentLanes is the subgroup size that fragments are scheduled for.
const FragmentLanes = 32

// fragmentTiles are the tiles that accumulate in fragments, largest first, four subgroups each.
// Both take at most 32 KiB of workgroup memory. Not measured on a device that has fragments.
var fragmentTiles = []tile{
	{64, 64, 16, 32, 32, FragmentLanes, 0, false},
	{32, 32, 16, 16, 16, FragmentLanes, 0, false},
}

// FragmentPad is the padding of a tile's row in workgroup memory, in bytes. It avoids bank
// conflicts along columns.
const FragmentPad = 16

// fragmentCore accumulates a tile in fragments: each subgroup has rm×rn of the results.
// Workgroup memory holds the operands in the type that is multiplied, contiguous along the same
// axis as in memory. In the epilogue it holds rounds of eight rows of each subgroup.
type fragmentCore struct {
	e       *tileEmitter
	operand ir.DType
	slot    [2]int // workgroup arrays of the tiles of both operands
	sums    int    // workgroup array of a round of results
}

func newFragmentCore(te *tileEmitter) *fragmentCore {
	f := &fragmentCore{e: te, operand: fragmentOperand(te.out.c, te.Caps)}
	for i := range te.side {
		f.slot[i] = te.Shared([2]string{"rows", "columns"}[i], f.operand, 1, 2*f.tileLength(&te.side[i]))
	}
	f.sums = te.Shared("sums", ir.F32, 1, te.t.m/te.t.rm*loop.FragmentSize*f.sumsStride())
	return f
}

// fragmentOperand returns the type that a contraction multiplies in fragments.
func fragmentOperand(c *fusion.Contraction, caps loop.Caps) ir.DType {
	in := c.Node.Inputs()
	a, b := in[0].Type().DType, in[1].Type().DType
	if a == b && (a == ir.F16 && caps.HalfFragments || a == ir.BF16 && caps.BFloat) {
		return a
	}
	return ir.F32
}

// stride returns the elements from one row of a side's tile to the next.
func (f *fragmentCore) stride(s *side) int {
	pad := FragmentPad / f.operand.Size()
	if s.kFast {
		return f.e.t.k + pad
	}
	return s.tile + pad
}

// tileLength returns the elements of a side's tile.
func (f *fragmentCore) tileLength(s *side) int {
	if s.kFast {
		return s.tile * f.stride(s)
	}
	return f.e.t.k * f.stride(s)
}

// sumsStride returns the elements from one row of results to the next.
func (f *fragmentCore) sumsStride() int { return f.e.t.n + FragmentPad/ir.F32.Size() }

// fragmentBytes returns the maximum bytes of workgroup memory of a tile: operands of f32 with
// rows along the contracted space.
func fragmentBytes(t tile) int {
	return 2*(t.m+t.n)*(4*t.k+FragmentPad) + t.m/t.rm*loop.FragmentSize*(4*t.n+FragmentPad)
}

// operandOffset returns the offset of an operand's element, at a free and a contracted position,
// in one of its two buffers.
func (f *fragmentCore) operandOffset(s *side, buffer, free, k scalar.Expr) scalar.Expr {
	row, at := k, free
	if s.kFast {
		row, at = free, k
	}
	at = scalar.Add(scalar.Mul(row, loop.Int(f.stride(s))), at)
	return f.e.Simplify(scalar.Add(scalar.Mul(buffer, loop.Int(f.tileLength(s))), at))
}

func (f *fragmentCore) sum(i, j int) string { return "sum" + strconv.Itoa(i) + "_" + strconv.Itoa(j) }

// declare defines the accumulators.
func (f *fragmentCore) declare() {
	for i := range f.e.t.rm / loop.FragmentSize {
		for j := range f.e.t.rn / loop.FragmentSize {
			f.e.Body = append(f.e.Body, &loop.FragmentZero{Name: f.sum(i, j)})
		}
	}
}

// storeOperands converts the prefetched operands and stores them into a buffer.
func (f *fragmentCore) storeOperands(buffer scalar.Expr) {
	f.e.eachPrefetch(func(s *side, v int, names []string) {
		vec, kk := f.e.vectorCoords(s, v)
		var stores []loop.Stmt
		for j, name := range names {
			free := scalar.Add(scalar.Mul(vec, loop.Int(4)), loop.Int(j))
			value := scalar.Convert(scalar.FreeVar(name, ir.F32), f.operand)
			stores = append(stores, &loop.Store{Array: f.slot[s.operand], At: f.operandOffset(s, buffer, free, kk), Value: value})
		}
		f.e.Body = append(f.e.Body, f.e.guardVector(s, v, stores)...)
	})
}

// multiply accumulates the products of one step.
func (f *fragmentCore) multiply(buffer scalar.Expr) {
	f.e.Loop("k", loop.Int(0), loop.Int(f.e.t.k), loop.FragmentSize, f.e.t.k-loop.FragmentSize, func(k scalar.Expr) {
		for i := range f.e.side {
			s := &f.e.side[i]
			for j := range s.reg / loop.FragmentSize {
				free := scalar.Add(scalar.Mul(s.thread, loop.Int(s.reg)), loop.Int(j*loop.FragmentSize))
				f.e.Add(&loop.FragmentLoad{
					Name: s.prefix + strconv.Itoa(j), Array: f.slot[i], At: f.operandOffset(s, buffer, free, k), Stride: f.stride(s),
					Transposed: s.kFast == (s.operand == 1), // rows are free positions of operand 0, contracted ones of operand 1
					Right:      s.operand == 1,
				})
			}
		}
		for i := range f.e.t.rm / loop.FragmentSize {
			for j := range f.e.t.rn / loop.FragmentSize {
				f.e.Add(&loop.FragmentMulAdd{Sum: f.sum(i, j), A: "a" + strconv.Itoa(i), B: "b" + strconv.Itoa(j)})
			}
		}
	})
}

// store stores the accumulators through workgroup memory, in rounds of a row of fragments of
// each subgroup. The epilogue is then a loop with coalesced stores.
func (f *fragmentCore) store(result resultStores) {
	rounds := f.e.t.rm / loop.FragmentSize
	f.e.Times("round", rounds, func(round scalar.Expr) {
		f.e.Barrier()
		f.stageRound(round)
		f.e.Barrier()
		f.storeRound(round, result)
	})
}

// stageRound stores the fragments of a round. Fragments are named statically, so each round has a
// branch.
func (f *fragmentCore) stageRound(round scalar.Expr) {
	first := scalar.Mul(f.e.side[0].thread, loop.Int(loop.FragmentSize*f.sumsStride()))
	first = scalar.Add(first, scalar.Mul(f.e.side[1].thread, loop.Int(f.e.t.rn)))
	var body []loop.Stmt
	for i := f.e.t.rm/loop.FragmentSize - 1; i >= 0; i-- {
		var stores []loop.Stmt
		for j := range f.e.t.rn / loop.FragmentSize {
			at := f.e.Simplify(scalar.Add(first, loop.Int(j*loop.FragmentSize)))
			stores = append(stores, &loop.FragmentStore{Array: f.sums, At: at, Stride: f.sumsStride(), Name: f.sum(i, j)})
		}
		if body != nil {
			stores = []loop.Stmt{&loop.If{Cond: scalar.Lt(round, loop.Int(i+1)), Then: stores, Else: body}}
		}
		body = stores
	}
	f.e.Add(body...)
}

// storeRound computes and stores the results of a round.
func (f *fragmentCore) storeRound(round scalar.Expr, result resultStores) {
	rows, columns := &f.e.side[0], &f.e.side[1]
	count := f.e.t.m / f.e.t.rm * loop.FragmentSize * f.e.t.n
	f.e.Loop("at", f.e.lane, loop.Int(count), f.e.t.threads(), count-1, func(at scalar.Expr) {
		local := f.e.let("local_row", scalar.FloorDiv(at, loop.Int(f.e.t.n)), count/f.e.t.n-1)
		across := f.e.let("local_column", scalar.Mod(at, loop.Int(f.e.t.n)), f.e.t.n-1)
		row := scalar.Mul(scalar.FloorDiv(local, loop.Int(loop.FragmentSize)), loop.Int(f.e.t.rm))
		row = scalar.Add(row, scalar.Add(scalar.Mul(round, loop.Int(loop.FragmentSize)), scalar.Mod(local, loop.Int(loop.FragmentSize))))
		row = f.e.let("row", scalar.Add(rows.first, row), f.e.lastFree(rows))
		column := f.e.let("column", scalar.Add(columns.first, across), f.e.lastFree(columns))
		sum := scalar.LoadAt(f.sums, ir.F32, f.e.Simplify(scalar.Add(scalar.Mul(local, loop.Int(f.sumsStride())), across)))
		total := f.e.Name("total")
		f.e.Add(&loop.Let{Name: total, Value: sum})
		stores := f.e.StoreAll(result(scalar.FreeVar(total, ir.F32), f.e.out.point(f.e.freeAt(rows, row), f.e.freeAt(columns, column))))
		f.e.Add(emit.Guard(f.e.valid, f.e.guardFree(rows, row, f.e.guardFree(columns, column, stores)))...)
	})
}
