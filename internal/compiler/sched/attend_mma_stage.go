package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// piece returns a piece of an operand, or false if its elements are not contiguous and aligned.
func (n *attention) piece(operand int, e *emitter, read ir.Load, head ir.Index, pos, at scalar.Expr) (p piece, ok bool) {
	return e.pieceOf(n.m.Node.Input(operand).DType(), func(j int) scalar.Expr {
		index := slices.Concat(head, ir.Index{pos, scalar.Add(at, loop.Int(j))})
		if t := n.staged[operand]; t != nil {
			return e.load(t, index)
		}
		return read(operand, index)
	})
}

// stage returns the launches that copy operands to scratch memory, if they are computed or do
// not consist of pieces, and that write the transposed copies.
func (n *attention) stage() []Launch {
	operands := []int{n.q().operand, n.k().operand, n.v().operand}
	if n.Backward {
		operands = append(operands, n.dout().operand)
	}
	out := n.transposedCopies()
	if n.needsTransposed() && !n.Backward {
		operands = operands[:2] // only the transposed copy of the values is read
	}
	for _, operand := range operands {
		if !n.inPieces(operand) {
			out = append(out, n.stageOperand(operand))
		}
	}
	return out
}

// inPieces reports whether an operand consists of aligned pieces of 16 bytes.
func (n *attention) inPieces(operand int) bool {
	e := newEmitter(n.p, n.caps)
	x := n.m.Node.Input(operand)
	dims, _ := x.Shape().Ints()
	rank, each := len(dims), loop.ChunkElements(x.DType())
	index := fusion.Coords("at", dims)
	at := scalar.Mul(scalar.NewVar("piece", ir.I32, 0, int64(dims[rank-1]/each-1)), loop.Int(each))
	_, ok := n.piece(operand, e, e.reader().Operand(n.m.Node), index[:rank-2], index[rank-2], at)
	return ok
}

// stageOperand returns the launch that copies an operand to scratch memory.
func (n *attention) stageOperand(operand int) Launch {
	t := n.m.Node.Input(operand).Type()
	dims, _ := t.Shape.Ints()
	name := n.prefix + "_" + attendNames[operand]
	scratch := n.p.Scratch(name, t.DType, dims...)
	w := newEmitter(n.p, n.caps).writer(mapThreads)
	load := w.reader().Operand(n.m.Node)
	w.threads(scratch.Len(), func(i scalar.Expr) {
		at := w.unflatten(i, dims)
		w.save(scratch, at, w.Simplify(load(operand, at)))
	})
	n.staged[operand] = scratch
	return w.launch(name)
}

// attendNames are the names of operands, by number.
var attendNames = map[int]string{0: "q", 1: "k", 2: "v", 5: "dout"}

// operandType returns the type that is multiplied.
func (n *attention) operandType() ir.DType { return n.m.Node.Input(0).DType() }

// needsTransposed reports whether sums over rows read transposed copies. Multiply-adds of f32
// need a right operand that is contiguous along the contracted axis (see [loop.Tile]), and sums
// over queries or keys contract across its rows.
func (n *attention) needsTransposed() bool { return n.operandType() == ir.F32 }

// transposedOrder returns the position at place i of a transposed copy. A thread has
// accumulators at columns 2c and 2c+1 of each eight ([loop.MmaShape.Sum]) and must supply columns c
// and c+4 of the left operand ([loop.MmaShape.Left]). This permutation makes them the same.
func transposedOrder(i scalar.Expr) scalar.Expr {
	eight, four, two := loop.Int(8), loop.Int(4), loop.Int(2)
	within := scalar.Mod(i, eight)
	within = scalar.Add(scalar.Mul(scalar.Mod(within, four), two), scalar.FloorDiv(within, four))
	return scalar.Add(scalar.Mul(scalar.FloorDiv(i, eight), eight), within)
}

// transposedCopies returns the launches that write the transposed copies.
func (n *attention) transposedCopies() []Launch {
	if !n.needsTransposed() {
		return nil
	}
	if !n.Backward {
		return []Launch{n.transposeOperand(n.v(), attendForward, n.Keys)}
	}
	var out []Launch
	if n.m.Store[0] != nil {
		out = append(out, n.transposeOperand(n.k(), attendQueries, n.Keys))
	}
	if n.m.Store[1] != nil {
		out = append(out, n.transposeOperand(n.q(), attendKeys, n.Queries))
	}
	if n.m.Store[2] != nil {
		out = append(out, n.transposeOperand(n.dout(), attendKeys, n.Queries))
	}
	return out
}

// transposedRow is the number of neighbours of a row that a thread transposes: those of a memory
// sector.
const transposedRow = 8

// transposeOperand returns the launch that writes the transposed copy of an operand for a kernel,
// padded with zeros to whole blocks of columns. Its stores are coalesced.
func (n *attention) transposeOperand(x matrix, kind attendKind, rows int) Launch {
	dims, _ := n.m.Node.Input(x.operand).Shape().Ints()
	heads, block := dims[:len(dims)-2], n.mmaTile(kind).columns
	padded := ceilDiv(rows, block) * block
	name := n.prefix + "_" + attendNames[x.operand] + "_turned"
	t := n.p.Scratch(name, ir.F32, slices.Concat(heads, []int{x.length, padded})...)
	w := newEmitter(n.p, n.caps).writer(mapThreads)
	load := w.reader().Operand(n.m.Node)
	work := slices.Concat(heads, []int{x.length / transposedRow, padded})
	w.threads(fusion.Product(work), func(i scalar.Expr) {
		at := w.unflatten(i, work)
		head, part, place := at[:len(heads)], at[len(heads)], at[len(heads)+1]
		pos, exists := withinBounds(w.let("pos", transposedOrder(place)), rows, padded == rows)
		var values []scalar.Expr
		for j := range transposedRow {
			column := scalar.Add(scalar.Mul(part, loop.Int(transposedRow)), loop.Int(j))
			values = append(values, w.let("x", w.Simplify(orZero(exists, load(x.operand, slices.Concat(head, ir.Index{pos, column}))))))
		}
		for j, v := range values {
			column := scalar.Add(scalar.Mul(part, loop.Int(transposedRow)), loop.Int(j))
			w.save(t, slices.Concat(head, ir.Index{column, place}), v)
		}
	})
	n.transposed[x.operand] = t
	return w.launch(name)
}
