package fusion

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Build partitions a graph into groups. The graph must have no composites (package
// passes inlines them) and no symbolic dimensions ([ir.Graph.Bind] binds them). The
// error is an [*ir.OpError] of kind [ir.ErrUnsupported] or [ir.ErrShape] that names
// the node. Build also returns panics, of an op's lowering or its own, as errors.
func Build(g *ir.Graph, o Options) (p *Partition, err error) {
	name := g.Name()
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, format.Errorf("fusion: cannot partition graph %q: %v", name, r)
		}
	}()
	if o.Policy == nil {
		o.Policy = hardware.Unknown()
	}
	if g, err = prepared(g, o); err != nil {
		return nil, err
	}
	return build(&Partition{Graph: g, options: o, byID: map[int]*Tensor{}})
}

// prepared rewrites the parts of a graph that cannot be grouped as they are.
func prepared(g *ir.Graph, o Options) (*ir.Graph, error) {
	g, err := selectBranches(g, o.Branch)
	if err != nil {
		return nil, err
	}
	return splitConcatenations(g, o.Tensors)
}

func build(p *Partition) (*Partition, error) {
	p.simplifier = scalar.NewSimplifier()
	p.after = map[*Group][]*Group{}
	if p.parent == nil {
		p.tensors = map[ir.Value]*Tensor{}
		p.findStates()
	}
	p.indexStates()
	if err := p.findForms(); err != nil {
		return nil, err
	}
	p.findPhases()
	p.decide()
	p.findExpressions()
	p.newGroups()
	for p.overwriteStates() {
		p.newGroups()
	}
	p.placeLeaves()
	p.placeResults()
	if err := p.checkSizes(); err != nil {
		return nil, err
	}
	if err := p.order(); err != nil {
		return nil, err
	}
	p.reuseBuffers()
	return p, nil
}

// newGroups creates one group for each stored node that computes something, and
// fuses the groups.
func (p *Partition) newGroups() {
	p.groups, p.groupOf, p.allChecked = nil, map[*ir.Node]*Group{}, nil
	clear(p.after)
	for _, n := range p.Graph.Nodes() {
		if p.decided.stored(n) && !isLeaf(n) {
			g := p.newGroup(n)
			p.groups, p.groupOf[n] = append(p.groups, g), g
		}
	}
	p.countReaders()
	for _, g := range p.groups {
		g.footprint = p.footprintOf(g.Members[0].Node)
	}
	if !p.options.Unfused {
		p.fuseAll()
	}
}

// lowerable returns an error if a node cannot be part of a kernel; long is
// [Options.Long].
func lowerable(n *ir.Node, long int) error {
	for _, t := range n.Types() {
		switch _, ok := t.Shape.Ints(); {
		case !ok:
			return ir.Shapef("%s has a symbolic size: bind it first (Graph.Bind)", t)
		case long == 0 && (slices.ContainsFunc(t.Shape, tooLong) || isLeaf(n) && tooLarge(t)):
			return tooManyElements(t)
		}
		if _, err := t.Bytes(); err != nil { // on machines whose int has 32 bits
			return ir.Errorf(ir.ErrUnsupported, "%v", err)
		}
	}
	d := n.Def()
	switch l := d.Lower.(type) {
	case *ir.ScatterLowering:
		if l.Mode > ir.ScatterMax {
			return ir.Errorf(ir.ErrUnsupported, "unknown scatter mode %d", l.Mode)
		}
	case *ir.ContractLowering:
		if _, fault := inverted(n, scalar.NewSimplifier()); fault != "" {
			return ir.Errorf(ir.ErrUnsupported, "%s", fault)
		}
	}
	if d.Scalar == nil && d.Lower == nil && !isLeaf(n) {
		return ir.Errorf(ir.ErrUnsupported, "the composite has no lowering: inline it first")
	}
	for _, t := range slices.Concat(n.InTypes(), n.Types()) {
		if tooLarge(t) && (long > 0 && !countsLong(n) || long == 0 && !countsAlongAxes(n)) {
			return tooManyElements(t)
		}
	}
	return nil
}

// countsLong reports whether kernels of a node use I64 positions where the target
// does. Kernels that an op writes itself, such as sorts, use I32.
func countsLong(n *ir.Node) bool {
	switch n.Def().Lower.(type) {
	case nil, *ir.MapLowering, *ir.ReduceLowering, *ir.ContractLowering, *ir.PrefixLowering, *ir.ScatterLowering,
		*ir.ControlLowering:
		return true
	}
	return false
}

func tooManyElements(t ir.Type) error {
	return ir.Errorf(ir.ErrUnsupported, "%s has too many elements; i32 must hold their positions", t)
}

func tooLarge(t ir.Type) bool {
	size, ok := t.Shape.Size().Const()
	return !ok || size > loop.MaxElements
}

