package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Elements is a tensor as an expression: one value for each point of a space.
type Elements struct {
	Dims  []int
	At    ir.Index // the coordinate variables, one per axis
	Value scalar.Expr
}

// Scatter is the computation of a group of kind ScatterKind: updates are combined
// into the operand in the order of their positions.
type Scatter struct {
	Mode ir.ScatterMode
	// Row is the result row of each position, or -1 for none.
	Row Elements
	// Update has one row per position.
	Update Elements
	// Operand is the initial value of the result. If InPlace is set, it is already there.
	Operand Elements
	InPlace bool
	Out     *Tensor
	// RowDims are the sizes of the space of rows. RowSteps are the strides of its
	// axes in Out, WindowAt the offsets of the elements of a row.
	RowDims, RowSteps, WindowAt []int
}

// Scatter returns the computation of a group of kind ScatterKind.
func (g *Group) Scatter() *Scatter {
	s := RowScatterOf(g)
	c := newCoder(g)
	load := NewReader(g.partition, c.s).Operand(s.Node)
	x := &Scatter{Mode: s.Lowering.Mode, InPlace: s.InPlace(), Out: s.Out, RowDims: s.rowDims}
	i, w := g.partition.variables("p", []int{s.Positions})[0], g.partition.variables("w", []int{s.Window})[0]
	row, inside := s.Row(c.s, i, load)
	x.Row = Elements{[]int{s.Positions}, ir.Index{i}, scalar.Select(inside, row, loop.Int(-1))}
	x.Update = Elements{[]int{s.Positions, s.Window}, ir.Index{i, w}, s.Update(c.s, i, w, load)}
	at := g.partition.variables("o", s.Out.Dims)
	x.Operand = Elements{s.Out.Dims, at, load(0, at)}
	steps := stepsOf(s.Out.Dims)
	x.RowSteps = make([]int, len(s.rowAxes))
	for k, axis := range s.rowAxes {
		x.RowSteps[k] = steps[axis]
	}
	x.WindowAt = make([]int, s.Window)
	for e := range x.WindowAt {
		rest := e
		for k := len(s.windowDims) - 1; k >= 0; k-- {
			x.WindowAt[e] += rest % s.windowDims[k] * steps[s.windowAxes[k]]
			rest /= s.windowDims[k]
		}
	}
	return x
}

// Sort is the computation of a group of kind SortKind: for each row of keys, the
// permutation that sorts the keys in ascending order, stably (an argsort).
type Sort struct {
	Rows, Length int
	// Keys has one line per row, of type U32 or U64.
	Keys Elements
	// Out stores an element of the permutation at a point of the space of Keys.
	Out func(place scalar.Expr) ElementStore
}

// Sort returns the computation of a group of kind SortKind.
func (g *Group) Sort() *Sort {
	n, out := g.Members[0].Node, g.Members[0].Store[0]
	l := n.Def().Lower.(*ir.SortLowering)
	axis, length := l.Axis(n), out.Dims[l.Axis(n)]
	lines := append([]int{}, out.Dims...)
	lines[axis] = 1
	rows := Product(lines)
	c := newCoder(g)
	space := g.partition.variables("s", []int{rows, length})
	at := Unflatten(c.s, space[0], lines)
	at[axis] = space[1]
	key := l.Key(n, NewReader(g.partition, c.s).Element(n.Input(0), at))
	return &Sort{
		Rows: rows, Length: length, Keys: Elements{[]int{rows, length}, space, key},
		Out: func(place scalar.Expr) ElementStore { return c.store(out, at, place) },
	}
}

// Store returns the store of a value at a point of the space of Operand.
func (x *Scatter) Store(g *Group, value scalar.Expr) ElementStore {
	return newCoder(g).store(x.Out, x.Operand.At, value)
}

// Routine is the computation of a group of kind RoutineKind: all results of a node
// from all of its operands.
type Routine struct {
	Node *ir.Node
	// In are the operands.
	In []Elements
	// Out are the spaces of the results, without values; nil for a result that is
	// not read.
	Out []*Elements
	// Store stores the value of a result at a point of its space.
	Store func(result int, value scalar.Expr) ElementStore
}

// Routine returns the computation of a group of kind RoutineKind.
func (g *Group) Routine() *Routine {
	m := g.Members[0]
	c := newCoder(g)
	reader := NewReader(g.partition, c.s)
	x := &Routine{Node: m.Node, Out: make([]*Elements, len(m.Store))}
	for _, v := range m.Node.Inputs() {
		dims, _ := v.Shape().Ints()
		at := g.partition.variables("i", dims)
		x.In = append(x.In, Elements{dims, at, reader.Element(v, at)})
	}
	for i, t := range m.Store {
		if t != nil {
			x.Out[i] = &Elements{Dims: t.Dims, At: g.partition.variables("o", t.Dims)}
		}
	}
	x.Store = func(result int, value scalar.Expr) ElementStore {
		return c.store(m.Store[result], x.Out[result].At, value)
	}
	return x
}
