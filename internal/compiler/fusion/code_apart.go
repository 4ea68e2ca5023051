package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Elements are values as expressions: one for each point of a space.
type Elements struct {
	Dims  []int
	At    ir.Index // the variables of the coordinates, one for each axis
	Value scalar.Expr
}

// Scatter is what a group of kind ScatterKind computes: the operand, with
// updates combined into it in the order of their positions.
type Scatter struct {
	Mode ir.ScatterMode
	// Row is the row of the result that each position goes to, -1 for none.
	Row Elements
	// Update has a row for each position.
	Update Elements
	// Operand is what the result begins as. In place it lies there already.
	Operand Elements
	InPlace bool
	Out     *Tensor
	// RowDims are the sizes of the rows' space; RowSteps and WindowAt say how far
	// rows and the elements of one lie apart in Out.
	RowDims, RowSteps, WindowAt []int
}

// Scatter returns what a scatter group computes.
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

// Sort is what a group of kind SortKind computes: for each row of keys, the
// places of the keys in ascending order, equal ones as they come.
type Sort struct {
	Rows, Length int
	// Keys has a row for each row, of U32 or U64.
	Keys Elements
	// Out stores the place that belongs at a point of the space of Keys.
	Out func(place scalar.Expr) ElementStore
}

// Sort returns what a sort group computes.
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

// Store returns the store of a value at a point of the space of all elements of
// Out.
func (x *Scatter) Store(g *Group, value scalar.Expr) ElementStore {
	return newCoder(g).store(x.Out, x.Operand.At, value)
}

// Routine is what a group of kind RoutineKind computes: all results of a node
// from all of its operands.
type Routine struct {
	Node *ir.Node
	// In are the operands.
	In []Elements
	// Out are the spaces of the results, without values; nil for one that nobody
	// reads.
	Out []*Elements
	// Store stores the value of a result at the point of its space.
	Store func(result int, value scalar.Expr) ElementStore
}

// Routine returns what a group of a routine computes.
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