// countsAlongAxes reports whether a node's lowering computes positions only along
// single axes, and no linear position as a reshape does.
func countsAlongAxes(n *ir.Node) bool {
	var used []scalar.Expr
	load := func(operand int, at ir.Index) scalar.Expr {
		used = append(used, at...)
		return scalar.Arg(operand, n.Input(operand).DType())
	}
	dims, _ := n.Types()[0].Shape.Ints()
	at := Coords("a", dims)
	switch l := n.Def().Lower.(type) {
	case nil:
	case *ir.MapLowering:
		for i := range n.Types() {
			used = append(used, l.Element(n, i, at, load))
		}
	case *ir.ReduceLowering:
		used = append(used, l.Element(n, at, Coords("r", l.Space(n)), load)...)
	default:
		return false
	}
	s := scalar.NewSimplifier()
	return !slices.ContainsFunc(used, func(x scalar.Expr) bool { return s.MayOverflow(x) || computesLong(x) })
}

// computesLong reports whether an expression computes in 64-bit integers, beyond
// converting to them: then an I32 is too narrow for the position.
func computesLong(e scalar.Expr) bool {
	found := false
	scalar.Walk(e, func(n scalar.Expr) {
		found = found || n.Type == ir.I64 && len(n.Args) > 1 && n.Op != scalar.OpSelect
	})
	return found
}

// checkSizes checks that the stored tensors and the iteration spaces fit the counters.
func (p *Partition) checkSizes() error {
	for _, g := range p.groups {
		for _, part := range g.HorizontalParts() {
			if err := part.checkSizes(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Group) checkSizes() error {
	counted := []int{Product(g.Outer), Product(g.Inner)}
	switch long := g.partition.options.Long > 0; {
	case long && g.Kind == ScatterKind: // its rows and positions are 32-bit words in memory
		s := RowScatterOf(g)
		counted = []int{s.Rows, s.Positions}
	case long:
		return nil
	}
	for _, points := range counted {
		if points > loop.MaxElements {
			return g.Members[0].Node.Fail(ir.Errorf(ir.ErrUnsupported, "%d iterations have too many elements; i32 must hold their positions", points))
		}
	}
	for _, m := range g.Members {
		for i, t := range m.Store {
			if t != nil && g.partition.options.Long == 0 && tooLarge(m.Node.Types()[i]) {
				return m.Node.Fail(tooManyElements(m.Node.Types()[i]))
			}
		}
	}
	return nil
}

func tooLong(d ir.Dim) bool { n, _ := d.Const(); return n > loop.MaxElements }

func isLeaf(n *ir.Node) bool { return n.Op() == ir.OpPort || n.Op() == ir.OpConstant }

// Depth returns the number of loops around the partition.
func (p *Partition) Depth() int {
	n := 0
	for ; p != nil; p = p.parent {
		if p.repeated {
			n++
		}
	}
	return n
}

// placeLeaves assigns a tensor to every port and to every constant that is no
// literal. The ports of a loop body already have theirs.
func (p *Partition) placeLeaves() {
	ports := p.Graph.Ports()
	for i := range ports {
		if _, ok := p.decided.literals[ports[i].Value]; ok || p.tensors[ports[i].Value] != nil {
			continue
		}
		t := p.newTensor(ports[i].Name, ports[i].Value.Type())
		t.Port = &ports[i]
		p.tensors[ports[i].Value] = t
	}
	for _, n := range p.Graph.Nodes() {
		a, ok := n.Attrs().(*ir.ConstantAttrs)
		if !ok || !p.decided.stored(n) {
			continue
		}
		t := p.newTensor("constant"+strconv.Itoa(n.ID()), a.Type)
		t.Constant = a.Data
		p.tensors[n.Result(0)] = t
	}
}

// placeResults assigns a tensor to every result that another group or an output
// reads, and places states and outputs.
func (p *Partition) placeResults() {
	needed := map[ir.Value]bool{}
	for _, g := range p.groups {
		for _, v := range p.readsOf(g) {
			needed[v] = true
		}
	}
	for _, o := range p.Graph.Outputs() {
		needed[o.Value] = true
	}
	if p.parent == nil {
		p.copyOutputs()
	}
	p.placeStacked()
	p.placeStates()
	for _, g := range p.groups {
		for _, part := range g.HorizontalParts() {
			for _, m := range part.Members {
				p.placeMember(m, needed)
			}
		}
	}
	for i, o := range p.Graph.Outputs() {
		if p.parent == nil && !o.State && p.Outputs[i] == nil {
			p.Outputs[i] = p.tensors[o.Value]
		}
	}
	p.copyBack()
}

func (p *Partition) placeMember(m *Member, needed map[ir.Value]bool) {
	for i, v := range m.Node.Results() {
		if !needed[v] {
			continue
		}
		if p.tensors[v] == nil {
			p.tensors[v] = p.newTensor(resultName(v), v.Type())
		}
		m.Store[i] = p.tensors[v]
	}
}

func resultName(v ir.Value) string {
	n := v.Node()
	name := string(n.Op()) + strconv.Itoa(n.ID())
	if n.Label() != "" {
		name = identifier(n.Label()) + "_" + name
	}
	if n.NumResults() > 1 {
		name += "_" + strconv.Itoa(v.Index())
	}
	return name
}
