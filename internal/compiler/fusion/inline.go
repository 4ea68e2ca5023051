package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Bounds of what is computed again at each use instead of being stored. A
// value with several users is repeated when that is cheaper than a round trip
// through memory; a value with one user always is, until the expression gets
// too long for registers.
//
// To repeat a value costs its operations for every user but one; to store it costs writing
// its 4 bytes once and reading them for every user. Gelu, of weight 12, reads and writes 8
// bytes an element at the speed of memory (README's figures: 4,040 GB/s on an NVIDIA H200, as
// a transpose moves 3,981; 47 GB/s on two cores of a CPU). So the 4 bytes of one user take no
// less time than 6 operations: cheapWeight. It is the least that the reasoning allows: 12
// binds 3 % fewer bytes in a step of [irtest.CharacterGPT] and holds 15 % less, by the plan.
const (
	cheapWeight    = 6   // simple operations that several users may repeat
	scalarWeight   = 200 // the same for values whose elements are one, however many read it
	contractWeight = 1   // the same for operands of a contraction, read over and over
	unpackWeight   = 16  // the same where what is read takes at most half as much memory
	maxWeight      = 300 // length of one expression
	maxTerms       = 200 // the same counting all that is written out, index arithmetic and integers too
	unpackTerms    = 500 // the same where few bytes are made into many, see unpacks
)

// decisions are what is decided about each node before groups are made.
type decisions struct {
	virtual  []bool       // by node ID: computed where it is used
	weight   []int        // by node ID: simple operations in its expression, those of virtual operands included
	terms    []int        // by node ID: all that its expression is made of, written out
	reads    [][]ir.Value // by node ID: the stored values in its expression, each once
	uniform  []bool       // by node ID: all its elements are one
	apart    []bool       // by node ID: runs in kernels of its own, which load its operands as they are
	literals map[ir.Value]scalar.Expr
	uses     [][]*ir.Node // by node ID: the nodes that read it
	// expression is by node ID what findExpressions tells.
	expression []int32
	key        []byte     // of the expression at hand
	scratch    []ir.Value // for measure
	// tensorCores is [Options.TensorCores].
	tensorCores bool
}

func (d *decisions) stored(n *ir.Node) bool { return !d.virtual[n.ID()] }

// decide chooses which nodes are virtual.
func (p *Partition) decide() {
	g := p.Graph
	nodes := g.Nodes()
	d := &decisions{
		virtual: make([]bool, len(nodes)), weight: make([]int, len(nodes)), terms: make([]int, len(nodes)), reads: make([][]ir.Value, len(nodes)), uniform: make([]bool, len(nodes)),
		apart:    make([]bool, len(nodes)),
		literals: map[ir.Value]scalar.Expr{},
		uses:     g.Uses(), tensorCores: p.options.TensorCores,
	}
	p.decided = d
	p.findLiterals()
	output := map[*ir.Node]bool{}
	for _, o := range g.Outputs() {
		output[o.Value.Node()] = true
	}
	live := liveNodes(g)
	for _, n := range nodes {
		d.apart[n.ID()] = p.runsApart(n)
	}
	for _, n := range nodes {
		d.uniform[n.ID()] = d.isUniform(n)
		p.fit(n)
		_, literal := d.literals[n.Result(0)]
		d.virtual[n.ID()] = literal || !live[n.ID()] || !p.options.Unfused && isMap(n) && !output[n] && d.inlines(n, d.uses[n.ID()])
	}
	for changed := true; changed; {
		changed = false
		for _, n := range nodes {
			changed = p.fit(n) || changed
		}
	}
}

// fit measures a node, and makes virtual operands stored until a kernel can bind
// all that its expression reads and its results. It reports whether any had to
// be: nodes before this one may read them too, and have to be measured again.
func (p *Partition) fit(n *ir.Node) (changed bool) {
	for p.measure(n); len(p.decided.reads[n.ID()])+n.NumResults() > p.options.Tensors; p.measure(n) {
		widest := p.decided.widestOperand(n)
		if widest == nil {
			return changed
		}
		p.decided.virtual[widest.ID()] = false
		changed = true
	}
	return changed
}

// widestOperand returns the virtual operand whose expression reads most, nil
// where none reads more than a value.
func (d *decisions) widestOperand(n *ir.Node) *ir.Node {
	var widest *ir.Node
	most := 1
	for _, in := range n.Inputs() {
		if x := in.Node(); d.virtual[x.ID()] && len(d.reads[x.ID()]) > most {
			widest, most = x, len(d.reads[x.ID()])
		}
	}
	return widest
}

// liveNodes tells by ID which nodes the outputs depend on. All others, which
// selecting between branches may leave behind, are computed nowhere.
func liveNodes(g *ir.Graph) []bool {
	nodes := g.Nodes()
	live := make([]bool, len(nodes))
	for _, o := range g.Outputs() {
		live[o.Value.Node().ID()] = true
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		for _, v := range nodes[i].Inputs() {
			live[v.Node().ID()] = live[v.Node().ID()] || live[i]
		}
	}
	return live
}

