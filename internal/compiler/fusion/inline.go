package fusion

import (
	"maps"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Limits of rematerialisation, which computes a value again at each use instead of storing
// it. A value with several users is recomputed when that costs less than a round trip
// through memory; a value with one user always is, up to the length of an expression.
//
// Recomputing costs the value's operations for every user but one; storing costs writing its
// 4 bytes once and reading them for every user: [Policy] says how many operations that is. The others
// are lengths of expressions.
const (
	scalarWeight   = 200 // simple operations of uniform values that any number of users may recompute
	contractWeight = 1   // the same for operands of a contraction, which are read repeatedly
	unpackWeight   = 16  // the same for values read from at most half as many bytes
	maxWeight      = 300 // length of one expression
	keyWeight      = 12  // integer keys of a sort, which its first pass computes twice
	maxTerms       = 200 // the same counting every term, index arithmetic and integers too
	unpackTerms    = 500 // the same for expressions that unpack, see unpacks
)

// decisions holds the decisions about each node that precede the forming of groups.
type decisions struct {
	virtual    []bool       // by node ID: computed where it is used
	weight     []int        // by node ID: simple operations in its expression, virtual operands included
	terms      []int        // by node ID: all terms of its expression
	reads      [][]ir.Value // by node ID: the stored values in its expression, without duplicates
	uniform    []bool       // by node ID: all elements are equal
	ownKernels []bool       // by node ID: runs in kernels of its own, which load its operands as stored
	literals   map[ir.Value]scalar.Expr
	uses       [][]*ir.Node // by node ID: the nodes that read it
	// expression is by node ID the number of its expression, below expressions.
	expression  []int32
	expressions int
	forms       *nodeForms
	options     *Options
	scattered   bool              // a state is updated by a scatter
	maxima      []ir.Value        // see [Partition.BlockMaxima]
	inProducts  map[*ir.Node]bool // computed in the kernels of products that round
	rounded     map[*ir.Node]bool // what these round
	traffic     hardware.Traffic  // by [Policy]
	key         []byte            // key of the current expression
	scratch     []ir.Value        // for measure
}

func (d *decisions) stored(n *ir.Node) bool { return !d.virtual[n.ID()] }

// decide chooses which nodes are virtual, computed at each use instead of stored.
func decide(p *Partition) *decisions {
	g := p.Graph
	nodes := g.Nodes()
	d := &decisions{
		forms: p.forms, literals: p.findLiterals(), uses: g.Uses(),
		options: &p.options, traffic: p.options.Policy.Traffic(),
		virtual: make([]bool, len(nodes)), weight: make([]int, len(nodes)), terms: make([]int, len(nodes)), reads: make([][]ir.Value, len(nodes)), uniform: make([]bool, len(nodes)),
		ownKernels: make([]bool, len(nodes)),
	}
	output := map[*ir.Node]bool{}
	for _, o := range g.Outputs() {
		d.scattered = d.scattered || scattersState(g, o)
		output[o.Value.Node()] = true
	}
	live := liveNodes(g)
	for i := range d.uses {
		d.uses[i] = slices.DeleteFunc(d.uses[i], func(u *ir.Node) bool { return !live[u.ID()] })
	}
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *ir.Node) bool {
		d.virtual[n.ID()] = !live[n.ID()]
		return !live[n.ID()]
	})
	for _, n := range nodes {
		d.ownKernels[n.ID()] = hasOwnKernels(n, &p.states, d.traffic.Searches)
	}
	if withTensorCores && p.options.TensorCores && !p.options.Unfused {
		findBlockMaxima(d, nodes, output)
	}
	for _, n := range nodes {
		d.uniform[n.ID()] = d.isUniform(n)
		d.fit(n)
		_, literal := d.literals[n.Result(0)]
		d.virtual[n.ID()] = literal || !p.options.Unfused && !output[n] && (d.isAppended(n) || isMap(n) && (d.inlines(n, d.readers(n)) || d.showsStored(n)))
		if withTensorCores && d.inProducts != nil {
			if inside, known := d.inProduct(n); known {
				d.virtual[n.ID()] = literal || inside
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, n := range nodes {
			changed = d.fit(n) || changed
		}
	}
	d.findExpressions(g)
	return d
}

// fit measures a node and stores virtual operands until a kernel can bind what its
// expression reads and its results. It reports whether it stored any; earlier nodes
// may read them too and must be measured again.
func (d *decisions) fit(n *ir.Node) (changed bool) {
	for d.measure(n); len(d.reads[n.ID()])+n.NumResults() > d.options.Tensors; d.measure(n) {
		widest := d.widestOperand(n)
		if widest == nil {
			return changed
		}
		d.virtual[widest.ID()] = false
		changed = true
	}
	return changed
}

// widestOperand returns the virtual operand whose expression reads the most values,
// or nil where none reads more than one.
func (d *decisions) widestOperand(n *ir.Node) *ir.Node {
	var widest *ir.Node
	limit := 1
	for _, in := range n.Inputs() {
		if x := in.Node(); d.virtual[x.ID()] && len(d.reads[x.ID()]) > limit {
			widest, limit = x, len(d.reads[x.ID()])
		}
	}
	return widest
}

// liveNodes returns by ID whether an output depends on a node. Dead nodes, which
// rewrites may add, are not computed.
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

// findLiterals collects the values that need no memory: ports that are literals outside, run
// scalars, which it adds to Scalars, and constants with equal elements.
func (p *Partition) findLiterals() map[ir.Value]scalar.Expr {
	literals := map[ir.Value]scalar.Expr{}
	maps.Copy(literals, p.given)
	for _, n := range p.Graph.Nodes() {
		switch a := n.Attrs().(type) {
		case *ir.ConstantAttrs:
			if e, ok := splat(a); ok {
				literals[n.Result(0)] = e
			}
		case *ir.PortAttrs:
			if p.parent == nil && a.Kind == ir.InputPort && isRunScalar(n.Types()[0]) {
				literals[n.Result(0)] = loop.RunScalar(len(p.Scalars), n.Types()[0].DType)
				port, _ := p.Graph.Port(a.Name)
				p.Scalars = append(p.Scalars, port)
			}
		}
	}
	return literals
}

// isRunScalar reports whether an input is passed by value: a single 32-bit number.
func isRunScalar(t ir.Type) bool {
	return len(t.Shape) == 0 && (t.DType == ir.F32 || t.DType == ir.I32 || t.DType == ir.U32)
}

// hasOwnKernels reports whether a node never joins a larger group, because its kernels
// bind many tensors of their own.
func hasOwnKernels(n *ir.Node, s *states, searches int) bool {
	switch n.Def().Lower.(type) {
	case *ir.ScatterLowering:
		return !isSearched(n, s, searches)
	case *ir.SortLowering, *ir.PrefixLowering:
		return true
	}
	return false
}

// isMap reports whether each element of a node can be computed independently.
func isMap(n *ir.Node) bool {
	d := n.Def()
	_, ok := d.Lower.(*ir.MapLowering)
	return d.Scalar != nil || ok
}

// isUniform reports whether all elements of a node's result are known to be equal: a
// single element, a broadcast of one, or arithmetic on uniform values.
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

// inlines reports whether a map node is computed at each use.
func (d *decisions) inlines(n *ir.Node, users []*ir.Node) bool {
	w, l := d.weight[n.ID()], len(d.reads[n.ID()])
	if w > maxWeight || d.isLong(n) || len(users) == 0 || d.keeps(n, users) {
		return false
	}
	costly := w > d.traffic.CheapOps && !(d.uniform[n.ID()] && w <= scalarWeight)
	repeated := costly && !d.recomputes(n)
	for _, u := range users {
		if d.ownKernels[u.ID()] && (w > 0 || l > 1) && !d.readsOnce(u, n) {
			return false
		}
		switch u.Def().Lower.(type) {
		case *ir.ControlLowering:
			if !d.isStoredView(n) {
				return false
			}
		case *ir.RoutineLowering:
			return false
		case *ir.KernelsLowering:
			if !d.hasPrologues(u) || d.checks(n) {
				return false
			}
		case *ir.ContractLowering:
			if (w > contractWeight || l > 1) && !d.unpacks(n) {
				return false
			}
		case *ir.AttendLowering:
			if w > contractWeight || l > 1 || d.checks(n) {
				return false
			}
		}
		if broadcasts(n, u, 8) && (repeated || costly && d.isReducedWide(n, u)) || !d.traffic.RepeatsGathers && broadcasts(n, u, 2) && d.gathers(n) || costly && overlaps(n, u) || d.isCostlyPart(n, u) {
			return false
		}
	}
	// A state that is updated in place waits for all checks: one that a later group repeats, which needs the
	// state, has the state copied.
	checked := d.scattered && n.Types()[0].DType.IsFloat() && d.checks(n)
	others := slices.DeleteFunc(slices.Clone(users), d.isAppended)
	return len(others) <= 1 || !repeated && !checked
}

// hasPrologues reports whether the kernels of a node compute its operands.
func (d *decisions) hasPrologues(n *ir.Node) bool {
	return d.options.Prologues && n.Op() == ops.OpCachedAttention
}

// isAppended reports whether a node is a cache with a new position that the kernels which read it compute.
func (d *decisions) isAppended(n *ir.Node) bool {
	users := d.uses[n.ID()]
	return !d.ownKernels[n.ID()] && len(users) == 1 && d.hasPrologues(users[0]) && isSingleUpdate(n) && !d.checks(n)
}

// scattersState reports whether an output of a graph is a state with updates scattered into it.
func scattersState(g *ir.Graph, o ir.Output) bool {
	port, ok := g.Port(o.Name)
	_, scatter := o.Value.Node().Def().Lower.(*ir.ScatterLowering)
	return ok && o.State && scatter && o.Value.Node().Input(0) == port.Value
}

// readsOnce reports whether a node with kernels of its own computes n for each element once or twice: the
// updates of a scatter whose positions are sorted or differ, and keys of a sort that are integers of few
// operations, which may bound them.
func (d *decisions) readsOnce(u, n *ir.Node) bool {
	switch l := u.Def().Lower.(type) {
	case *ir.ScatterLowering:
		once := l.Sorted != nil && l.Sorted(u) || l.Unique != nil && l.Unique(u)
		return once && u.Input(0).Node() != n && u.Input(1).Node() != n
	case *ir.SortLowering:
		return n.Types()[0].DType.IsInteger() && d.weight[n.ID()] <= keyWeight
	}
	return false
}

// isReshape reports whether a node has its operand's elements in the same order.
func isReshape(n *ir.Node) bool {
	return n.Op() == ops.OpReshape || n.Op() == ops.OpRematerialize || n.Op() == ops.OpStopGradient
}

// isStoredView reports whether a node is a view of a whole stored value.
func (d *decisions) isStoredView(n *ir.Node) bool {
	if !isReshape(n) {
		return false
	}
	x := n.Input(0)
	_, literal := d.literals[x]
	return !literal && (d.stored(x.Node()) || d.isStoredView(x.Node()))
}

// isLong reports whether the expression of a node's element is too long to inline.
// Expressions that unpack bytes get a higher limit: they repeat subexpressions, which a
// kernel computes once, and storing the result would cost the memory that packing saves.
func (d *decisions) isLong(n *ir.Node) bool {
	terms := d.terms[n.ID()]
	return terms > unpackTerms || terms > maxTerms && !d.unpacks(n)
}

// unpacks reports whether a node expands few bytes of integers or narrow types to many, as
// dequantising weights does: reading the packed bytes repeatedly costs less than storing
// the result.
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

// gathers reports whether a node's expression loads at loaded indices.
func (d *decisions) gathers(n *ir.Node) bool {
	return n.Op() == ops.OpGather || slices.ContainsFunc(n.Inputs(), func(v ir.Value) bool {
		return d.virtual[v.Node().ID()] && d.gathers(v.Node())
	})
}

// overlaps reports whether a user consists of overlapping windows of n, which would compute each
// element several times. Where the windows have several users they would be stored instead, at
// several times the memory of n.
func overlaps(n, u *ir.Node) bool {
	return u.Op() == ops.OpWindows && sizeOf(u.Types()[0]) >= 2*sizeOf(n.Types()[0])
}

// broadcasts reports whether a user reads each element of n the given number of times or more.
func broadcasts(n, u *ir.Node, times int) bool {
	if !isMap(u) {
		return false
	}
	a, _ := n.Types()[0].Shape.Size().Const()
	b, _ := u.Types()[0].Shape.Size().Const()
	return b >= times*a
}
