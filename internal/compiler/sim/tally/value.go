package tally

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// column is an integer or a bool of each lane of a warp; nil stands for floats.
type column struct {
	v       [warp]int64
	uniform bool // only the first lane counts
	data    bool // depends on what memory holds
	guess   bool // depends on floats that memory holds
}

func uniform(x int64) *column {
	c := &column{uniform: true}
	c.v[0] = x
	return c
}

// at returns the value of a lane, 0 for a value that is not known.
func (c *column) at(lane int) int64 {
	switch {
	case c == nil:
		return 0
	case c.uniform:
		return c.v[0]
	}
	return c.v[lane]
}

func (c *column) isData() bool { return c == nil || c.data }

// with returns the column with the values of another in some lanes.
func (c *column) with(o *column, lanes uint32) *column {
	if c == nil || o == nil || lanes == 1<<warp-1 {
		return o
	}
	out := &column{data: c.data || o.data, guess: c.guess || o.guess}
	for lane := range warp {
		out.v[lane] = c.at(lane)
		if lanes>>lane&1 != 0 {
			out.v[lane] = o.at(lane)
		}
	}
	return out
}

// mask returns the lanes where a bool holds.
func (c *column) mask() (lanes uint32) {
	for lane := range warp {
		if c.at(lane) != 0 {
			lanes |= 1 << lane
		}
	}
	return lanes
}

// variable is a name with its value.
type variable struct {
	from     *node // the value, if a let defines it
	value    *column
	changed  int64 // the clock at its definition
	unrolled bool  // the variable of a loop that is unrolled
}

// key identifies equal nodes.
type key struct {
	op   scalar.Op
	t    dtype.DType
	ref  int
	bits uint64
	name string
	args [3]*node
}

// node is an expression of the kernel, the same for equal ones.
type node struct {
	e        scalar.Expr
	args     [3]*node
	leaves   []*variable
	v        *variable // of a variable
	volatile bool      // loads what the kernel writes
	cost     Ops
	computed int64 // the clock when its value was computed, 0 if never
	value    *column
}

// node returns the node of an expression.
func (m *machine) node(e scalar.Expr) *node {
	if n, ok := m.known[e]; ok {
		return n
	}
	k := key{op: e.Op, t: e.Type, ref: e.Ref, bits: e.Bits, name: e.Name}
	for i, a := range e.Args {
		k.args[i] = m.node(a)
	}
	n := m.nodes[k]
	if n == nil {
		n = m.newNode(e, k.args)
		m.nodes[k] = n
	}
	m.known[e] = n
	return n
}

func (m *machine) newNode(e scalar.Expr, args [3]*node) *node {
	n := &node{e: e, args: args, cost: Cost(e)}
	if e.Op == scalar.OpVar {
		n.v = m.variable(e.Name)
		n.leaves = []*variable{n.v}
	}
	if e.Op == scalar.OpLoad {
		a := &m.k.Arrays[e.Ref]
		n.volatile = a.Space != loop.Storage || a.Access != loop.Read
	}
	for _, a := range args[:len(e.Args)] {
		n.volatile = n.volatile || a.volatile
	next:
		for _, v := range a.leaves {
			for _, w := range n.leaves {
				if v == w {
					continue next
				}
			}
			n.leaves = append(n.leaves, v)
		}
	}
	return n
}

// valid reports whether the value of a node is that of the last time.
func (m *machine) valid(n *node) bool {
	if n.computed <= m.began || n.volatile && n.computed <= m.since {
		return false
	}
	for _, v := range n.leaves {
		if v.changed > n.computed {
			return false
		}
	}
	return true
}

// eval returns the value of an expression, nil for a float.
func (m *machine) eval(e scalar.Expr) *column { return m.value(m.node(e)) }

// value returns the value of a node, nil for a float, and counts its operations if it is computed again.
func (m *machine) value(n *node) *column {
	if m.valid(n) {
		return n.value
	}
	active := m.active
	var args [3]*column
	for i := range n.e.Args {
		if n.e.Op == scalar.OpSelect && i > 0 && args[0] != nil && !args[0].guess {
			m.active = active & args[0].mask()
			if i == 2 {
				m.active = active &^ args[0].mask()
			}
		}
		args[i] = m.value(n.args[i])
	}
	m.active = active
	n.value = m.compute(n, args)
	m.counts.Ops = m.counts.Ops.Plus(n.cost, m.weight*m.part(n))
	m.clock++
	n.computed = m.clock
	return n.value
}

// sharedUnrolled is the part of the integer operations in an unrolled loop that its iterations do not have in common.
const sharedUnrolled = 0.5

// part returns the part of the instructions of a node that a warp executes. A compiler knows the value of an integer
// that depends on the variables of unrolled loops alone, has a unit of its own for integers that are the same in all
// lanes, and shares equal expressions in the iterations of an unrolled loop.
func (m *machine) part(n *node) float64 {
	if !isWhole(n.e.Type) {
		return 1
	}
	part, constant := 1.0, true
	for _, v := range n.leaves {
		constant = constant && v.unrolled
		if v.unrolled {
			part = sharedUnrolled
		}
	}
	if constant || n.value.uniform {
		return 0
	}
	return part
}

