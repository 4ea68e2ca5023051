package fusion

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Code is the computation of a group as expressions in its coordinates, without a
// schedule. It is the input of backends that schedule groups themselves. Loads name
// tensors by ID.
type Code struct {
	// Outer are the variables of the outer coordinates, of range [0, size).
	Outer []scalar.Expr
	// Inner are those of the inner coordinates, which reductions iterate over.
	Inner []scalar.Expr
	// Stages run in order for each outer point.
	Stages []Stage
	// Rows are stored once per outer point after all stages, Points once per inner
	// point. All values are computed before the first store.
	Rows, Points []ElementStore
}

// Stage computes row values and then runs reductions over the inner points.
type Stage struct {
	// Lets are values of the outer point that later expressions use.
	Lets       []scalar.Local
	Reductions []Reduction
	// Contraction is set instead for the one stage of a contraction.
	Contraction *ContractionCode
}

// Reduction combines the elements of all inner points into accumulators.
type Reduction struct {
	Accumulators []ir.Accumulator
	// Elements are the contributions of an inner point, one per accumulator.
	Elements []scalar.Expr
	// Combine merges two sets of accumulator values.
	Combine func(a, b []scalar.Expr) []scalar.Expr
	// Results are the named results, computed from the variables Running, which
	// stand for the final accumulator values.
	Running []scalar.Expr
	Results []scalar.Local
}

// ContractionCode is a [Contraction] as expressions: A and B are the factors in the coordinates of
// their spaces; Sum is the variable for the sum in later expressions.
type ContractionCode struct {
	Batch, M, N, K []int
	// The variables of the coordinates; an axis of size 1 has the constant 0.
	BatchAt, MAt, NAt, KAt ir.Index
	A, B                   scalar.Expr
	// Outer maps each outer coordinate of the group to a variable of one of the
	// spaces.
	Outer ir.Index
	// Stored is the condition under which the result has the position of a point.
	Stored scalar.Expr
	Sum    scalar.Expr
}

// ElementStore writes one element of a tensor.
type ElementStore struct {
	Tensor *Tensor // the root tensor
	Offset scalar.Expr
	Value  scalar.Expr
	// Guarded stores are skipped once an index check has failed.
	Guarded bool
}

// Code returns the expressions of a group that is not a loop, a scan or a
// horizontal fusion (for those, call Code on each of Parts).
func (g *Group) Code() *Code { return g.CodeOf(ir.PhasesInBatch) }

// CodeOf is [Group.Code] of a form of the contraction of a group, by its number: one of [Group.Phases], whose results it
// stores, [ir.Undivided] or [ir.PhasesInBatch].
func (g *Group) CodeOf(form int) *Code {
	c := newCoder(g)
	c.outer, c.inner = g.partition.variables("o", g.Outer), g.partition.variables("r", g.Inner)
	c.code.Outer, c.code.Inner = c.outer, c.inner
	switch g.Kind {
	case ReduceKind:
		c.reductions()
	case ContractKind:
		c.contraction(form)
	}
	for _, m := range g.Members {
		c.stores(m)
	}
	for _, x := range g.Copies {
		at := Spread(c.outer, x.To.Dims)
		value := x.Literal
		if x.From != nil {
			value = g.partition.Load(c.s, x.From, at)
		}
		c.code.Rows = append(c.code.Rows, c.store(x.To, at, value))
	}
	return c.code
}

// Prefix returns the computation of a group of kind PrefixKind.
func (g *Group) Prefix() *Prefix {
	n := g.Members[0].Node
	l := n.Def().Lower.(*ir.PrefixLowering)
	dims, _ := n.Types()[0].Shape.Ints()
	at := g.partition.variables("o", dims)
	c := newCoder(g)
	x := &Prefix{Dims: dims, Axis: l.Axis(n), Reverse: l.Reverse(n), Exclusive: l.Exclusive(n), At: at, Accumulators: l.Accumulators(n)}
	for _, a := range x.Accumulators {
		x.Running = append(x.Running, c.variable(a.DType))
	}
	element, combine := l.Element(n, at, NewReader(g.partition, c.s).Operand(n)), func(a, b []scalar.Expr) []scalar.Expr { return l.Combine(n, a, b) }
	x.Combined = combine(x.Running, element)
	results := x.Running
	if sums(x.Accumulators, combine) {
		results = x.compensate(c, element)
	}
	if l.Finish != nil {
		results = l.Finish(n, results)
	}
	for i, t := range g.Members[0].Store {
		if t != nil {
			x.Stores = append(x.Stores, c.store(t, at, results[i]))
		}
	}
	return x
}

