package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// piece returns 16 bytes of an operand, or reports that it does not lie in such.
func (n *attention) piece(operand int, e *emitter, read ir.Load, head ir.Index, pos, at scalar.Expr) (p piece, ok bool) {
	return e.pieceOf(n.m.Node.Input(operand).DType(), func(j int) scalar.Expr {
		index := slices.Concat(head, ir.Index{pos, scalar.Add(at, loop.Int(j))})
		if t := n.staged[operand]; t != nil {
			return e.load(t, index)
		}
		return read(operand, index)
	})
}

// stage writes those operands to memory of their own that are computed, or do not
// lie in pieces of 16 bytes, and turned copies where they are needed.
func (n *attention) stage() []Launch {
	operands := []int{n.q().operand, n.k().operand, n.v().operand}
	if n.Backward {
		operands = append(operands, n.dout().operand)
	}
	out := n.turn()
	if n.turns() && !n.Backward {
		operands = operands[:2] // values are read turned alone
	}
	for _, operand := range operands {
		if !n.pieces(operand) {
			out = append(out, n.stageOperand(operand))
		}
	}
	return out
}

// pieces reports whether an operand lies in pieces of 16 bytes.
func (n *attention) pieces(operand int) bool {
	e := newEmitter(n.p, n.caps)
	x := n.m.Node.Input(operand)
	dims, _ := x.Shape().Ints()
	rank, each := len(dims), loop.PieceElements(x.DType())
	index := fusion.Coords("at", dims)
	at := scalar.Mul(scalar.NewVar("piece", ir.I32, 0, int64(dims[rank-1]/each-1)), loop.Int(each))
	_, ok := n.piece(operand, e, e.reader().Operand(n.m.Node), index[:rank-2], index[rank-2], at)
	return ok
}

func (n *attention) stageOperand(operand int) Launch {
	t := n.m.Node.Input(operand).Type()
	dims, _ := t.Shape.Ints()
	name := n.prefix + "_" + attendNames[operand]
	scratch := n.p.Scratch(name, t.DType, dims...)
	w := newWriter(n.p, n.caps, mapThreads)
	load := w.reader().Operand(n.m.Node)
	w.threads(scratch.Len(), func(i scalar.Expr) {
		at := w.unflatten(i, dims)
		w.save(scratch, at, w.Simplify(load(operand, at)))
	})
	n.staged[operand] = scratch
	return w.launch(name)
}

// attendNames are the names of operands.
var attendNames = map[int]string{0: "q", 1: "k", 2: "v", 5: "dout"}