func isWhole(t dtype.DType) bool { return t.IsInteger() || t.IsBool() }

// compute returns the value of a node for those of its operands.
func (m *machine) compute(n *node, args [3]*column) *column {
	e := n.e
	switch e.Op {
	case scalar.OpConst:
		if x, ok := e.IntConst(); ok {
			return uniform(x)
		}
		return nil
	case scalar.OpVar:
		if isWhole(e.Type) && n.v.value == nil {
			return &column{uniform: true, data: true, guess: true}
		}
		return n.v.value
	case scalar.OpLoad:
		a := m.k.Arrays[e.Ref]
		size := loop.DeviceSize(a.DType)
		m.access(n, e.Ref, args[0], size, size, m.active, false)
		if a.Space == loop.Private && isWhole(a.DType) {
			return m.kept(e.Ref, args[0])
		}
		return m.contents(a, args[0], 0)
	}
	if !isWhole(e.Type) {
		return nil
	}
	return m.integers(n, args)
}

// kept returns what a private array of integers holds.
func (m *machine) kept(array int, at *column) *column {
	if c := m.private[array][at.at(0)]; c != nil {
		return c
	}
	if c := m.private[array][anywhere]; c != nil {
		return c
	}
	return uniform(0)
}

// smallest is the number of different integers that memory is taken to hold.
const different = 1024

// contents returns integers that an array may hold, nil for floats.
func (m *machine) contents(a loop.Array, at *column, offset int) *column {
	if !isWhole(a.DType) {
		return nil
	}
	c := &column{data: true, uniform: at != nil && at.uniform}
	for lane := range warp {
		x := uint64(at.at(lane)*int64(a.Width)+int64(offset))*0x9e3779b97f4a7c15 + 0x9e3779b97f4a7c15
		c.v[lane] = int64(x >> 33 % different)
		if a.DType.IsBool() {
			c.v[lane] &= 1
		}
	}
	return c
}

// integers returns the integers or bools of an operation.
func (m *machine) integers(n *node, args [3]*column) *column {
	c, lanes := &column{uniform: true}, 1
	known := true
	for i, a := range args[:len(n.e.Args)] {
		if a == nil {
			known = false
			c.uniform = c.uniform && len(n.args[i].leaves) == 0
			continue
		}
		c.uniform = c.uniform && a.uniform
		c.data, c.guess = c.data || a.data, c.guess || a.guess
	}
	if !c.uniform {
		lanes = warp
	}
	if known {
		for lane := range lanes {
			var v [3]int64
			for i, a := range args[:len(n.e.Args)] {
				v[i] = a.at(lane)
			}
			c.v[lane] = apply(n.e, v)
		}
		return c
	}
	for lane := range lanes {
		x, data := m.number(n, lane, 0)
		c.v[lane], c.data, c.guess = x.I, c.data || data, c.guess || data
	}
	return c
}

// apply returns the value of an operation on integers.
func apply(e scalar.Expr, v [3]int64) int64 {
	if t := e.Type; t == dtype.I32 {
		switch e.Op {
		case scalar.OpAdd:
			return int64(int32(v[0] + v[1]))
		case scalar.OpSub:
			return int64(int32(v[0] - v[1]))
		case scalar.OpMul:
			return int64(int32(v[0] * v[1]))
		case scalar.OpSelect:
			if v[0] != 0 {
				return v[1]
			}
			return v[2]
		case scalar.OpMod, scalar.OpFloorDiv:
			if v[0] >= 0 && v[1] > 0 {
				if e.Op == scalar.OpMod {
					return v[0] % v[1]
				}
				return v[0] / v[1]
			}
		}
	}
	return scalar.Apply(e, [3]scalar.Value{{I: v[0]}, {I: v[1]}, {I: v[2]}}).I
}

// maxDepth bounds how deep floats are computed for an integer that depends on them.
const maxDepth = 40

// number returns the value of a node for a lane, with floats; data says that it depends on what memory holds.
func (m *machine) number(n *node, lane, depth int) (x scalar.Value, data bool) {
	switch {
	case depth > 0 && isWhole(n.e.Type):
		c := m.value(n)
		return scalar.Value{I: c.at(lane)}, c.isData()
	case n.e.Op == scalar.OpConst:
		x, _ = n.e.Value()
		return x, false
	case n.e.Op == scalar.OpVar && n.v.from != nil && depth < maxDepth:
		return m.number(n.v.from, lane, depth+1)
	case n.e.Op == scalar.OpVar || n.e.Op == scalar.OpLoad || depth >= maxDepth || n.e.Type.IsComplex():
		return scalar.Value{F: math.Sqrt2 * float64(lane%4)}, true
	}
	var v [3]scalar.Value
	for i := range n.e.Args {
		y, unknown := m.number(n.args[i], lane, depth+1)
		v[i], data = y, data || unknown
	}
	return scalar.Apply(n.e, v), data
}
