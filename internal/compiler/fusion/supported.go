package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

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
func (x *groupGraph) checkSizes() error {
	for _, g := range x.list {
		for _, part := range g.HorizontalParts() {
			if err := checkSizes(part); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkSizes(g *Group) error {
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
