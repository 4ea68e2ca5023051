package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Multiply-adds of f32 want the neighbours of their right operand along the sums (see
// [loop.Tile]), which for sums over queries or keys is across the rows of what is
// multiplied. So there are copies with rows and columns exchanged.

// operandType is the type of what is multiplied.
func (n *attention) operandType() ir.DType { return n.m.Node.Input(0).DType() }

// turns reports whether sums over rows are made from turned copies.
func (n *attention) turns() bool { return n.operandType() == ir.F32 }

// turnedOrder returns which position stands at place i of a turned copy. A thread has
// sums at columns 2c and 2c+1 of each eight ([loop.Atom.Sum]) and is asked for those at
// c and c+4 of the left operand ([loop.Atom.Left]): in this order they are the same.
func turnedOrder(i scalar.Expr) scalar.Expr {
	eight, four, two := loop.Int(8), loop.Int(4), loop.Int(2)
	within := scalar.Mod(i, eight)
	within = scalar.Add(scalar.Mul(scalar.Mod(within, four), two), scalar.FloorDiv(within, four))
	return scalar.Add(scalar.Mul(scalar.FloorDiv(i, eight), eight), within)
}

// turn writes the turned copies that the kernels will read.
func (n *attention) turn() []Launch {
	if !n.turns() {
		return nil
	}
	if !n.Backward {
		return []Launch{n.turnOperand(n.v(), attendForward, n.Keys)}
	}
	var out []Launch
	if n.m.Store[0] != nil {
		out = append(out, n.turnOperand(n.k(), attendQueries, n.Keys))
	}
	if n.m.Store[1] != nil {
		out = append(out, n.turnOperand(n.q(), attendKeys, n.Queries))
	}
	if n.m.Store[2] != nil {
		out = append(out, n.turnOperand(n.dout(), attendKeys, n.Queries))
	}
	return out
}

// turnedRow is how many neighbours of a row a thread turns: those of a sector.
const turnedRow = 8

// turnOperand writes the turned copy of an operand for a kernel, whose blocks of columns
// it fills up with zeros. Threads side by side write side by side.
func (n *attention) turnOperand(x matrix, kind attendKind, rows int) Launch {
	dims, _ := n.m.Node.Input(x.operand).Shape().Ints()
	heads, block := dims[:len(dims)-2], n.mmaTile(kind).columns
	padded := ceilDiv(rows, block) * block
	name := n.prefix + "_" + attendNames[x.operand] + "_turned"
	t := n.p.Scratch(name, ir.F32, slices.Concat(heads, []int{x.length, padded})...)
	w := newWriter(n.p, n.caps, mapThreads)
	load := w.reader().Operand(n.m.Node)
	work := slices.Concat(heads, []int{x.length / turnedRow, padded})
	w.threads(fusion.Product(work), func(i scalar.Expr) {
		at := w.unflatten(i, work)
		head, part, place := at[:len(heads)], at[len(heads)], at[len(heads)+1]
		pos, exists := withinBounds(w.let("pos", turnedOrder(place)), rows, padded == rows)
		var values []scalar.Expr
		for j := range turnedRow {
			column := scalar.Add(scalar.Mul(part, loop.Int(turnedRow)), loop.Int(j))
			values = append(values, w.let("x", w.Simplify(orZero(exists, load(x.operand, slices.Concat(head, ir.Index{pos, column}))))))
		}
		for j, v := range values {
			column := scalar.Add(scalar.Mul(part, loop.Int(turnedRow)), loop.Int(j))
			w.save(t, slices.Concat(head, ir.Index{column, place}), v)
		}
	})
	n.turned[x.operand] = t
	return w.launch(name)
}