// Prefix is a scan along one axis. For each point of the other axes, Running starts
// at the accumulators' initial values and each element replaces it by Combined.
// Stores write the results before that step if Exclusive is set, after it otherwise.
type Prefix struct {
	Dims               []int
	Axis               int
	Reverse, Exclusive bool
	At                 ir.Index // the coordinate variables, one per axis
	Accumulators       []ir.Accumulator
	Running, Combined  []scalar.Expr
	// Terms are the numbers that each point adds where the combination is a sum of f32, one for each half
	// of Running: the sums, then what rounding left out of them. Nil for other combinations.
	Terms  []scalar.Expr
	Stores []ElementStore
}

// coder writes the code of one group.
type coder struct {
	g            *Group
	s            *scalar.Simplifier
	outer, inner ir.Index
	named        map[ir.Value]scalar.Expr
	code         *Code
	vars         int
}

func newCoder(g *Group) *coder {
	return &coder{g: g, s: scalar.NewSimplifier(), named: map[ir.Value]scalar.Expr{}, code: &Code{}}
}

func (c *coder) reader() *Reader {
	return NewReader(c.g.partition, c.s).InGroup(c.g, slices.Concat(c.outer, c.inner), func(v ir.Value) (scalar.Expr, bool) {
		x, ok := c.named[v]
		return x, ok
	})
}

func (c *coder) variable(d ir.DType) scalar.Expr {
	c.vars++
	return scalar.FreeVar("v"+strconv.Itoa(c.vars), d)
}

// reductions adds the stages of a reduce group: in each, the row values that the
// previous reductions make available, then the reductions.
func (c *coder) reductions() {
	levels := c.g.Levels()
	last := 0
	for _, level := range levels {
		last = max(last, level)
	}
	for level := 0; level <= last; level++ {
		var s Stage
		for _, m := range c.g.Members {
			if levels[m] == level && !m.Reduced && !m.Pointwise(len(c.g.Outer)) {
				s.Lets = append(s.Lets, c.rowValues(m)...)
			}
		}
		for _, m := range c.g.Members {
			if levels[m] == level && m.Reduced {
				s.Reductions = append(s.Reductions, c.reduction(m))
			}
		}
		c.code.Stages = append(c.code.Stages, s)
	}
}

func (c *coder) rowValues(m *Member) []scalar.Local {
	var out []scalar.Local
	for i := range m.Node.Types() {
		x := c.reader().Body(m.Node, i, m.At(c.outer))
		v := c.variable(x.Type)
		out = append(out, scalar.Local{Var: v, Value: x})
		c.named[m.Node.Result(i)] = v
	}
	return out
}

func (c *coder) reduction(m *Member) Reduction {
	l := m.Reduction()
	at := slices.Concat(c.outer, c.inner)
	load := c.reader().Operand(m.Node)
	r := Reduction{
		Accumulators: l.Accumulators(m.Node),
		Elements:     l.Element(m.Node, m.At(at), m.InnerAt(at), load),
		Combine:      func(a, b []scalar.Expr) []scalar.Expr { return l.Combine(m.Node, a, b) },
	}
	for _, a := range r.Accumulators {
		r.Running = append(r.Running, c.variable(a.DType))
	}
	for i, x := range m.Finish(m.At(c.outer), r.Running, load) {
		v := c.variable(x.Type)
		r.Results = append(r.Results, scalar.Local{Var: v, Value: x})
		c.named[m.Node.Result(i)] = v
	}
	return r
}