// findLiterals collects run scalars and constants that need no memory.
func (p *Partition) findLiterals() {
	for v, e := range p.given {
		p.decided.literals[v] = e
	}
	for _, n := range p.Graph.Nodes() {
		switch a := n.Attrs().(type) {
		case *ir.ConstantAttrs:
			if e, ok := splat(a); ok {
				p.decided.literals[n.Result(0)] = e
			}
		case *ir.PortAttrs:
			if p.parent == nil && a.Kind == ir.InputPort && isRunScalar(n.Types()[0]) {
				p.decided.literals[n.Result(0)] = loop.RunScalar(len(p.Scalars), n.Types()[0].DType)
				port, _ := p.Graph.Port(a.Name)
				p.Scalars = append(p.Scalars, port)
			}
		}
	}
}

// isRunScalar reports whether an input is passed by value: one 32-bit number.
func isRunScalar(t ir.Type) bool {
	return len(t.Shape) == 0 && (t.DType == ir.F32 || t.DType == ir.I32 || t.DType == ir.U32)
}

// runsApart reports whether a node is never part of a larger group: its kernels
// bind much of their own.
func (p *Partition) runsApart(n *ir.Node) bool {
	switch n.Def().Lower.(type) {
	case *ir.ScatterLowering:
		return !p.isSearched(n)
	case *ir.SortLowering, *ir.PrefixLowering:
		return true
	}
	return false
}

// isMap reports whether each element of a node can be had by itself.
func isMap(n *ir.Node) bool {
	d := n.Def()
	_, ok := d.Lower.(*ir.MapLowering)
	return d.Scalar != nil || ok
}

// isUniform reports whether all elements of a node's result are known to be one:
// a single one, or a broadcast of such, or made of such.
func (d *decisions) isUniform(n *ir.Node) bool {
	if size, ok := n.Types()[0].Shape.Size().Const(); ok && size == 1 {
		return true
	}
	if n.Def().Scalar == nil && n.Op() != ops.OpBroadcastInDim || len(n.Inputs()) == 0 {
		return false
	}
	for _, in := range n.Inputs() {
		_, literal := d.literals[in]
		if !literal && !d.uniform[in.Node().ID()] {
			return false
		}
	}
	return true
}

// inlines reports whether a map node is better computed where it is used.
func (d *decisions) inlines(n *ir.Node, users []*ir.Node) bool {
	w, l := d.weight[n.ID()], len(d.reads[n.ID()])
	if w > maxWeight || d.isLong(n) || len(users) == 0 || d.keeps(n, users) {
		return false
	}
	repeated := w > cheapWeight && !(d.uniform[n.ID()] && w <= scalarWeight) && !d.repeats(n)
	for _, u := range users {
		if d.apart[u.ID()] && (w > 0 || l > 1) {
			return false
		}
		switch u.Def().Lower.(type) {
		case *ir.ControlLowering:
			if !d.showsStored(n) {
				return false
			}
		case *ir.RoutineLowering, *ir.KernelsLowering:
			return false
		case *ir.ContractLowering:
			if (w > contractWeight || l > 1) && !d.unpacks(n) {
				return false
			}
		case *ir.AttendLowering:
			if w > contractWeight || l > 1 || d.checks(n) {
				return false
			}
		}
		if repeated && grows(n, u) {
			return false
		}
	}
	return len(users) == 1 || !repeated
}

// showsWhole reports whether a node is its operand in memory, in other dimensions at most.
func showsWhole(n *ir.Node) bool {
	return n.Op() == ops.OpReshape || n.Op() == ops.OpRematerialize || n.Op() == ops.OpStopGradient
}

// showsStored reports whether a node is a stored value in memory.
func (d *decisions) showsStored(n *ir.Node) bool {
	if !showsWhole(n) {
		return false
	}
	x := n.Input(0)
	_, literal := d.literals[x]
	return !literal && (d.stored(x.Node()) || d.showsStored(x.Node()))
}

// isLong reports whether too much is written out for an element of a node. Much of what
// unpacks is bytes put together, which a kernel computes once though they are written
// for each use, and to store it instead would take the memory that packing saves.
func (d *decisions) isLong(n *ir.Node) bool {
	terms := d.terms[n.ID()]
	return terms > unpackTerms || terms > maxTerms && !d.unpacks(n)
}

// unpacks reports whether a node makes few bytes of whole numbers or narrow types
// into many, as that of quantised weights does: to read those over and over costs
// less than to write the result and read that.
func (d *decisions) unpacks(n *ir.Node) bool {
	if d.weight[n.ID()] > unpackWeight {
		return false
	}
	read, packed := 0, false
	for _, v := range d.reads[n.ID()] {
		read += bytesOf(v.Type())
		packed = packed || v.DType().IsInteger() || v.DType().Size() < 4
	}
	return packed && 2*read <= bytesOf(n.Types()[0])
}

// checks reports whether a node's expression checks an index.
func (d *decisions) checks(n *ir.Node) bool {
	return n.Op() == ops.OpCheckIndex || slices.ContainsFunc(n.Inputs(), func(v ir.Value) bool {
		return d.virtual[v.Node().ID()] && d.checks(v.Node())
	})
}

// grows reports whether a user reads each element of n many times.
func grows(n, u *ir.Node) bool {
	if !isMap(u) {
		return false
	}
	a, _ := n.Types()[0].Shape.Size().Const()
	b, _ := u.Types()[0].Shape.Size().Const()
	return b >= 8*a
}