// contraction adds the single stage of a contraction, its factors written in the
// coordinates of the four spaces.
func (c *coder) contraction(form int) {
	m := c.g.Members[0]
	k := ContractionOf(m.Node, c.s)
	if form != ir.PhasesInBatch {
		k.Contraction, _ = m.Node.Def().Lower.(*ir.ContractLowering).Phase(m.Node, form)
	}
	x := &ContractionCode{
		Batch: k.Batch, M: k.M, N: k.N, K: k.K,
		BatchAt: Coords("b", k.Batch), MAt: Coords("m", k.M), NAt: Coords("n", k.N), KAt: Coords("k", k.K),
	}
	load := NewReader(c.g.partition, c.s).Operand(m.Node)
	x.A = k.Factor(0, x.BatchAt, x.MAt, x.KAt, load)
	x.B = k.Factor(1, x.BatchAt, x.NAt, x.KAt, load)
	x.Outer = make(ir.Index, len(c.g.Outer))
	for axis, e := range k.Out(x.BatchAt, x.MAt, x.NAt) {
		if o := m.Coord[axis]; o >= 0 {
			x.Outer[o] = e
		}
	}
	x.Stored = c.s.Simplify(k.Exists(x.BatchAt, x.MAt))
	x.Sum = c.variable(k.Acc)
	c.named[m.Node.Result(0)] = scalar.Convert(x.Sum, m.Node.Types()[0].DType)
	c.code.Stages = []Stage{{Contraction: x}}
}

// stores adds the stores of a member's results.
func (c *coder) stores(m *Member) {
	at := slices.Concat(c.outer, c.inner)
	for i, t := range m.Store {
		if t == nil {
			continue
		}
		pos := m.At(at)
		s := c.store(t, pos, c.reader().Element(m.Node.Result(i), pos))
		if m.Pointwise(len(c.g.Outer)) {
			c.code.Points = append(c.code.Points, s)
		} else {
			c.code.Rows = append(c.code.Rows, s)
		}
	}
}

func (c *coder) store(t *Tensor, at ir.Index, value scalar.Expr) ElementStore {
	root, offset := c.g.partition.Place(t, at)
	return ElementStore{
		Tensor: root, Offset: c.s.Simplify(offset), Value: value,
		Guarded: c.g.partition.IsGuarded(root),
	}
}

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
	// RowDims are the sizes of the space of rows, WindowDims those of a row. RowSteps and WindowSteps are
	// the strides of their axes in Out.
	RowDims, RowSteps, WindowDims, WindowSteps []int
}

// WindowAt returns the offsets in Out of all elements of a row.
func (x *Scatter) WindowAt() []int {
	all := make([]int, Product(x.WindowDims))
	for e := range all {
		rest := e
		for k, size := range slices.Backward(x.WindowDims) {
			all[e] += rest % size * x.WindowSteps[k]
			rest /= size
		}
	}
	return all
}

// Scatter returns the computation of a group of kind ScatterKind.
func (g *Group) Scatter() *Scatter {
	s := RowScatterOf(g)
	c := newCoder(g)
	load := NewReader(g.partition, c.s).Operand(s.Node)
	x := &Scatter{Mode: s.Lowering.Mode, InPlace: s.InPlace(), Out: s.Out, RowDims: s.rowDims, WindowDims: s.windowDims}
	i, w := g.partition.variables("p", []int{s.Positions})[0], g.partition.variables("w", []int{s.Window})[0]
	row, inside := s.Row(c.s, i, load)
	x.Row = Elements{[]int{s.Positions}, ir.Index{i}, scalar.Select(inside, row, loop.Int(-1))}
	x.Update = Elements{[]int{s.Positions, s.Window}, ir.Index{i, w}, s.Update(c.s, i, w, load)}
	at := g.partition.variables("o", s.Out.Dims)
	x.Operand = Elements{s.Out.Dims, at, load(0, at)}
	steps := strides(s.Out.Dims)
	for _, axis := range s.rowAxes {
		x.RowSteps = append(x.RowSteps, steps[axis])
	}
	for _, axis := range s.windowAxes {
		x.WindowSteps = append(x.WindowSteps, steps[axis])
	}
	return x
}

// Sort is the computation of a group of kind SortKind: for each row of keys, the
// permutation that sorts the keys in ascending order, stably (an argsort), or its first
// elements.
type Sort struct {
	Rows, Length, First int
	// Keys has one line per row, of type U32 or U64.
	Keys Elements
	// Order is the space of the results, without a value: First for each row.
	Order Elements
	// Out stores an element of the permutation at a point of the space of Order.
	Out func(place scalar.Expr) ElementStore
}

// SortOf returns the computation of a group of kind SortKind.
func SortOf(g *Group) *Sort {
	n, out := g.Members[0].Node, g.Members[0].Store[0]
	l := n.Def().Lower.(*ir.SortLowering)
	axis, lines := l.Axis(n), append([]int{}, out.Dims...)
	lines[axis] = 1
	c := newCoder(g)
	space := func(length int) (Elements, ir.Index) {
		dims := []int{Product(lines), length}
		x := Elements{Dims: dims, At: g.partition.variables("s", dims)}
		at := Unflatten(c.s, x.At[0], lines)
		at[axis] = x.At[1]
		return x, at
	}
	length, _ := n.Input(0).Shape()[axis].Const()
	keys, from := space(length)
	order, to := space(out.Dims[axis])
	keys.Value = l.Key(n, NewReader(g.partition, c.s).Element(n.Input(0), from))
	return &Sort{
		Rows: keys.Dims[0], Length: length, First: out.Dims[axis], Keys: keys, Order: order,
		Out: func(place scalar.Expr) ElementStore { return c.store(out, to, place) },
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

// RoutineOf returns the computation of a group of kind RoutineKind.
func RoutineOf(g *Group) *Routine {
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

// sums reports whether combine is plain addition of independent f32 accumulators, where
// the rounding errors of long sums accumulate.
func sums(accs []ir.Accumulator, combine func(a, b []scalar.Expr) []scalar.Expr) bool {
	a, b := make([]scalar.Expr, len(accs)), make([]scalar.Expr, len(accs))
	for i, acc := range accs {
		if acc.DType != ir.F32 {
			return false
		}
		a[i], b[i] = scalar.FreeVar("a", ir.F32), scalar.FreeVar("b", ir.F32)
	}
	for i, x := range combine(a, b) {
		if x.Op != scalar.OpAdd || x.Args[0] != a[i] || x.Args[1] != b[i] {
			return false
		}
	}
	return true
}

// Sums reports whether a reduction only adds f32 numbers. Its order is free, so a serial
// implementation sums in blocks of [SumBlockLen].
func (r *Reduction) Sums() bool { return sums(r.Accumulators, r.Combine) }

// SumBlockLen is the number of f32 terms summed serially, with an error of at most 5·10⁻⁷ for equal
// terms. Sums of blocks are added with compensation ([scalar.TwoSum]), which costs little compared
// to the terms.
const SumBlockLen = 32

// compensate adds a compensation term to each running sum (Kahan summation), and returns
// the compensated results. Each step still waits only for the previous addition.
func (x *Prefix) compensate(c *coder, element []scalar.Expr) []scalar.Expr {
	x.Terms = element
	var rests, kept, results []scalar.Expr
	for i, running := range x.Running {
		sum, left := scalar.TwoSum(running, element[i])
		rest := c.variable(ir.F32)
		x.Accumulators = append(x.Accumulators, ir.Accumulator{DType: ir.F32, Init: scalar.Const(ir.F32, 0)})
		x.Combined[i] = sum
		rests, kept = append(rests, rest), append(kept, scalar.Add(rest, left))
		results = append(results, scalar.Compensated(running, rest))
	}
	x.Running, x.Combined = append(x.Running, rests...), append(x.Combined, kept...)
	return results
}
